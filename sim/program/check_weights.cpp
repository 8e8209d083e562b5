// The part of check_program() about versions of weights and predictions.

#include "sim/program/check_weights.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// One stage on one device.
struct DeviceVersions {
  StageId stage;
  int newest = 0;
  int predicted[2] = {-1, -1};  ///< Version that the last prediction for forwards, and for backwards, starts from.
};

class WeightsCheck {
 public:
  explicit WeightsCheck(const Program& program) : p_(program), versions_(program.memory.size()) {
    waiting_.resize(program.memory.size());
    most_ = static_cast<int>(program.micro_batches.size());
    for (const int updates : program.updates) most_ = std::max(most_, updates * program.iterations);
  }

  void run() {
    for (const InstructionId id : p_.instructions.ids()) {
      if (p_.at(id).is_compute()) compute(id);
    }
    for (const InstructionId prediction : waiting_)
      require(!prediction.valid(), prediction, "is not right before the op that it is for");
  }

 private:
  void require(bool holds, InstructionId id, const char* what) const {
    if (!holds) throw InternalError(fmt::format("broken program: {} {}", to_text(p_, id), what));
  }

  DeviceVersions& versions_of(const Instruction& i) {
    auto& device_versions = versions_[i.device];
    const auto at =
        std::lower_bound(device_versions.begin(), device_versions.end(), i.stage,
                         [](const DeviceVersions& versions, StageId stage) { return versions.stage < stage; });
    return at != device_versions.end() && at->stage == i.stage ? *at
                                                               : *device_versions.insert(at, DeviceVersions{i.stage});
  }

  void compute(InstructionId id) {
    const Instruction& i = p_.at(id);
    DeviceVersions& versions = versions_of(i);
    InstructionId& waiting = waiting_[i.device];
    if (waiting.valid()) {
      const Instruction& prediction = p_.at(waiting);
      require(i.stage == prediction.stage && i.number == prediction.number && i.weights == WeightsFrom::Predicted &&
                  (i.kind != InstructionKind::Forward) == p_.prediction(prediction).for_backward,
              waiting, "is not right before the op that it is for");
      waiting = {};
    }
    switch (i.kind) {
      case InstructionKind::Update:
        require(i.version() == versions.newest + 1, id, "does not make the next version");
        versions.newest = i.version();
        return;
      case InstructionKind::Predict: {
        const Prediction& prediction = p_.prediction(i);
        require(prediction.horizon >= 1 && prediction.horizon <= most_, id,
                "looks ahead by an impossible number of updates");
        require(prediction.version == versions.newest, id, "does not start from the newest version");
        versions.predicted[prediction.for_backward] = prediction.version;
        waiting = id;
        return;
      }
      default:
        return reads(id, i, versions);
    }
  }

  void reads(InstructionId id, const Instruction& i, const DeviceVersions& versions) const {
    const bool forward = i.kind == InstructionKind::Forward;
    switch (i.weights) {
      case WeightsFrom::Version:
        return require(i.version() >= 0 && i.version() <= versions.newest, id,
                       "reads a version that is not made before it");
      case WeightsFrom::Predicted:
        return require(i.version() == versions.predicted[!forward] && i.version() >= 0, id,
                       "reads a prediction that is not made before it");
      case WeightsFrom::Stashed:
        return require(!forward && versions.predicted[0] >= i.version() && i.version() >= 0, id,
                       "keeps weights that no forward predicted");
    }
  }

  const Program& p_;
  IdVector<DeviceId, std::vector<DeviceVersions>> versions_;  ///< The device_versions of a device are sorted by stage.
  IdVector<DeviceId, InstructionId> waiting_;  ///< The prediction whose op has to come next; not valid: none.
  int most_ = 0;
};

}  // namespace

void check_weights(const Program& program) { WeightsCheck(program).run(); }

}  // namespace stagecraft
