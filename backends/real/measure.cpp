#include "backends/real/measure.hpp"

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>

#include <fmt/format.h>

#include "backends/real/measure_messages.hpp"
#include "backends/real/measure_operation.hpp"
#include "backends/real/net_run.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/host.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft::real {
namespace {

constexpr int kWarmUps = 2, kFewest = 7, kMost = 400;

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point t) { return std::chrono::duration<double>(Clock::now() - t).count(); }

double quantile(std::vector<double> values, double share) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size() - 1) + 0.5)];
}

/// Readings of one kind of layer: one entry a layer and run.
struct Readings {
  std::vector<double> forward, input_gradient, weight_gradient, total;
};

Plan whole_model(const ModelGraph& model, int samples) {
  Plan plan;
  Stage& stage = plan.stages.emplace_back();
  for (std::size_t l = 0; l < model.layers.size(); ++l) stage.layers.emplace_back(static_cast<std::int64_t>(l));
  stage.devices = {DeviceId{0}};
  stage.micro_batch_size = plan.mini_batch = samples;
  return plan;
}

/// One thread's runs of the whole model with `samples` samples.
class LayerRuns {
 public:
  LayerRuns(const ProfileRequest& request, int samples, const KernelFactory& factory)
      : model_(request.model),
        samples_(samples),
        kernels_(factory(width_of(request.model))),
        memory_(*kernels_),
        plan_(whole_model(model_, samples)),
        net_(compile_stage(model_, plan_, StageId{0}, kernels_->width())) {
    const TaskDef& task = get_from(tasks::all(), "task", request.training.task);
    data_ = task.make(task_shape(model_, samples), request.training.seed);
    weights_ = Array(memory_, 1, net_.weights, Use::Weights);
    sum_ = Array(memory_, 1, net_.weights, Use::Gradients);
    kernels_->upload(initial_weights(net_, model_, request.training.seed, false), weights_.data());
    kernels_->zero(sum_.data(), static_cast<std::size_t>(net_.weights) * kernels_->width());
  }

  void once(bool counts) {
    NodeTimes times;
    times.forward.assign(net_.nodes.size(), 0);
    times.input_gradient = times.weight_gradient = times.forward;
    const NetRun run(net_, memory_, *data_, &times);
    // Other samples each time, as in training: what was looked up once is cheaper the second time.
    const Samples samples{samples_ * round_++, samples_, samples_, false};
    Activations a;
    run.forward(samples, weights_.data(), true, a);
    run.backward(samples, weights_.data(), true, sum_.data(), a);
    if (counts) file(times);
  }

  std::map<std::string, Readings> readings;

 private:
  void file(const NodeTimes& times) {
    for (std::size_t n = 0; n < net_.nodes.size();) {
      const int layer = net_.nodes[n].layer;
      double f = 0, i = 0, w = 0;
      for (; n < net_.nodes.size() && net_.nodes[n].layer == layer; ++n)
        f += times.forward[n], i += times.input_gradient[n], w += times.weight_gradient[n];
      Readings& r = readings[signature(model_.layers[static_cast<std::size_t>(layer)], model_.precision)];
      r.forward.push_back(f);
      if (i > 0) r.input_gradient.push_back(i);  // None where it would be that of data.
      r.weight_gradient.push_back(w);
      r.total.push_back(f + i + w);
    }
  }

  const ModelGraph& model_;
  int samples_;
  std::int64_t round_ = 0;
  std::unique_ptr<Kernels> kernels_;
  DeviceMemory memory_;
  Plan plan_;
  StageNet net_;
  std::unique_ptr<Dataset> data_;
  Array weights_, sum_;
};

