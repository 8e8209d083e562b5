#pragma once

#include <map>
#include <vector>

#include "backends/real/array.hpp"
#include "sim/program/program.hpp"
#include "sim/training/training.hpp"
#include "sim/weights/rule.hpp"

namespace stagecraft::real {

/// How often each version and each prediction of one stage on one device will be read, from the Program alone: memory
/// without readers left is given back.
struct Readers {
  std::vector<int> of_version;
  std::map<int, int> of_prediction;  ///< By the instruction that predicts.
  std::map<int, bool> same_weights;  ///< By micro-batch: its backward uses the very weights of its forward.
};
Readers count_readers(const Program&, StageId, DeviceId);

/// Weights as passes read them, and how many updates are in them.
struct Weights {
  Array numbers;
  int version = 0;
};

/// A version: what updates start from, and what passes read. They are one array but in mixed precision. There,
/// `updated` has the numbers that the device updates alone, range after range.
struct WeightVersion {
  Array updated, computed;
};

/// Numbers that a device updates: where they begin in its weights, in its gradients and in its states.
struct UpdatedRange {
  std::int64_t weights = 0, gradient = 0, state = 0, count = 0;
};

/// The weights of one stage on one device: its versions, predictions, and the state of the optimizer. Where the states
/// of the optimizer are divided, the device updates one part of the weights and has the state of that part alone.
class WeightStore {
 public:
  /// Without `learns` there is no state of an optimizer. `updated`: the numbers of `start` that it updates, one range
  /// after another in the states.
  WeightStore(DeviceMemory&, std::span<const double> start, std::vector<UpdatedRange> updated, const Training&,
              const WeightsRule&, bool learns, Readers, int delay);

  /// Weights for an op, as the Program says; `done` when the op has ended.
  Weights read(const Instruction&);
  void done(const Instruction&);
  void predict(InstructionId, const Prediction&);
  /// One step from the newest version with this gradient, of the numbers that it updates. The result becomes the next
  /// version.
  void update(const Instruction&, const void* gradient);
  const Array& newest() const { return versions_.at(newest_).updated; }
  const Array& newest_computed() const { return versions_.at(newest_).computed; }

  /// Whether it has one version and nothing that an op is still to read.
  bool at_rest() const {
    return versions_.size() == 1 && stashed_.empty() && !predicted_[0].weights.numbers &&
           !predicted_[1].weights.numbers;
  }

  int updates() const { return newest_; }
  int delay() const { return delay_; }
  int most_buffers() const { return most_buffers_; }
  std::vector<double> download() const;  ///< The newest version, as updates start from it.

 private:
  struct Predicted {
    Weights weights;
    int readers = 0;
  };
  WeightVersion next_version(const WeightVersion& from, bool in_place);
  void update_ranges(const UpdateOptions&, const void* gradient, const void* from, const WeightVersion& to);
  WeightVersion first_version(std::span<const double> start);
  bool has_part() const;
  std::int64_t updated_numbers() const { return updated_.back().state + updated_.back().count; }
  void count();
  void release(int version);

  DeviceMemory* memory_;
  const Training* training_;
  const WeightsRule* rule_;
  Readers readers_;
  int delay_ = 0, newest_ = 0, most_buffers_ = 0;
  std::int64_t size_ = 0;
  std::vector<UpdatedRange> updated_;
  std::map<int, WeightVersion> versions_;
  Predicted predicted_[2];          ///< [0] for forwards, [1] for backwards.
  std::map<int, Weights> stashed_;  ///< By micro-batch.
  OptimizerState state_;
  std::vector<Array> state_arrays_;
  bool averages_ = false;
};

}  // namespace stagecraft::real
