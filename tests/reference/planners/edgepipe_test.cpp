// PipeEdge's inputs (usc-isi/PipeEdge), with the optimum of each found by exhaustive search or a second program, and
// the answers that its released scheduler gives to odd files.

#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

#include "backends/backend.hpp"
#include "sim/planners/edgepipe/search.hpp"
#include "sim/result/report.hpp"
#include "tests/reference/planners/inputs.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::edgepipe_test {
using edgepipe::Objective;
using test::ParsedJson;

namespace {

struct Case {
  std::string name;
  edgepipe::ChainProblem problem;
  std::optional<double> optimum, latency;  ///< Nothing where no chain fits; random cases have no latency.
};

std::vector<Case> cases_of(const std::string& file) {
  const test::PipeEdgeFolder scratch;
  const ParsedJson data = test::reference_json(file);
  std::vector<Case> cases;
  for (const ParsedJson& c : data["cases"]) {
    scratch.write(c, data);
    const pipeedge::SchedulerInput profiles = pipeedge::read(scratch.files, {.model = c["model"]});
    Case& one = cases.emplace_back(Case{c["name"], pipeedge::problem_of(profiles, c["buffers"], c["buffers"]), {}, {}});
    if (!c["optimum"].is_null()) one.optimum = c["optimum"];
    if (!c["latency"].is_null()) one.latency = c["latency"];
  }
  return cases;
}

}  // namespace

TEST_CASE("PipeEdge: every case has the expected optimum") {
  int feasible = 0, infeasible = 0;
  double slowest = 0;
  std::string slowest_name;
  for (const Case& c : cases_of("edgepipe.json")) {
    CAPTURE(c.name);
    const auto start = std::chrono::steady_clock::now();
    const auto solution = edgepipe::search(c.problem, Objective::Bottleneck, 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > slowest) slowest = took.count(), slowest_name = c.name;
    REQUIRE(solution.has_value() == c.optimum.has_value());
    ++(solution ? feasible : infeasible);
    if (!solution) continue;
    CHECK(solution->period == doctest::Approx(*c.optimum).epsilon(1e-9));
    const edgepipe::ChainFigures figures = edgepipe::figures_of(c.problem, solution->chain);
    CHECK(std::max(figures.slowest_stage, figures.slowest_hop) == solution->period);
    CHECK(figures.latency <= c.latency.value() * (1 + 1e-9));
  }
  MESSAGE(feasible << " optima, " << infeasible << " infeasible; slowest " << slowest_name << " " << slowest << " s");
  CHECK(feasible + infeasible >= 57);
}

TEST_CASE("PipeEdge: random instances have the exact optimum") {
  int feasible = 0, infeasible = 0;
  for (const Case& c : cases_of("edgepipe_random.json")) {
    CAPTURE(c.name);
    const auto solution = edgepipe::search(c.problem, Objective::Bottleneck, 1);
    REQUIRE(solution.has_value() == c.optimum.has_value());
    ++(solution ? feasible : infeasible);
    if (solution) CHECK(solution->period == doctest::Approx(*c.optimum).epsilon(1e-9));
  }
  MESSAGE(feasible << " optima, " << infeasible << " infeasible");
  CHECK(feasible + infeasible >= 180);
  CHECK(infeasible >= 20);
}

