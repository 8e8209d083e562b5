// Replicas that take whole micro-batches in turn, really trained, against the recurrence that it is.

#include <doctest/doctest.h>

#include <numeric>

#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"

namespace stagecraft::in_turn_test {
namespace {

/// PipeDream with replicas as formulas: stage s with r of its own and n devices from it on has w = floor((n - 1) / r)
/// forwards of each replica before its first backward. The j-th of a replica reads version max(0, j - w), forward and
/// backward, and version j + 1 is version j minus the mean gradient of the j-th micro-batches of all replicas.
class Recurrence {
 public:
  Recurrence(const ModelGraph& model, const Plan& plan, const Training& training)
      : workload_(make_workload(model, plan, {}, training)),
        plan_(plan),
        training_(training),
        kernels_(cpu::make_kernels(8)),
        memory_(*kernels_) {
    data_ = get_from(tasks::catalog(), "task", training.task).make(workload_.task, training.seed);
    int devices_after = plan.device_count();
    for (const StageId s : plan.stages.ids()) {
      TrainedStage& part = parts_.emplace_back(TrainedStage{real::compile_stage(workload_, s, 8), {}, {}, {}});
      part.replicas = static_cast<int>(plan.stage(s).leaders.size());
      part.ahead = (devices_after - 1) / part.replicas;
      devices_after -= part.replicas;
      kernels_->upload(real::initial_weights(part.net, workload_, false),
                       part.versions.emplace_back(array(part)).data());
      part.states = std::make_unique<test::StateHistory>(memory_, part.net.weights);
    }
  }

  std::vector<std::vector<double>> run(int micro_batches) {
    for (int m = 0; m < micro_batches; ++m) micro_batch(m);
    std::vector<std::vector<double>> trained;
    for (TrainedStage& part : parts_)
      kernels_->download(part.versions.back().data(),
                         trained.emplace_back(std::vector<double>(static_cast<std::size_t>(part.net.weights))));
    return trained;
  }

 private:
  struct TrainedStage {
    real::StageNet net;
    std::vector<real::Array> versions;
    std::unique_ptr<test::StateHistory> states;
    std::vector<real::Array> gradients;  ///< One for each micro-batch of this round.
    int replicas = 1, ahead = 0;
  };

  real::Array array(const TrainedStage& part) {
    real::Array a(memory_, 1, part.net.weights, real::Use::Weights);
    kernels_->zero(a.data(), static_cast<std::size_t>(part.net.weights) * 8);
    return a;
  }

  void micro_batch(int m) {
    const int size = plan_.stages.front().micro_batch_size;
    const real::Samples samples{static_cast<std::int64_t>(m) * size, size, plan_.mini_batch, false};
    std::vector<real::Activations> alive(parts_.size());
    std::vector<real::Array> used;
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      TrainedStage& part = parts_[k];
      alive[k].values.resize(part.net.values.size());
      if (k > 0)
        alive[k].values[part.net.inputs[0].values[0]] = alive[k - 1].values[parts_[k - 1].net.outputs[0].values[0]];
      used.push_back(part.versions[std::max(0, m / part.replicas - part.ahead)]);
      real::NetRun(part.net, memory_, *data_).forward(samples, used[k].data(), true, alive[k]);
    }
    for (std::size_t k = parts_.size(); k-- > 0;) {
      TrainedStage& part = parts_[k];
      alive[k].gradients.resize(part.net.values.size());
      if (k + 1 < parts_.size())
        alive[k].gradients[part.net.outputs[0].values[0]] =
            alive[k + 1].gradients[parts_[k + 1].net.inputs[0].values[0]];
      void* const gradient = part.gradients.emplace_back(array(part)).data();
      real::NetRun(part.net, memory_, *data_).backward(samples, used[k].data(), true, gradient, alive[k]);
      if (m % part.replicas == part.replicas - 1) update(part);
    }
  }

