// Goes over the ops of one stage, says by a WeightsRule which version of the weights each one reads, and counts weight
// buffers; reads.cpp does this for all stages, task_needs.cpp for single tasks.

#include "sim/weights/stage_walk.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

int forward_horizon(Horizon horizon, const StagePlace& place, int exact) {
  const int k = place.stage, depth = place.depth, each = place.micro_batches;
  switch (horizon) {
    case Horizon::Exact:
      return exact;
    case Horizon::StageDepth:
      return (depth - 1 - k + each - 1) / each;
    case Horizon::StageDepthPlusOne:
      return depth - k;
    case Horizon::ToCompletion:
      return k / 2 + depth - 1 - k;
    case Horizon::PerMiniBatch:
      // round((T + D - k/2 - 2) / T), halves up. Twice the numerator, so that k/2 is whole.
      return (2 * (each + depth - 2) - k + each) / (2 * each);
  }
  return 0;
}

int backward_horizon(Horizon horizon, const StagePlace& place) {
  switch (horizon) {
    case Horizon::Exact:
    case Horizon::StageDepth:
    case Horizon::StageDepthPlusOne:
      return 0;
    case Horizon::ToCompletion:
      return place.stage / 2;
    case Horizon::PerMiniBatch:
      return (place.micro_batches + place.stage / 2 - 1) / place.micro_batches;
  }
  return 0;
}

namespace {

template <class T>
T& at_micro(std::vector<T>& list, int micro, const T& absent) {
  const std::size_t m = micro;
  if (list.size() <= m) list.resize(m + 1, absent);
  return list[m];
}

}  // namespace

void StageDelays::add(const Op& op) {
  if (op.kind == OpKind::Update) ++updates_;
  if (op.kind == OpKind::Forward) at_micro(forward_, op.micro, -1) = updates_;
  if (!passes_gradient(op.kind)) return;
  at_micro(backward_, op.micro, -1) = updates_;
  max_delay_ = std::max(max_delay_, delay(op.micro));
}

int StageDelays::delay(int micro) const {
  const std::size_t m = micro;
  const bool both = m < forward_.size() && m < backward_.size() && forward_[m] >= 0 && backward_[m] >= 0;
  return both ? backward_[m] - forward_[m] : 0;
}

int Lifetimes::make(int at) {
  first_.push_back(at);
  last_.push_back(at);
  return static_cast<int>(first_.size()) - 1;
}

int Lifetimes::peak() const {
  const std::int32_t end = last_.empty() ? 0 : *std::max_element(last_.begin(), last_.end());
  std::vector<int> change(end + 2, 0);
  for (std::size_t i = 0; i < first_.size(); ++i) {
    ++change[first_[i]];
    --change[last_[i] + 1];
  }
  int alive = 0, peak = 0;
  for (const int c : change) peak = std::max(peak, alive += c);
  return peak;
}

StageWalk::StageWalk(const Plan& plan, StageId stage, const StagePlace& place, int drain_every, const WeightsRule& rule,
                     const StageDelays& delays)
    : stage_(plan.stage(stage)),
      place_(place),
      per_iteration_(plan.micro_batches(stage)),
      own_(plan.micro_batches_run(stage)),
      drain_every_(drain_every),
      rule_(rule),
      delays_(delays) {
  versions_.push_back(lifetimes_.make(0));
}

StageNeeds StageWalk::needs() {
  if (at_ > 0) lifetimes_.use(versions_.back(), at_ - 1);
  const bool averages = rule_.reconstructs() && delays_.max_delay() > 0;
  return {delays_.max_delay(), lifetimes_.peak() + averages};
}

WeightRead StageWalk::next(const Op& op) {
  if (op.kind == OpKind::Update) {
    update();
    ++at_;
    return {.version = updates_};
  }
  if (op.kind == OpKind::Scores || op.kind == OpKind::ScoresGradient) {  // Each rank has one version of its words.
    lifetimes_.use(versions_.back(), at_++);
    return {.version = updates_};
  }
  enter(op.micro);
  WeightRead read;
  int buffer = 0;
  if (delays_.updates() > 0) {
    read = op.kind == OpKind::Forward ? forward(op, buffer) : backward(op, buffer);
    Used& used = at_micro(used_, op.micro, Used{});
    const bool is_forward = op.kind == OpKind::Forward;
    (is_forward ? used.forward : used.backward) = read;
    (is_forward ? used.forward_buffer : used.backward_buffer) = buffer;
  }
  lifetimes_.use(buffer, at_++);
  return read;
}

