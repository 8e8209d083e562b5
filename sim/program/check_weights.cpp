#include "sim/program/check_weights.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// One stage on one device.
struct Seat {
  StageId stage;
  int newest = 0;
  int predicted[2] = {-1, -1};  ///< Version that the last prediction for forwards, and for backwards, starts from.
};

class WeightsCheck {
 public:
  explicit WeightsCheck(const Program& program) : p_(program), seats_(program.memory.size()) {
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

  Seat& seat_of(const Instruction& i) {
    auto& seats = seats_[i.device];
    const auto at = std::lower_bound(seats.begin(), seats.end(), i.stage,
                                     [](const Seat& seat, StageId stage) { return seat.stage < stage; });
    return at != seats.end() && at->stage == i.stage ? *at : *seats.insert(at, Seat{i.stage});
  }

  void compute(InstructionId id) {
    const Instruction& i = p_.at(id);
    Seat& seat = seat_of(i);
    InstructionId& waiting = waiting_[i.device];
    if (waiting.valid()) {
      const Instruction& made = p_.at(waiting);
      require(i.stage == made.stage && i.number == made.number && i.weights == WeightsFrom::Predicted &&
                  (i.kind != InstructionKind::Forward) == p_.prediction(made).for_backward,
              waiting, "is not right before the op that it is for");
      waiting = {};
    }
    switch (i.kind) {
      case InstructionKind::Update:
        require(i.version() == seat.newest + 1, id, "does not make the next version");
        seat.newest = i.version();
        return;
      case InstructionKind::Predict: {
        const Prediction& made = p_.prediction(i);
        require(made.horizon >= 1 && made.horizon <= most_, id, "looks ahead by an impossible number of updates");
        require(made.version == seat.newest, id, "does not start from the newest version");
        seat.predicted[made.for_backward] = made.version;
        waiting = id;
        return;
      }
      default:
        return reads(id, i, seat);
    }
  }

  void reads(InstructionId id, const Instruction& i, const Seat& seat) const {
    const bool forward = i.kind == InstructionKind::Forward;
    switch (i.weights) {
      case WeightsFrom::Version:
        return require(i.version() >= 0 && i.version() <= seat.newest, id,
                       "reads a version that is not made before it");
      case WeightsFrom::Predicted:
        return require(i.version() == seat.predicted[!forward] && i.version() >= 0, id,
                       "reads a prediction that is not made before it");
      case WeightsFrom::Kept:
        return require(!forward && seat.predicted[0] >= i.version() && i.version() >= 0, id,
                       "keeps weights that no forward predicted");
    }
  }

  const Program& p_;
  IdVector<DeviceId, std::vector<Seat>> seats_;  ///< The seats of a device are sorted by stage.
  IdVector<DeviceId, InstructionId> waiting_;    ///< The prediction whose op has to come next; not valid: none.
  int most_ = 0;
};

}  // namespace

void check_weights(const Program& program) { WeightsCheck(program).run(); }

}  // namespace stagecraft