TEST_CASE("PipeEdge: every odd input is accepted, warned about or refused with a sentence") {
  struct Answer {
    double period = 0;  ///< 0: no chain.
    std::string warning, error;
  };
  const std::map<std::string, Answer> answers = {
      {"ok", {2, "", ""}},
      {"int_and_float_mixed", {3, "", ""}},
      {"unknown_keys_ignored", {2, "", ""}},
      {"host_count_below_type_index", {6, "", ""}},
      {"devices_int_hosts", {2, "", ""}},
      {"bw_zero", {6, "", ""}},
      {"infeasible", {0, "", ""}},
      {"param_block_repeat", {2, "2 numbers are repeated for 6 layers", ""}},
      {"null_profiles_type_skipped", {2, "", ""}},  // Nothing of that type is among the devices.
      {"no_profiles_key_type_skipped", {2, "", ""}},
      {"devices_unknown_type_ignored", {2, "host 'x0' of type 'zzz' is left out: ", ""}},
      {"devices_duplicate_hosts", {3, "host 'x' is there twice: the second is called 'x-2'", ""}},
      {"duplicate_profile_last_wins", {9, "'a' has times of batch 8 of torch.float32 twice: the last ones count", ""}},
      {"param_too_long", {0, "", "7 numbers for 6 layers"}},
      {"param_empty", {0, "", "0 numbers for 6 layers"}},
      {"mem_len_mismatch", {0, "", "1 number, but `layers` is 6"}},
      {"time_len_mismatch", {0, "", "2 times for 6 layers"}},
      {"missing_mem_MB_in_type", {0, "", "the field 'mem_MB' is missing"}},
      {"devices_null_list", {0, "", "there is no host with times of 'toy'"}},
      {"devices_empty_list", {0, "", "there is no host with times of 'toy'"}},
      {"devices_empty_map", {0, "", "there is no host with times of 'toy'"}},
      {"devices_empty_file", {0, "", "the file is empty"}},
      {"no_matching_batch", {0, "", "it has times of batch 8 of torch.float32, not of batch 4"}},
      {"unsupported_dtype", {0, "", "not of batch 8 of torch.float16"}},
      {"model_not_found", {0, "", "there is no model 'nosuch'"}},
      {"layers_zero", {0, "", "0 is less than 1"}},
      {"negative_time", {0, "", "-1 is less than 0"}},
  };
  int tried = 0;
  const test::PipeEdgeFolder scratch;
  const ParsedJson inputs = test::reference_json("edgepipe_odd.json")["inputs"];
  for (const ParsedJson& input : inputs) {
    const std::string name = input["name"];
    CAPTURE(name);
    const Answer& answer = answers.at(name);
    const auto write = [&](const std::string& file, const char* key) {
      test::write_file(file, input.value(key, inputs[0][key].get<std::string>()));
    };
    write(scratch.files.models, "models");
    write(scratch.files.types, "device_types");
    write(scratch.files.devices, "devices");
    ++tried;
    pipeedge::SchedulerInput profiles;
    const std::string error = test::input_error_of([&] {
      profiles =
          pipeedge::read(scratch.files, {.model = input["model"], .batch = input["batch"], .dtype = input["dtype"]});
    });
    if (!answer.error.empty()) {
      CAPTURE(error);
      CHECK(error.find(answer.error) != std::string::npos);
      continue;
    }
    REQUIRE(error == "nothing");
    CAPTURE(join(profiles.warnings, "\n"));
    REQUIRE(profiles.warnings.empty() == answer.warning.empty());
    if (!answer.warning.empty()) CHECK(profiles.warnings.front().find(answer.warning) != std::string::npos);
    const auto solution = edgepipe::search(pipeedge::problem_of(profiles, 2, 2), Objective::Bottleneck, 1);
    CHECK((solution ? solution->period : 0) == answer.period);
  }
  CHECK(tried >= 27);
}

TEST_CASE("PipeEdge: the two files of its documentation are refused because they do not match") {
  const ParsedJson file = test::reference_json("edgepipe.json");
  ParsedJson c = *std::find_if(file["cases"].begin(), file["cases"].end(),
                               [](const ParsedJson& one) { return one["name"] == "vitb_mb4_rcc4"; });
  const test::PipeEdgeFolder scratch;
  scratch.write(c, file);
  const std::string devices = read_file(scratch.files.devices);
  c["types"][1][0] = "RCC-VE-C2000";  // The documentation has this name in one file, and RCC-VE-C2558 in the other.
  scratch.write(c, file);
  const std::string fixed_devices = read_file(scratch.files.devices);
  const pipeedge::Request request{.model = c["model"]};
  test::write_file(scratch.files.devices, devices);
  const auto read = pipeedge::read(scratch.files, request);
  REQUIRE(read.warnings.size() == 1);
  CHECK(read.warnings.front().find("4 hosts of type 'RCC-VE-C2558' are left out: ") != std::string::npos);
  CHECK(read.warnings.front().find("did you mean 'RCC-VE-C2000'?") != std::string::npos);
  test::write_file(scratch.files.devices, fixed_devices);
  const auto fixed = pipeedge::read(scratch.files, request);
  CHECK(fixed.warnings.empty());
  // Its own example schedule takes 1.7262 s.
  CHECK(edgepipe::search(pipeedge::problem_of(fixed, 2, 2), Objective::Bottleneck, 1)->period ==
        doctest::Approx(1.5487600088119509).epsilon(1e-12));
}

namespace {

/// Hosts of a chain in its order, each with its link to one switch, or all on one medium.
Cluster network_of(const edgepipe::ChainProblem& p, const edgepipe::Chain& chain, bool medium) {
  const int stages = static_cast<int>(chain.size());
  Cluster cluster = test::bare_cluster(stages, medium ? 0 : 1);
  std::vector<int> endpoints;
  for (int s = 0; s < stages; ++s) {
    endpoints.push_back(s);
    const double bandwidth = p.machines[chain[s].machines].bandwidth;
    if (!medium)
      test::connect(cluster, {s, stages}, bandwidth, 0);
    else if (s + 1 == stages && stages > 1)
      test::connect(cluster, endpoints, bandwidth, 0, Duplex::Half);
  }
  return cluster;
}

/// Report of `iterations` iterations of inference on a backend.
Report simulate(const std::string& backend, const edgepipe::ChainProblem& p, const edgepipe::Chain& chain, bool medium,
                int items, int iterations, MessageBuffers buffers = {}) {
  const int stages = static_cast<int>(chain.size());
  Plan plan = chain_plan(stages, stages, items);
  StageCosts costs;
  for (const edgepipe::ChainStage& part : chain) {
    const auto& compute = p.machines[part.machines].compute;
    costs.add({test::times(compute.at(part.from, part.to), 0)});
  }
  for (std::size_t e = 0; e < plan.edges.size(); ++e) plan.edges[e].bytes = Bytes{p.message[chain[e].to]};
  LoweringOptions options;
  options.iterations = iterations;
  options.buffers = buffers;
  const Program program = test::program_of("inference", plan, costs, options);
  const Cluster cluster = network_of(p, chain, medium);
  return measure(program, get_from(backends::catalog(), "backend", backend).run(program, cluster, {}), cluster);
}

std::vector<std::string> simulators() {
  std::vector<std::string> names{"ideal"};
  if (find_in(backends::catalog(), "simgrid")) names.push_back("simgrid");
  return names;
}

}  // namespace