/// The previous version lives at least until here: the step starts from it, in place when no later op reads it.
void StageWalk::update() {
  const int before = versions_.back();
  if (at_ > 0) lifetimes_.use(before, at_ - 1);
  versions_.push_back(lifetimes_.make(at_));
  ++updates_;
}

/// After a drain every update is done, so the newest version is what counting starts from again.
void StageWalk::enter(int micro) {
  const int iteration = micro / per_iteration_;
  const int drained = drain_every_ > 0 ? iteration / drain_every_ * drain_every_ : 0;
  if (drained != drained_) base_ = updates_;
  drained_ = drained;
  window_ = own_index(micro) / place_.micro_batches;
}

/// Position among the micro-batches that the stage runs itself, since the drain.
int StageWalk::own_index(int micro) const {
  int inside = micro % per_iteration_;
  if (!stage_.micros.empty())
    inside =
        static_cast<int>(std::lower_bound(stage_.micros.begin(), stage_.micros.end(), inside) - stage_.micros.begin());
  return (micro / per_iteration_ - drained_) * own_ + inside;
}

WeightRead StageWalk::version(int number, const Op& op, int& buffer) {
  if (number > updates_)
    throw Infeasible("weights",
                     fmt::format("{} would read version {} of its weights, but only {} are made before it", to_text(op),
                                 number, updates_),
                     fmt::format("set run.micro_batches to {} or more, or choose other weights", place_.depth - 1));
  buffer = versions_[number];
  return {.version = number};
}

WeightRead StageWalk::forward(const Op& op, int& buffer) {
  switch (rule_.forward) {
    case ForwardWeights::Current:
      return version(updates_, op, buffer);
    case ForwardWeights::DoubleBuffer:
      return version(base_ + std::max(0, window_ - 1), op, buffer);
    case ForwardWeights::Vertical:
      return version(base_ + std::max(0, own_index(op.micro) - (place_.depth - 1)) / place_.micro_batches, op, buffer);
    case ForwardWeights::Predict:
      return predict(false, forward_horizon(rule_.horizon, place_, delays_.delay(op.micro)), buffer);
  }
  return {};
}

/// A recomputation comes first and predicts; the backward and the weight gradient after it use the same weights.
WeightRead StageWalk::backward(const Op& op, int& buffer) {
  if (rule_.backward == BackwardWeights::Current) return version(updates_, op, buffer);
  const Used& used = at_micro(used_, op.micro, Used{});
  if (rule_.backward == BackwardWeights::SameAsForward) {
    buffer = used.forward_buffer;
    const bool predicted = used.forward.from == WeightsFrom::Predicted;
    return {.version = used.forward.version, .from = predicted ? WeightsFrom::Stashed : WeightsFrom::Version};
  }
  if (used.backward_buffer >= 0) {
    buffer = used.backward_buffer;
    return {.version = used.backward.version, .from = used.backward.from};
  }
  // A reconstruction goes back to the version of the forward.
  const int horizon = rule_.reconstructs() ? updates_ - used.forward.version : backward_horizon(rule_.horizon, place_);
  return predict(true, horizon, buffer);
}

WeightRead StageWalk::predict(bool backward, int horizon, int& buffer) {
  Prediction& last = predictions_[backward];
  const bool shared = rule_.predicts() && rule_.horizon == Horizon::PerMiniBatch;
  const bool again = shared && last.window == window_;
  last.window = window_;
  if (horizon <= 0) {
    buffer = versions_.back();
    return {.version = updates_};
  }
  if (!again) last.version = updates_, last.buffer = lifetimes_.make(at_);
  buffer = last.buffer;
  return {.version = last.version, .horizon = again ? -1 : horizon, .from = WeightsFrom::Predicted};
}

}  // namespace stagecraft
