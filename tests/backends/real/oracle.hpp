#pragma once

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "backends/cpu/kernels.hpp"
#include "backends/real/net_run.hpp"
#include "backends/real/stage_weights.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// What training without a pipeline gives.
struct Expected {
  IdVector<StageId, std::vector<double>> weights;
  std::vector<double> losses;  ///< One for each iteration.
};

/// An optimizer state of its own for every version, so that old ones can be looked at.
class StateHistory {
 public:
  StateHistory(real::DeviceMemory& memory, std::int64_t size) : memory_(&memory), size_(size) { push(nullptr); }

  /// A copy of the newest, to be changed by one step.
  real::OptimizerState& next() { return push(&all_.back().state); }
  const real::OptimizerState& at(int version) const { return all_[version].state; }

 private:
  struct Entry {
    real::OptimizerState state;
    std::vector<real::Array> arrays;
  };
  real::OptimizerState& push(const real::OptimizerState* from) {
    Entry entry;
    const auto copy = [&](void* const old) {
      const std::size_t bytes = static_cast<std::size_t>(size_) * memory_->kernels().width();
      const real::Array& array = entry.arrays.emplace_back(*memory_, 1, size_, real::Use::Optimizer);
      if (old)
        memory_->kernels().copy(old, array.data(), bytes);
      else
        memory_->kernels().zero(array.data(), bytes);
      return array.data();
    };
    entry.state = {copy(from ? from->first : nullptr), copy(from ? from->second : nullptr),
                   copy(from ? from->last : nullptr), copy(from ? from->bare : nullptr),
                   copy(from ? from->average : nullptr)};
    entry.state.steps = from ? from->steps : 0;
    all_.push_back(std::move(entry));
    return all_.back().state;
  }

  real::DeviceMemory* memory_;
  std::int64_t size_;
  std::vector<Entry> all_;
};

/// How a policy chooses weights, as formulas of the page on weights versions: k of D stages, micro-batch q since the
/// drain, T micro-batches for each update. Written down apart from sim/weights.
struct PolicyFormulas {
  std::string name;
  int depth = 1, each = 1;

  int newest_forward(int k, int q) const { return std::max(0, q - (depth - 1 - k)) / each; }
  int newest_backward(int q) const { return q / each; }
  int delay(int k) const { return (depth - 1 - k + each - 1) / each; }

  int forward(int k, int q) const {
    if (name == "vertical-sync") return std::max(0, q - (depth - 1)) / each;
    if (name == "2bw") return std::max(0, q / each - 1);
    if (name == "xpipe") return newest_forward(k, q / each * each);  // As the update's first micro-batch.
    return newest_forward(k, q);
  }
  /// Updates that the forward predicts; 0: none.
  int forward_horizon(int k, int q) const {
    const int rest = depth - 1 - k;
    if (name == "pipeoptim" || name == "spectrain-v2") return delay(k);
    if (name == "pipeoptim released") return depth - k;  // Not divided by T.
    if (name == "spectrain") return k / 2 + rest;
    if (name == "geometric") return newest_backward(q) - newest_forward(k, q);
    if (name == "xpipe") return static_cast<int>(std::floor((each + depth - k / 2.0 - 2) / each + 0.5));
    return 0;
  }
  bool same_as_forward() const {
    return name == "stash" || name == "vertical-sync" || name == "2bw" || name == "spectrain-v2";
  }
  int backward_horizon(int k) const {
    if (name == "spectrain") return k / 2;
    if (name == "xpipe") return (each + k / 2 - 1) / each;
    return 0;
  }
  bool reconstructs() const { return name == "pipemare" || name == "layerpipe2"; }
  Direction direction() const {
    if (name == "pipeoptim released") return Direction::NextMomentum;
    if (name == "spectrain" || name == "spectrain-v2") return Direction::Momentum;
    return name == "geometric" ? Direction::Geometric : Direction::Optimizer;
  }
};

/// Asynchronous 1F1B on a chain as the recurrence that it is: one micro-batch after the other through all stages, each
/// op with the weights that its formula names.
class SequentialRecurrence {
 public:
  SequentialRecurrence(const ModelGraph& model, const Plan& plan, const Training& training, PolicyFormulas policy)
      : workload_(make_workload(model, plan, {}, training)),
        plan_(plan),
        training_(training),
        policy_(std::move(policy)),
        kernels_(cpu::make_kernels(static_cast<std::size_t>(model.precision.weight))),
        memory_(*kernels_) {
    const TaskDef& task = get_from(tasks::catalog(), "task", training.task);
    data_ = task.make(workload_.task, training.seed);
    for (const StageId k : plan.stages.ids()) {
      Stage_& s = stages_.emplace_back(
          Stage_{real::compile_stage(workload_, k, static_cast<std::size_t>(model.precision.weight)), {}, {}, {}, {}});
      const auto start = real::initial_weights(s.net, workload_, training.optimizer.kind == OptimizerKind::Integer);
      kernels_->upload(start, s.versions.emplace_back(array(s)).data());
      s.states = std::make_unique<StateHistory>(memory_, s.net.weights);
      s.sum = array(s);
    }
  }

  Expected run(int iterations, int drain_every) {
    const int each = plan_.micro_batches(StageId{0});
    Expected expected;
    expected.losses.assign(static_cast<std::size_t>(iterations), 0);
    for (int n = 0; n < iterations * each; ++n) {
      const int since = drain_every > 0 ? n % (drain_every * each) : n;
      const int base = n / each - since / each;
      expected.losses[n / each] += micro_batch(n, since, base);
      if (n % each == each - 1)
        for (int k = 0; k < plan_.stage_count(); ++k) update(k);
    }
    for (Stage_& s : stages_) {
      auto& numbers = expected.weights.emplace_back(static_cast<std::size_t>(s.net.weights));
      kernels_->download(s.versions.back().data(), numbers);
    }
    return expected;
  }

