#pragma once

#include <doctest/doctest.h>

#include <map>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "backends/real/session.hpp"
#include "tests/convergence/methods.hpp"

namespace stagecraft::test {

/// Predicted weights, by the number of updates in the weights that the prediction started from.
using Predictions = std::map<int, std::vector<double>>;

/// Kernels of the CPU that record their predictions.
class Recorder : public real::Kernels {
 public:
  Recorder(std::unique_ptr<real::Kernels> kernels, Predictions& predictions)
      : kernels_(std::move(kernels)), predictions_(predictions) {}

  std::size_t width() const override { return kernels_->width(); }
  void* allocate(std::size_t bytes) override { return kernels_->allocate(bytes); }
  void release(void* data, std::size_t bytes) override { kernels_->release(data, bytes); }
  void copy(const void* from, void* to, std::size_t bytes) override { kernels_->copy(from, to, bytes); }
  void zero(void* to, std::size_t bytes) override { kernels_->zero(to, bytes); }
  void upload(std::span<const double> from, void* to) override { kernels_->upload(from, to); }
  void download(const void* from, std::span<double> to) override { kernels_->download(from, to); }
  bool finite(real::Tensor tensor) override { return kernels_->finite(tensor); }
  void forward(const real::Call& call) override { kernels_->forward(call); }
  void input_gradient(const real::Call& call, real::Tensor d_output, std::span<const real::Gradient> d) override {
    kernels_->input_gradient(call, d_output, d);
  }
  void weight_gradient(const real::Call& call, real::Tensor d_output, void* d_weights) override {
    kernels_->weight_gradient(call, d_output, d_weights);
  }
  void add(real::Tensor from, real::Tensor to) override { kernels_->add(from, to); }
  void scale(double factor, real::Tensor tensor) override { kernels_->scale(factor, tensor); }
  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    kernels_->update(rule, options, count, gradient, state, from, to);
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    kernels_->predict(rule, direction, horizon, count, state, from, to);
    std::vector<double> numbers(static_cast<std::size_t>(count));
    kernels_->download(to, numbers);
    const auto [recorded, first] =
        predictions_.emplace(state.steps, numbers);  // While the pipeline fills there are several.
    REQUIRE((first || recorded->second == numbers));
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    kernels_->reconstruct(rule, kind, delay, count, state, from, to);
  }

 private:
  std::unique_ptr<real::Kernels> kernels_;
  Predictions& predictions_;
};

/// The first stage of a run that predicts.
struct FirstStage {
  std::vector<std::vector<double>> versions;  ///< Behind none, one, two, ... updates.
  Predictions predictions;
  std::map<int, int> backward;  ///< Version that a backward read, by that of its forward; both from the Program.
};

inline FirstStage first_stage(const Method& method, Training training, int updates, int depth = 8) {
  training.evaluate_every = 1;
  const Case c(method.policy, training.task, depth);
  const WeightsRule rule = method.rule();
  const Program program =
      with_workload(real_program(c.schedule, c.plan, rule, updates), c.model, c.plan, rule, training);
  FirstStage first;
  const auto kernels = [&](std::size_t width, DeviceId device) -> std::unique_ptr<real::Kernels> {
    auto real_kernels = cpu::make_kernels(width, device);
    if (device != DeviceId{0}) return real_kernels;
    return std::make_unique<Recorder>(std::move(real_kernels), first.predictions);
  };
  real::Session session(program, kernels, [](DeviceId) { return true; });
  real::ExecutorOptions options;
  options.one_thread = true;
  real::run_program(program, session, nullptr, options);
  const auto& snapshots = session.stage_on(StageId{0}, DeviceId{0}).snapshots();
  for (int u = 0; u <= updates; ++u) first.versions.push_back(snapshots.at(u));
  std::map<int, int> forward;
  for (const Instruction& i : program.instructions) {
    if (i.device != DeviceId{0} || i.stage != StageId{0}) continue;
    if (i.kind == InstructionKind::Forward && i.weights == WeightsFrom::Predicted)
      forward[i.micro_batch()] = i.version();
    if (i.kind == InstructionKind::Backward && forward.contains(i.micro_batch()))
      first.backward[forward[i.micro_batch()]] = i.version();
  }
  return first;
}

/// PipeOptim's ||W_hat - W(b)|| / ||W(f) - W(b)|| on the first stage, mean over the forwards from the second update on:
/// W_hat is what the forward used, f the version that it was predicted from, b that of the backward. Above 1 it is
/// better not to predict.
inline double prediction_error(const FirstStage& first) {
  double sum = 0;
  int count = 0;
  for (const auto& [f, b] : first.backward) {
    if (f < 2) continue;
    const auto &from = first.versions[f], &used = first.versions[b];
    sum += distance(first.predictions.at(f), used) / distance(from, used);
    ++count;
  }
  REQUIRE(count > 0);
  return sum / count;
}

inline double prediction_error(const Training& training, int updates, int depth = 8, bool released = false) {
  return prediction_error(first_stage({"pipeoptim", released}, training, updates, depth));
}

}  // namespace stagecraft::test
