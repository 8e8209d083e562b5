// A device without a host is a node by itself for the diagnosis, too.

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/diagnosis/diagnose.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::diagnosis_nodes_test {
namespace {

/// Three stages on devices with these hosts, which send large messages over one switch.
bool suggests_another_order(const std::string& first, const std::string& second, const std::string& third) {
  const std::string file = test::own_file(
      "diagnosis_nodes_test.yaml",
      fmt::format("schema: scenario/2\n"
                  "software: none\n"
                  "model: {{builder: uniform, layers: 6, forward: 1 ms, input_gradient: 1 ms, "
                  "weight_gradient: 1 ms, stash: 1 KiB, output: 4 MiB}}\n"
                  "cluster:\n  generator: explicit\n  switches: [s]\n"
                  "  types: {{any: {{peak: 1 TFLOP/s, memory: 8 GiB, memory_bandwidth: 1 TB/s}}}}\n"
                  "  devices: [{{name: d0, type: any, host: \"{}\"}}, {{name: d1, type: any, host: \"{}\"}}, "
                  "{{name: d2, type: any, host: \"{}\"}}]\n"
                  "  links:\n"
                  "    - {{name: k0, between: [d0, s], bandwidth: 1 GB/s, latency: 1 us}}\n"
                  "    - {{name: k1, between: [d1, s], bandwidth: 1 GB/s, latency: 1 us}}\n"
                  "    - {{name: k2, between: [d2, s], bandwidth: 1 GB/s, latency: 1 us}}\n"
                  "plan: {{planner: balanced, stages: 3}}\n"
                  "run: {{schedule: 1f1b, micro_batches: 8}}\n",
                  first, second, third));
  const Experiment e = load_experiment(file, {});
  CompiledExperiment c = compile(e);
  const Diagnosis d = diagnose(c, run(c, "ideal"), "ideal", scenario_reader(file, {}, e), WhatIf::None);
  return std::any_of(d.findings.begin(), d.findings.end(), [](const Finding& f) { return f.cause == "placement"; });
}

}  // namespace

TEST_CASE("another order of the stages is suggested where it keeps neighbors on one node") {
  CHECK(suggests_another_order("m", "n", "m"));
  CHECK_FALSE(suggests_another_order("m", "m", "n"));
  CHECK_FALSE(suggests_another_order("", "n", ""));  // Three nodes: no order joins two devices of one.
}

}  // namespace stagecraft::diagnosis_nodes_test
