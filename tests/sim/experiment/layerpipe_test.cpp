// LayerPipe against PipeDream on VGG-16, simulated: an interval of either lasts as long as its busiest device works.

#include <doctest/doctest.h>

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::layerpipe_test {
namespace {

constexpr int kMicroBatches = 8;  // of an iteration, as the scenarios have it

/// Microseconds from one micro-batch to the next on the slowest device, in the middle of a long run and from its
/// timeline alone; a million multiplications take 1 us. Other devices may be ahead of it or behind it.
double interval(const std::string& file, std::vector<std::string> sets) {
  constexpr int kFrom = 20, kTo = 30;
  sets.emplace_back("run.iterations=40");
  const Experiment scenario = load_experiment("scenarios/papers/layerpipe/" + file, sets);
  const CompiledExperiment p = compile(scenario);
  const Timeline timeline = execute(p, "ideal");
  std::vector<double> from(p.plan.stages.size()), to(from);  // The last end of each device.
  for (const InstructionId n : p.program.instructions.ids()) {
    const Instruction& i = p.program.instructions[n];
    const int iteration = p.program.iteration_of(i);
    if (!i.is_compute() || (iteration != kFrom && iteration != kTo)) continue;
    double& end = (iteration == kFrom ? from : to)[i.device.value];
    end = std::max(end, timeline.end[n]);
  }
  double slowest = 0;
  for (std::size_t d = 0; d < from.size(); ++d) slowest = std::max(slowest, to[d] - from[d]);
  return slowest / (kTo - kFrom) / kMicroBatches * 1e6;
}

/// Microseconds per micro-batch by the period of the report, with the iterations that the scenario has.
double reported(const std::string& file, const std::vector<std::string>& sets) {
  const Experiment scenario = load_experiment("scenarios/papers/layerpipe/" + file, sets);
  return run(compile(scenario), "ideal").report.period.value / kMicroBatches * 1e6;
}

std::vector<std::string> delayed(const char* latency, int slack) {
  return {fmt::format("cluster.link.latency={}", latency),
          fmt::format("run.schedule={{name: layerpipe, slack: {}}}", slack), "run.transfers=eager", "run.streams=none",
          "run.sends=shared"};
}

}  // namespace

TEST_CASE("layerpipe: simulated intervals on two to ten devices are the largest loads") {
  const double whole[] = {23954.4, 16647.0, 13872.6, 11098.2, 10081.8, 8323.5, 8323.5, 8323.5, 5722.5};
  const double tasks[] = {23162.7, 15449.3, 11581.4, 9267.8, 7861.1, 6936.2, 6011.4, 5189.4, 4643.6};
  for (int p = 2; p <= 10; ++p) {
    CAPTURE(p);
    const std::string devices = fmt::format("cluster.devices={}", p);
    const std::vector<std::string> stages = {devices, fmt::format("plan.stages={}", p)};
    CHECK(interval("vgg16-stages.yaml", stages) == doctest::Approx(whole[p - 2]).epsilon(1e-9));
    CHECK(reported("vgg16-stages.yaml", stages) == doctest::Approx(whole[p - 2]).epsilon(1e-9));
    CHECK(interval("vgg16-tasks.yaml", {devices}) == doctest::Approx(tasks[p - 2]).epsilon(1e-9));
    CHECK(reported("vgg16-tasks.yaml", {devices}) == doctest::Approx(tasks[p - 2]).epsilon(1e-9));
    CHECK(interval("vgg16-tasks.yaml", {devices, "run.schedule={name: layerpipe, slack: 0}"}) ==
          doctest::Approx(tasks[p - 2]).epsilon(1e-9));
  }
}

TEST_CASE("layerpipe: a message may take as long as the slack without an effect, and not longer") {
  // On nine devices an interval is 5.1894 ms.
  CHECK(interval("vgg16-tasks.yaml", delayed("5 ms", 1)) == doctest::Approx(5189.4).epsilon(1e-9));
  CHECK(interval("vgg16-tasks.yaml", delayed("10 ms", 2)) == doctest::Approx(5189.4).epsilon(1e-9));
  CHECK(interval("vgg16-tasks.yaml", delayed("5 ms", 0)) > 6000);
  CHECK(interval("vgg16-tasks.yaml", delayed("10 ms", 1)) > 5300);
}

TEST_CASE("layerpipe: new weights go once in an iteration to the devices that use them, and nothing waits for them") {
  const Experiment scenario = load_experiment(
      "scenarios/papers/layerpipe/vgg16-tasks.yaml",
      {"cluster.types={any: {peak: 2 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1 TB/s}}",
       "cluster.link={bandwidth: 100 Gbit/s, latency: 1 us}", "run.schedule={name: layerpipe, slack: 4}"});
  const CompiledExperiment p = compile(scenario);
  double sent = 0, expected = 0;
  int updates = 0;
  for (const Transfer& t : p.program.transfers)
    if (p.plan.stage(p.program.at(t.send).stage).task == StageTask::Update)
      sent += static_cast<double>(p.program.bytes(t));
  for (const StageEdge& e : p.plan.edges)
    if (p.plan.stage(e.to).task == StageTask::TakeWeights)
      expected += e.bytes.value * p.plan.mini_batch * scenario.run.lowering.iterations;
  for (const Instruction& i : p.program.instructions)
    if (i.is_compute() && p.plan.stage(i.stage).task == StageTask::Update) {
      ++updates;
      CHECK(i.duration.value > 0);
    }
  CHECK(sent == doctest::Approx(expected));
  CHECK(sent > 4 * 130e6);  // All weights of VGG-16 move, most to two devices.
  CHECK(updates == 16 * scenario.run.lowering.iterations);
  const Outcome moved = run(p, "ideal");
  CHECK(moved.report.period.value < 1.5 * 5189.4e-6 * kMicroBatches);
}

namespace {

/// Intervals that each task is behind the first: the longest path, where a hop to another device takes `hop`.
std::vector<int> interval_offsets(const Plan& plan, int hop) {
  std::vector<int> depths(plan.stages.size(), 0);
  const auto at = [](StageId s) { return s.value; };
  for (bool changed = true; changed;) {
    changed = false;
    for (const StageEdge& e : plan.edges) {
      const int needed = depths[at(e.from)] + (plan.stage(e.from).leaders == plan.stage(e.to).leaders ? 0 : hop);
      if (depths[at(e.to)] < needed) depths[at(e.to)] = needed, changed = true;
    }
  }
  return depths;
}

/// Devices and intervals of the tasks of one layer.
struct LayerPlaces {
  std::map<DeviceId, int> news;  ///< Intervals after the first task until new weights arrive.
  int forward = 0, input_gradient = 0;
  DeviceId forward_on, input_gradient_on;
};

/// Weight bytes of every device by formula: in steady state one copy of each layer that it has a task of, and where its
/// input gradient is ceil((intervals from forward to it - intervals that new weights come later here than there) / T).
std::vector<double> weight_bytes(const CompiledExperiment& p, int micro_batches, int hop) {
  const std::vector<int> when = interval_offsets(p.plan, hop);
  std::map<LayerId, LayerPlaces> layers;
  for (const StageId s : p.plan.stages.ids()) {
    const Stage& stage = p.plan.stage(s);
    LayerPlaces& layer = layers[stage.shape.layers.front()];
    const int start = when[s.value];
    const DeviceId on = stage.leaders.front();
    if (stage.task == StageTask::Forward) layer.forward = start, layer.forward_on = on;
    if (stage.task == StageTask::InputGradient) layer.input_gradient = start, layer.input_gradient_on = on;
    if (stage.task == StageTask::Update || stage.task == StageTask::TakeWeights) layer.news[on] = start;
  }
  std::vector<double> bytes(static_cast<std::size_t>(p.program.devices), 0);
  for (const auto& [id, layer] : layers) {
    const Layer& model = p.model().layers[id];
    for (const auto& [device, news] : layer.news) {
      int copies = 1;
      if (device == layer.input_gradient_on) {
        const int late = layer.input_gradient - layer.forward - (news - layer.news.at(layer.forward_on));
        copies += std::max(0, late + micro_batches - 1) / micro_batches;
      }
      bytes[device.value] += copies * model.parameters * p.model().precision.weight;
    }
  }
  return bytes;
}

}  // namespace

TEST_CASE("layerpipe: each device holds the versions that its input gradients need, by formula") {
  int several = 0;
  for (const int devices : {2, 4, 8, 10})
    for (const int micro_batches : {1, 2, 8})
      for (const int slack : {0, 1}) {
        CAPTURE(devices);
        CAPTURE(micro_batches);
        CAPTURE(slack);
        const Experiment scenario = load_experiment(
            "scenarios/papers/layerpipe/vgg16-tasks.yaml",
            {fmt::format("cluster.devices={}", devices), fmt::format("run.micro_batches={}", micro_batches),
             fmt::format("run.iterations={}", 160 / micro_batches),
             fmt::format("run.schedule={{name: layerpipe, slack: {}}}", slack)});
        const CompiledExperiment p = compile(scenario);
        const std::vector<double> expected = weight_bytes(p, micro_batches, 1 + slack);
        double once = 0;
        for (const Layer& layer : p.model().layers) once += layer.parameters * p.model().precision.weight;
        double total = 0, updating = 0;
        for (std::size_t d = 0; d < expected.size(); ++d) {
          CHECK(p.program.memory[DeviceId{d}].weights.value == doctest::Approx(expected[d]).epsilon(1e-12));
          total += expected[d];
          updating += (p.program.memory[DeviceId{d}].gradients + p.program.memory[DeviceId{d}].optimizer).value;
        }
        several += total > 2 * once;
        CHECK(updating == doctest::Approx(once / p.model().precision.weight *
                                          (p.model().precision.gradient + p.model().precision.optimizer)));
      }
  CHECK(several > 0);
}

TEST_CASE("layerpipe: a plan of tasks needs a schedule of tasks, and stages need one of stages") {
  const auto refusal = [](const std::string& file, const std::string& set) {
    return test::input_error_of([&] { compile(load_experiment("scenarios/papers/layerpipe/" + file, {set})); });
  };
  CHECK(refusal("vgg16-tasks.yaml", "run.schedule=1f1b").find("[write schedule: layerpipe") != std::string::npos);
  CHECK(refusal("vgg16-stages.yaml", "run.schedule=layerpipe").find("[write plan: {planner: layerpipe}]") !=
        std::string::npos);
}

}  // namespace stagecraft::layerpipe_test