TEST_CASE("PipeEdge: on a switch the plan takes the predicted period") {
  int plans = 0;
  double worst = 0;
  for (const Case& c : cases_of("edgepipe.json")) {
    for (const Objective objective : {Objective::Bottleneck, Objective::Latency}) {
      const auto solution = edgepipe::search(c.problem, objective, 1);
      if (!solution) continue;
      for (const std::string& backend : simulators()) {
        CAPTURE(c.name);
        CAPTURE(backend);
        const double period = simulate(backend, c.problem, solution->chain, false, 16, 5).period.value / 16;
        CHECK(period == doctest::Approx(solution->period).epsilon(1e-6));
        worst = std::max(worst, std::abs(period / solution->period - 1));
        ++plans;
      }
    }
  }
  MESSAGE(plans << " runs, at most " << worst << " off");
  CHECK(plans >= 2 * 53);
}

TEST_CASE("PipeEdge: no device holds more messages than the planner has counted, at the predicted period") {
  int plans = 0, more = 0;
  for (const char* file : {"edgepipe.json", "edgepipe_random.json"})
    for (const Case& c : cases_of(file)) {
      const auto solution = edgepipe::search(c.problem, Objective::Bottleneck, 1);
      if (!solution) continue;
      CAPTURE(c.name);
      const edgepipe::ChainProblem& p = c.problem;
      const MessageBuffers buffers{static_cast<int>(p.buffers_in) + 1, static_cast<int>(p.buffers_out) + 1};
      const Report limited = simulate("ideal", p, solution->chain, false, 32, 3, buffers),
                   unlimited = simulate("ideal", p, solution->chain, false, 32, 3);
      // With one buffer on each side a stage does not receive while it computes.
      if (p.buffers_in > 0) CHECK(limited.period.value / 32 == doctest::Approx(solution->period).epsilon(1e-6));
      bool holds_more = false;
      for (std::size_t s = 0; s < solution->chain.size(); ++s) {
        const edgepipe::ChainStage& part = solution->chain[s];
        const double counted = edgepipe::memory_of(p, part.from, part.to) - p.weights.at(part.from, part.to);
        const DeviceId device{s};
        CHECK(limited.devices[device].memory.total.value <= counted * (1 + 1e-9));
        holds_more = holds_more || unlimited.devices[device].memory.total.value > counted;
      }
      more += holds_more;
      ++plans;
    }
  MESSAGE(plans << " plans, " << more << " of which hold more without a limit");
  CHECK(plans > 180);
  CHECK(more > 20);
}

TEST_CASE(
    "PipeEdge: on one medium the plan for it takes the predicted period, and the one for a switch up to 3.6 times") {
  if (simulators().size() == 1) return;
  constexpr int kItems = 400;
  int plans = 0, close = 0;
  double worst = 0, longest = 0;
  for (const Case& c : cases_of("edgepipe.json")) {
    std::set<double> bandwidths;
    for (const edgepipe::MachineKind& m : c.problem.machines) bandwidths.insert(m.bandwidth);
    const auto shared = edgepipe::search(c.problem, Objective::Shared, 1);
    if (bandwidths.size() != 1 || !shared || shared->chain.size() == 1) continue;
    CAPTURE(c.name);
    const auto length = [&](const edgepipe::Chain& chain, int items) {
      return simulate("simgrid", c.problem, chain, true, items, 1).length.value;
    };
    const double first = length(shared->chain, kItems), second = length(shared->chain, 2 * kItems);
    // No run is shorter than what its busiest device and the medium have to do.
    CHECK(first >= kItems * shared->period * (1 - 1e-9));
    // Where both are busy almost all the time they wait for each other now and then.
    const double ratio = (second - first) / kItems / shared->period;
    CHECK(ratio < 1.06);
    close += std::abs(ratio - 1) < 1e-3 ? 1 : 0;
    worst = std::max(worst, ratio);
    const auto alone = edgepipe::search(c.problem, Objective::Bottleneck, 1);
    longest = std::max(longest, length(alone->chain, kItems) / first);
    ++plans;
  }
  MESSAGE(plans << " plans, " << close << " as predicted within 0.1 %, the others up to " << worst
                << " of it; a plan for a switch took up to " << longest << " times as long");
  CHECK(plans >= 37);
  CHECK(close >= plans - 4);
  CHECK(longest > 3.6);
}

}  // namespace stagecraft::edgepipe_test