 private:
  struct Stage_ {
    real::StageNet net;
    std::vector<real::Array> versions;
    std::unique_ptr<StateHistory> states;
    real::Array sum;
    real::Array predicted[2];  ///< By XPipe's first micro-batch.
  };

  real::Array array(const Stage_& s) {
    real::Array a(memory_, 1, s.net.weights, real::Use::Weights);
    kernels_->zero(a.data(), bytes(s));
    return a;
  }
  std::size_t bytes(const Stage_& s) const { return static_cast<std::size_t>(s.net.weights) * kernels_->width(); }

  real::Array predict(Stage_& s, int version, int horizon) {
    const real::Array from = s.versions[version];
    if (horizon == 0) return from;
    real::Array to = array(s);
    kernels_->predict(training_.optimizer, policy_.direction(), horizon, s.net.weights, s.states->at(version),
                      from.data(), to.data());
    return to;
  }

  real::Array forward_weights(Stage_& s, int k, int q, int base) {
    if (policy_.name != "xpipe") return predict(s, base + policy_.forward(k, q), policy_.forward_horizon(k, q));
    if (q % policy_.each == 0) s.predicted[0] = predict(s, base + policy_.forward(k, q), policy_.forward_horizon(k, q));
    return s.predicted[0];
  }

  real::Array backward_weights(Stage_& s, int k, int q, int base, const real::Array& forward) {
    if (policy_.same_as_forward()) return forward;
    const int version = base + policy_.newest_backward(q);
    if (policy_.reconstructs()) {
      const int delay = policy_.newest_backward(q) - policy_.newest_forward(k, q);
      const real::Array from = s.versions[version];
      if (delay == 0) return from;
      real::Array to = array(s);
      const auto kind = policy_.name == "pipemare" ? Reconstruction::UpdateAverage : Reconstruction::GradientAverage;
      kernels_->reconstruct(training_.optimizer, kind, delay, s.net.weights, s.states->at(version), from.data(),
                            to.data());
      return to;
    }
    if (policy_.name == "xpipe") {
      if (q % policy_.each == 0) s.predicted[1] = predict(s, version, policy_.backward_horizon(k));
      return s.predicted[1];
    }
    return predict(s, version, policy_.backward_horizon(k));
  }

  double micro_batch(int n, int q, int base) {
    const int size = plan_.stages.front().micro_batch_size;
    const real::Samples samples{static_cast<std::int64_t>(n) * size, size, plan_.mini_batch, false};
    std::vector<real::Activations> alive(stages_.size());
    std::vector<real::Array> used(stages_.size());
    double loss = 0;
    for (std::size_t k = 0; k < stages_.size(); ++k) {
      Stage_& s = stages_[k];
      alive[k].values.resize(s.net.values.size());
      if (k > 0)
        alive[k].values[s.net.inputs[0].values[0]] = alive[k - 1].values[stages_[k - 1].net.outputs[0].values[0]];
      used[k] = forward_weights(s, static_cast<int>(k), q, base);
      real::NetRun(s.net, memory_, *data_).forward(samples, used[k].data(), true, alive[k]);
      loss += real::NetRun(s.net, memory_, *data_).loss(alive[k].losses);
    }
    for (std::size_t k = stages_.size(); k-- > 0;) {
      Stage_& s = stages_[k];
      alive[k].gradients.resize(s.net.values.size());
      if (k + 1 < stages_.size())
        alive[k].gradients[s.net.outputs[0].values[0]] = alive[k + 1].gradients[stages_[k + 1].net.inputs[0].values[0]];
      const real::Array weights = backward_weights(s, static_cast<int>(k), q, base, used[k]);
      real::NetRun(s.net, memory_, *data_).backward(samples, weights.data(), true, s.sum.data(), alive[k]);
    }
    return loss;
  }

  void update(int k) {
    Stage_& s = stages_[k];
    const int done = static_cast<int>(s.versions.size()) - 1;
    real::UpdateOptions options;
    options.delay = policy_.delay(k);
    options.spike_compensation = policy_.name == "spike-compensation";
    if (policy_.name == "layerpipe2") options.reconstruction = Reconstruction::GradientAverage;
    if (policy_.name == "pipemare" && options.delay > 0)
      options.rate_scale = std::pow(options.delay, -(1 - std::min(1.0, done / 100.0)));
    const real::Array to = array(s);
    kernels_->update(training_.optimizer, options, s.net.weights, s.sum.data(), s.states->next(),
                     s.versions.back().data(), to.data());
    s.versions.push_back(to);
    kernels_->zero(s.sum.data(), bytes(s));
  }

  Workload workload_;
  const Plan& plan_;
  const Training& training_;
  PolicyFormulas policy_;
  std::unique_ptr<real::Kernels> kernels_;
  real::DeviceMemory memory_;
  std::unique_ptr<Dataset> data_;
  std::vector<Stage_> stages_;
};

/// Trains the whole model as one net without stages, one micro-batch after the other, with an update per iteration.
/// Weights come back by layer and operation, in the order of the model.
inline Expected sequential(const ModelGraph& model, const Training& training, int micro_batches, int size,
                           int iterations) {
  Plan plan;
  Stage& stage = plan.stages.emplace_back();
  for (std::size_t l = 0; l < model.layers.size(); ++l) stage.shape.layers.emplace_back(static_cast<std::int64_t>(l));
  stage.place_on({DeviceId{0}});
  stage.micro_batch_size = size;
  plan.mini_batch = micro_batches * size;
  return SequentialRecurrence(model, plan, training, {"naive", 1, micro_batches}).run(iterations, 1);
}

}  // namespace stagecraft::test