  /// The loss is a mean over the iteration.
  void update(TrainedStage& part) {
    std::vector<double> mean(static_cast<std::size_t>(part.net.weights)), one(mean);
    for (const real::Array& gradient : part.gradients) {
      kernels_->download(gradient.data(), one);
      for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += one[i];
    }
    for (double& g : mean) g *= static_cast<double>(plan_.micro_batches(StageId{0})) / part.replicas;
    kernels_->upload(mean, part.gradients.front().data());
    const real::Array to = array(part);
    kernels_->update(training_.optimizer, {}, part.net.weights, part.gradients.front().data(), part.states->next(),
                     part.versions.back().data(), to.data());
    part.versions.push_back(to);
    part.gradients.clear();
  }

  Workload workload_;
  const Plan& plan_;
  const Training& training_;
  std::unique_ptr<real::Kernels> kernels_;
  real::DeviceMemory memory_;
  std::unique_ptr<Dataset> data_;
  std::vector<TrainedStage> parts_;
};

double furthest(const IdVector<StageId, std::vector<double>>& ours,
                const IdVector<StageId, std::vector<double>>& theirs) {
  double worst = 0;
  REQUIRE(ours.size() == theirs.size());
  for (const StageId s : ours.ids()) {
    REQUIRE(ours[s].size() == theirs[s].size());
    for (std::size_t i = 0; i < ours[s].size(); ++i) worst = std::max(worst, std::abs(ours[s][i] - theirs[s][i]));
  }
  return worst;
}

}  // namespace

TEST_CASE("PipeDream with replicas equals its recurrence to the last bit, on threads and on one") {
  for (const std::vector<int>& replicas :
       {std::vector<int>{1, 1, 1}, {2, 1}, {4, 1}, {1, 2, 1}, {2, 2}, {1, 4}, {4, 2, 1}})
    for (const OptimizerKind kind : {OptimizerKind::Sgd, OptimizerKind::Momentum, OptimizerKind::Adam})
      for (const bool one_thread : {false, true}) {
        CAPTURE(replicas);
        CAPTURE(to_text(kind));
        const int micro_batches = 4, iterations = 6;  // Shares of the mean are powers of two, so nothing is rounded.
        const ModelGraph model = test::deep_net(static_cast<int>(replicas.size()), 6, 8, 3);
        const Plan plan = test::in_turn(test::stage_each(model, micro_batches), replicas);
        const Training training = test::training_of(kind, 0.01, "teacher");
        const WeightsRule& rule = test::policy("stash");
        const auto options =
            options_of(get_from(schedules::catalog(), "schedule", "pipedream"), {"update=micro_batch"});
        const test::RealRun run = test::really_run(test::real_program("pipedream", plan, rule, iterations, &*options),
                                                   model, plan, rule, training, one_thread);
        const IdVector<StageId, std::vector<double>> expected(
            Recurrence(model, plan, training).run(micro_batches * iterations));
        CHECK(furthest(run.learnt().weights, expected) == 0);
      }
}

TEST_CASE("with a flush, replicas in turn train as one device does") {
  for (const std::vector<int>& replicas : {std::vector<int>{2, 1}, {3, 1, 2}, {1, 3}}) {
    CAPTURE(replicas);
    const ModelGraph model = test::deep_net(static_cast<int>(replicas.size()), 6, 8, 3);
    const Plan plan = test::in_turn(test::stage_each(model, 6), replicas);
    const Training training = test::training_of(OptimizerKind::Adam, 0.01, "teacher");
    for (const char* schedule : {"1f1b", "gpipe"}) {
      const WeightsRule& rule = test::policy("flush");
      const test::RealRun run =
          test::really_run(test::real_program(schedule, plan, rule, 5), model, plan, rule, training);
      const auto expected = test::sequential(model, training, 6, 2, 5).weights;
      std::vector<double> joined;
      for (const auto& stage : run.learnt().weights) joined.insert(joined.end(), stage.begin(), stage.end());
      CHECK(furthest({joined}, expected) < 1e-12);
    }
  }
}

}  // namespace stagecraft::in_turn_test
