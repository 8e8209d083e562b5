// The weight versions, predictions and optimizer state of a stage on a device; frees a version after its last reader.

#include "backends/real/weight_store.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft::real {
namespace {

bool reads_weights(InstructionKind kind) { return kind < InstructionKind::Update; }

/// Gradients go back to what the forward used, but only a forward looks ahead.
bool backward_side(const Instruction& i) { return i.kind != InstructionKind::Forward; }

}  // namespace

Readers count_readers(const Program& program, StageId stage, DeviceId device) {
  Readers readers;
  int newest[2] = {-1, -1};
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    if (i.device != device || i.stage != stage || !i.is_compute()) continue;
    if (i.kind == InstructionKind::Predict) newest[program.prediction(i).for_backward] = n.value;
    if (!reads_weights(i.kind)) continue;
    if (i.weights == WeightsFrom::Version) {
      if (readers.of_version.size() <= static_cast<std::size_t>(i.version()))
        readers.of_version.resize(static_cast<std::size_t>(i.version()) + 1, 0);
      ++readers.of_version[i.version()];
    } else if (i.weights == WeightsFrom::Predicted) {
      ++readers.of_prediction[newest[backward_side(i)]];
    } else {
      readers.same_weights[i.micro_batch()] = true;
    }
  }
  return readers;
}

WeightStore::WeightStore(DeviceMemory& memory, std::span<const double> start, std::vector<UpdatedRange> updated,
                         const Training& training, const WeightsRule& rule, bool learns, Readers readers, int delay)
    : memory_(&memory),
      training_(&training),
      rule_(&rule),
      readers_(std::move(readers)),
      delay_(delay),
      size_(static_cast<std::int64_t>(start.size())),
      updated_(std::move(updated)) {
  versions_[0] = first_version(start);
  const auto state = [&](bool wanted, Use use) -> void* {
    if (!wanted || !learns) return nullptr;
    Array array(memory, 1, updated_numbers(), use);
    memory.kernels().zero(array.data(), bytes_of(memory.kernels(), array.tensor()));
    state_arrays_.push_back(array);
    return array.data();
  };
  const OptimizerStateTensors tensors = state_tensors(training.optimizer.kind, rule);
  state_.first = state(tensors.first, Use::Optimizer);
  state_.second = state(tensors.second, Use::Optimizer);
  state_.last = state(tensors.last, Use::Optimizer);
  state_.bare = state(tensors.bare, Use::Optimizer);
  averages_ = learns && rule.backward == BackwardWeights::Reconstruct && delay > 0;
  state_.average = state(averages_, Use::Weights);
  count();
}

/// In mixed precision what is not updated here has no wide numbers, except while the first version is made.
WeightVersion WeightStore::first_version(std::span<const double> start) {
  Kernels& kernels = memory_->kernels();
  DeviceMemory apart(kernels);
  Array first(has_part() ? apart : *memory_, 1, size_, Use::Weights);
  kernels.upload(start, first.data());
  const Array computed = rounded(*memory_, first, Use::Weights);
  if (!has_part()) return {first, computed};
  std::vector<double> numbers;
  for (const UpdatedRange& range : updated_) {
    const auto begin = start.begin() + range.weights;
    numbers.insert(numbers.end(), begin, begin + range.count);
  }
  const Array part(*memory_, 1, updated_numbers(), Use::Weights);
  kernels.upload(numbers, part.data());
  return {part, computed};
}

bool WeightStore::has_part() const { return memory_->kernels().width() == kMixedWidth && updated_numbers() < size_; }

Weights WeightStore::read(const Instruction& i) {
  if (i.weights == WeightsFrom::Stashed) return stashed_.at(i.micro_batch());
  Weights weights;
  if (i.weights == WeightsFrom::Predicted) {
    weights = predicted_[backward_side(i)].weights;
  } else {
    const auto it = versions_.find(i.version());
    if (it != versions_.end()) weights = {it->second.computed, i.version()};
  }
  if (!weights.numbers || weights.version != i.version())
    throw InternalError(fmt::format("stage {}: micro-batch {} wants weights version {}, which is not there",
                                    i.stage.value, i.micro_batch(), i.version()));
  if (i.kind == InstructionKind::Forward && readers_.same_weights.contains(i.micro_batch()))
    stashed_[i.micro_batch()] = weights;
  return weights;
}

void WeightStore::done(const Instruction& i) {
  if (i.weights == WeightsFrom::Version) {
    --readers_.of_version[i.version()];
    release(i.version());
  } else if (i.weights == WeightsFrom::Predicted) {
    Predicted& p = predicted_[backward_side(i)];
    if (--p.readers == 0) p.weights = {};
  }
  const bool last = i.kind == InstructionKind::Backward || i.kind == InstructionKind::WeightGradient;
  if (last) stashed_.erase(i.micro_batch());
  count();
}

