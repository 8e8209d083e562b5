// Gradients that are summed in buckets next to the last backward, against times computed by hand.

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <fmt/core.h>

#include "sim/experiment/run.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::buckets_test {
namespace {

// Two devices, joined by links of 4 MB/s without latency. A ring of two moves S bytes each way, so 4 MB take 1 s.
// A stage has four layers, each with a million parameters, 1 s of forward and 2 s of backward, half of it for weights.
std::string scenario(const std::string& run, const std::string& more = {}, const std::string& plan = "stages: 1",
                     const std::string& rate = "4 MB/s") {
  return fmt::format(R"(schema: scenario/1
model: {{builder: uniform, layers: 4, forward: 1 s, backward: 2 s, parameters: 1e6, precision: fp32}}
cluster:
  generator: nvlink_pods
  types: {{gpu: {{peak: 1 TFLOP/s, memory: 80 GiB, memory_bandwidth: 1000000 TB/s}}}}
  nodes: [{{name: node, count: 1, gpus: 2, type: gpu, inside: nvswitch}}]
  links: {{nvlink: {{bandwidth: {}, latency: 0 s}}, nic: {{bandwidth: 1 GB/s, latency: 0 s}}}}
{}plan: {{planner: balanced, {}, replicas: 2, micro_batch_size: 2}}
run: {{micro_batches: 2, iterations: 1, {}}}
)",
                     rate, more, plan, run);
}

CompiledExperiment compiled(const std::string& text) {
  return compile(load_experiment(test::own_file("buckets_test.yaml", text), {}));
}

double length(const CompiledExperiment& c, const char* backend) { return run(c, backend).report.length.value; }

constexpr const char* kBackends[] = {"ideal", "fluid", "simgrid"};

std::string refusal(const std::string& text) {
  try {
    compiled(text);
  } catch (const InputError& e) {
    return e.problems().front().message;
  }
  return "accepted";
}

}  // namespace

// Two micro-batches take 2 * (4 + 8) s. The last backward runs from 16 s to 24 s.
TEST_CASE("buckets are summed as soon as their gradients are there") {
  const struct {
    const char *buckets, *schedule, *rate;
    double seconds;
  } cases[] = {
      {"none", "1f1b", "4 MB/s", 24 + 4},
      {"64 MB", "1f1b", "4 MB/s", 24 + 4},  // One bucket is complete with the backward.
      {"4 MB", "1f1b", "4 MB/s", 24 + 1},   // Complete at 18, 20, 22 and 24 s, 1 s each.
      {"8 MB", "1f1b", "4 MB/s", 24 + 2},   // At 20 and 24 s, 2 s each.
      {"6 MB", "1f1b", "4 MB/s", 24 + 1},   // At 19 and 22 s, 1.5 s each, and 4 MB at 24 s.
      {"4 MB", "1f1b", "1 MB/s", 18 + 16},  // The link is busy from the first bucket on.
      {"2 MB", "1f1b", "1 MB/s", 17 + 16},  // Half a layer is enough for the first one.
      {"4 MB", "zb-h1", "4 MB/s", 24 + 1},  // The last weight gradient runs from 20 s to 24 s.
      {"4 MB", "zb-h1", "2 MB/s", 21 + 8},  // Complete at 21, 22, 23 and 24 s, 2 s each.
  };
  for (const auto& one : cases) {
    const std::string run = fmt::format("schedule: {}, gradient_buckets: {}", one.schedule, one.buckets);
    CAPTURE(run);
    const CompiledExperiment played = compiled(scenario(run, "", "stages: 1", one.rate));
    const CompiledExperiment cost = compiled(scenario(run, "software: plain\n", "stages: 1", one.rate));
    const CompiledExperiment flows =
        compiled(scenario(run + ", collectives: flows", "software: plain\n", "stages: 1", one.rate));
    for (const char* backend : kBackends) {
      CAPTURE(backend);
      CHECK(length(played, backend) == doctest::Approx(one.seconds).epsilon(1e-9));
      CHECK(length(cost, backend) == doctest::Approx(one.seconds).epsilon(1e-9));
      CHECK(length(flows, backend) == doctest::Approx(one.seconds).epsilon(1e-9));
    }
  }
}

// A device at half of its speed from 16 s on: its backward ends at 32 s, and the other waits for each of its buckets.
TEST_CASE("a bucket waits for the slowest device") {
  std::string text = scenario("schedule: 1f1b, gradient_buckets: 4 MB");
  text.replace(text.find("plan:"), 0, "  changes: [{devices: [node0.gpu0], from: 16 s, speed: 50 %}]\n");
  const CompiledExperiment c = compiled(text);
  for (const char* backend : kBackends) {
    CAPTURE(backend);
    CHECK(length(c, backend) == doctest::Approx(32 + 1).epsilon(1e-9));
  }
}

// Stages of two layers. The first stage ends its last backward last, and only it may have buckets in Megatron-LM.
TEST_CASE("each software stack has its rule for buckets") {
  const auto sums = [](const CompiledExperiment& c, StageId stage) {
    std::vector<double> bytes;
    for (const CollectiveCall& one : c.program.collectives)
      if (one.purpose == Purpose::GradientSum && c.program.at(one.first).stage == stage)
        bytes.push_back(static_cast<double>(c.program.shape(one).bytes));
    return bytes;
  };
  const auto with = [](const char* software) {
    std::string text =
        scenario("schedule: 1f1b, gradient_buckets: software", fmt::format("software: {}\n", software), "stages: 2");
    text.replace(text.find("parameters: 1e6"), 15, "parameters: 3e7");
    text.replace(text.find("gpus: 2"), 7, "gpus: 4");
    return compiled(text);
  };
  const double whole = 2 * 3e7 * 4, megatron = 40e6 * 4, torch = 25.0 * (1 << 20);
  CHECK(sums(with("megatron-no-overlap"), StageId{0}) == std::vector<double>{megatron, whole - megatron});
  CHECK(sums(with("megatron-no-overlap"), StageId{1}) == std::vector<double>{whole});
  const std::vector<double> parts = sums(with("plain"), StageId{1});
  CHECK(parts.size() == 10);  // 240 MB in parts of 26.2 MB.
  CHECK(parts.front() == torch);
  CHECK(parts.back() == whole - 9 * torch);
}

TEST_CASE("a bucket has its number in its name") {
  const CompiledExperiment c = compiled(scenario("schedule: 1f1b, gradient_buckets: 8 MB"));
  CHECK(to_text(c.program, c.program.collectives[0].first) == "0AR0/0");
  CHECK(to_text(c.program, c.program.collectives[1].first) == "0AR0/1");
}

TEST_CASE("buckets that cannot be are refused with a reason") {
  CHECK(refusal(scenario("schedule: 1f1b, gradient_buckets: software")) ==
        "there is no software stack that has a size of buckets");
  CHECK(refusal(scenario("schedule: 1f1b, gradient_buckets: software", "software: bloom\n")) ==
        "'bloom' sums gradients after the last backward");
  CHECK(refusal(scenario("schedule: 1f1b, gradient_buckets: 25 MiB, overlap: false")) ==
        "with run.overlap: false nothing runs next to a backward");
  CHECK(refusal(scenario("schedule: 1f1b, gradient_buckets: many")) == "'many' is no size");
}

}  // namespace stagecraft::buckets_test