/// All threads begin each run together, so that each is measured in the company of the others.
void measure_layers(const ProfileRequest& request, int samples, const KernelFactory& factory, Profile& profile) {
  std::vector<std::unique_ptr<LayerRuns>> runs;
  for (int t = 0; t < request.threads; ++t) runs.push_back(std::make_unique<LayerRuns>(request, samples, factory));
  std::barrier together(request.threads);
  std::atomic<bool> more{true};
  const Clock::time_point begin = Clock::now();
  std::vector<std::thread> threads;
  for (int t = 0; t < request.threads; ++t)
    threads.emplace_back([&, t] {
      for (int round = 0; more; ++round) {
        together.arrive_and_wait();
        runs[static_cast<std::size_t>(t)]->once(round >= kWarmUps);
        together.arrive_and_wait();
        const int counted = round + 1 - kWarmUps;
        const bool enough = counted >= kMost || (counted >= kFewest && seconds_since(begin) > request.seconds);
        if (t == 0 && enough) more = false;
        together.arrive_and_wait();
      }
    });
  for (std::thread& t : threads) t.join();
  std::map<std::string, Readings> all;
  for (const auto& run : runs)
    for (const auto& [name, r] : run->readings) {
      Readings& sum = all[name];
      sum.forward.insert(sum.forward.end(), r.forward.begin(), r.forward.end());
      sum.input_gradient.insert(sum.input_gradient.end(), r.input_gradient.begin(), r.input_gradient.end());
      sum.weight_gradient.insert(sum.weight_gradient.end(), r.weight_gradient.begin(), r.weight_gradient.end());
      sum.total.insert(sum.total.end(), r.total.begin(), r.total.end());
    }
  for (const auto& [name, r] : all) {
    const double median = quantile(r.total, 0.5);
    profile.layers.push_back({name, samples, Seconds{quantile(r.forward, 0.5)},
                              Seconds{quantile(r.input_gradient, 0.5)}, Seconds{quantile(r.weight_gradient, 0.5)},
                              median > 0 ? (quantile(r.total, 0.75) - quantile(r.total, 0.25)) / 2 / median : 0});
  }
}

/// Arrays and optimizer state of so many numbers.
class UpdateRuns {
 public:
  UpdateRuns(const ProfileRequest& request, std::int64_t count, Kernels& kernels)
      : rule_(request.training.optimizer), count_(count), kernels_(kernels), memory_(kernels) {
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
    return median([&] {
      kernels_.update(rule_, {}, count_, arrays_[1].data(), state_, arrays_[0].data(), arrays_[0].data());
      kernels_.zero(arrays_[1].data(), bytes());
    });
  }
  Seconds predict() {
    return median([&] {
      kernels_.predict(rule_, Direction::Optimizer, 1, count_, state_, arrays_[0].data(), arrays_[1].data());
    });
  }

 private:
  std::size_t bytes() const { return static_cast<std::size_t>(count_) * kernels_.width(); }

  template <class F>
  static Seconds median(F&& f) {
    std::vector<double> times;
    const Clock::time_point begin = Clock::now();
    while (times.size() < kFewest + kWarmUps || (times.size() < kMost && seconds_since(begin) < 0.05)) {
      const Clock::time_point start = Clock::now();
      f();
      times.push_back(seconds_since(start));
    }
    times.erase(times.begin(), times.begin() + kWarmUps);
    return Seconds{quantile(times, 0.5)};
  }

  OptimizerRule rule_;
  std::int64_t count_;
  Kernels& kernels_;
  DeviceMemory memory_;
  std::vector<Array> arrays_;
  OptimizerState state_;
};

/// An update reads and writes more than fits a cache, or less: sizes from small to that of the whole model.
void measure_updates(const ProfileRequest& request, const KernelFactory& factory, Profile& profile) {
  const double most = std::max(1024.0, request.model.parameters());
  const std::unique_ptr<Kernels> kernels = factory(width_of(request.model));
  for (double size = 256; size < 8 * most; size *= 8) {
    UpdateRuns runs(request, static_cast<std::int64_t>(std::min(size, most)), *kernels);
    profile.updates.push_back({std::floor(std::min(size, most)), runs.update(), runs.predict()});
    if (size >= most) break;
  }
}

/// Every thread has weights and gradients of its own.
void require_memory(const ProfileRequest& request) {
  const Bytes needed{request.threads * 2.0 * request.model.parameters() * static_cast<double>(width_of(request.model))};
  const Bytes there = free_memory();
  if (needed > there)
    throw Infeasible("memory",
                     fmt::format("to measure the model takes about {} on this machine, which has {} free",
                                 to_text(needed), to_text(there)),
                     "a smaller model: layers are known by their shapes, so a few of each kind will do");
}

}  // namespace

Profile measure(const ProfileRequest& request, const KernelFactory& factory) {
  require_memory(request);
  Profile profile;
  profile.threads = request.threads;
  for (const int samples : request.samples) measure_layers(request, samples, factory, profile);
  measure_updates(request, factory, profile);
  profile.operation = measure_operation(factory);
  const MessageFigures messages = measure_messages();
  profile.latency = messages.latency;
  profile.bandwidth = messages.bandwidth;
  return profile;
}

}  // namespace stagecraft::real