void WeightStore::release(int version) {
  const std::size_t v = version;
  if (version != newest_ && (v >= readers_.of_version.size() || readers_.of_version[v] == 0)) versions_.erase(version);
}

void WeightStore::predict(InstructionId id, const Prediction& wanted) {
  Predicted& p = predicted_[wanted.for_backward];
  p = {};
  if (wanted.version != newest_)
    throw InternalError(
        fmt::format("a prediction starts from version {}, but the newest is {}", wanted.version, newest_));
  const Array to(*memory_, 1, size_, Use::Weights);
  p.readers = readers_.of_prediction[id.value];
  const void* from = newest().data();
  Kernels& kernels = memory_->kernels();
  const int horizon = wanted.horizon;
  if (wanted.for_backward && rule_->backward == BackwardWeights::Reconstruct)
    kernels.reconstruct(training_->optimizer, rule_->reconstruction, horizon, size_, state_, from, to.data());
  else
    kernels.predict(training_->optimizer, rule_->direction, horizon, size_, state_, from, to.data());
  p.weights = {rounded(*memory_, to, Use::Weights), newest_};
  count();
}

void WeightStore::update(const Instruction& i, const void* gradient) {
  UpdateOptions options;
  options.delay = delay_;
  options.spike_compensation = rule_->spike_compensation;
  options.reconstruction = rule_->reconstruction;
  if (rule_->shrink_updates > 0 && delay_ > 0) {
    const double share = std::min(1.0, static_cast<double>(newest_) / rule_->shrink_updates);
    options.rate_scale = std::pow(delay_, -(1 - share));
  }
  const WeightVersion from = versions_.at(newest_);
  const std::size_t v = newest_;
  const bool wanted = v < readers_.of_version.size() && readers_.of_version[v] > 0;
  // Predictions that kept the tensor itself hold it too.
  const WeightVersion to = next_version(from, !wanted);
  update_ranges(options, gradient, from.updated.data(), to);
  const int old = newest_++;
  if (newest_ != i.version())
    throw InternalError(
        fmt::format("stage {}: update {} makes version {}, not {}", i.stage.value, i.update(), newest_, i.version()));
  versions_[newest_] = to;
  release(old);
  count();
}

/// Arrays for what an update makes.
WeightVersion WeightStore::next_version(const WeightVersion& from, bool in_place) {
  if (in_place) return from;
  const Array updated(*memory_, 1, from.updated.tensor().size(), Use::Weights);
  if (from.updated.data() == from.computed.data()) return {updated, updated};
  return {updated, Array(*memory_, 1, size_, Use::Weights, NumberWidth::Narrow)};
}

/// All ranges are of the same step.
void WeightStore::update_ranges(const UpdateOptions& options, const void* gradient, const void* from,
                                const WeightVersion& to) {
  Kernels& kernels = memory_->kernels();
  const auto width = static_cast<std::int64_t>(wide_width(kernels.width()));
  const OptimizerState before = state_;
  for (const UpdatedRange& range : updated_) {
    OptimizerState part = before;
    for (void** array : {&part.first, &part.second, &part.last, &part.bare, &part.average})
      if (*array) *array = static_cast<char*>(*array) + range.state * width;
    const std::int64_t first = (has_part() ? range.state : range.weights) * width;
    const Tensor updated{static_cast<char*>(to.updated.data()) + first, 1, range.count, true};
    kernels.update(training_->optimizer, options, range.count,
                   static_cast<const char*>(gradient) + range.gradient * width, part,
                   static_cast<const char*>(from) + first, updated.data);
    state_.steps = part.steps, state_.counter = part.counter;
    if (to.updated.data() == to.computed.data()) continue;
    const auto narrow = static_cast<std::int64_t>(kernels.width());
    kernels.narrow(updated, {static_cast<char*>(to.computed.data()) + range.weights * narrow, 1, range.count});
  }
}

void WeightStore::count() {
  int buffers = static_cast<int>(versions_.size()) + averages_;
  std::vector<void*> seen;
  for (const auto& [version, arrays] : versions_) seen.push_back(arrays.computed.data());
  const auto add = [&](const Array& array) {
    if (!array || std::find(seen.begin(), seen.end(), array.data()) != seen.end()) return;
    seen.push_back(array.data());
    ++buffers;
  };
  for (const Predicted& p : predicted_) add(p.weights.numbers);
  for (const auto& [micro, weights] : stashed_) add(weights.numbers);
  most_buffers_ = std::max(most_buffers_, buffers);
}

std::vector<double> WeightStore::download() const {
  std::vector<double> numbers(static_cast<std::size_t>(newest().tensor().size()));
  memory_->kernels().download(newest().data(), numbers);
  return numbers;
}

}  // namespace stagecraft::real
