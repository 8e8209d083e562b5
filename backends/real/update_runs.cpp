#include <algorithm>
#include <cmath>

#include "backends/real/layer_runs.hpp"
#include "backends/real/pause.hpp"
#include "sim/core/numbers.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft::real {
namespace {

/// Arrays and optimizer state of so many numbers.
class UpdateRuns {
 public:
  UpdateRuns(const ProfileRequest& request, std::int64_t count, Kernels& kernels, const SecondsOf& seconds_of)
      : rule_(request.workload.training.optimizer),
        count_(count),
        kernels_(kernels),
        memory_(kernels),
        seconds_of_(seconds_of) {
    for (int i = 0; i < 5; ++i) {
      arrays_.emplace_back(memory_, 1, count, Use::Weights);
      kernels.zero(arrays_.back().data(), bytes());
    }
    const OptimizerStateTensors tensors = state_tensors(rule_.kind, {});
    if (tensors.first) state_.first = arrays_[2].data();
    if (tensors.second) state_.second = arrays_[3].data();
    state_.last = state_.first ? nullptr : arrays_[4].data();
  }

  Seconds update() {
    return median_time([&] {
      kernels_.update(rule_, {}, count_, arrays_[1].data(), state_, arrays_[0].data(), arrays_[0].data());
      kernels_.zero(arrays_[1].data(), bytes());
    });
  }
  Seconds predict() {
    return median_time([&] {
      kernels_.predict(rule_, Direction::Optimizer, 1, count_, state_, arrays_[0].data(), arrays_[1].data());
    });
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * kernels_.width(); }

  Seconds median_time(const std::function<void()>& work) {
    std::vector<double> times;
    const double begin = steady_seconds();
    while (times.size() < kFewest + kWarmUps || (times.size() < kMost && steady_seconds() - begin < 0.05))
      times.push_back(seconds_of_(work));
    times.erase(times.begin(), times.begin() + kWarmUps);
    return Seconds{median(times)};
  }

  OptimizerRule rule_;
  std::int64_t count_;
  Kernels& kernels_;
  DeviceMemory memory_;
  const SecondsOf& seconds_of_;
  std::vector<Array> arrays_;
  OptimizerState state_;
};

}  // namespace

void put_updates(const ProfileRequest& request, Kernels& kernels, const SecondsOf& seconds_of, Profile& profile) {
  const double most = std::max(1024.0, request.workload.parameters);
  for (double size = 256; size < 8 * most; size *= 8) {
    UpdateRuns runs(request, static_cast<std::int64_t>(std::min(size, most)), kernels, seconds_of);
    profile.updates.push_back({std::floor(std::min(size, most)), runs.update(), runs.predict()});
    if (size >= most) break;
  }
}

}  // namespace stagecraft::real
