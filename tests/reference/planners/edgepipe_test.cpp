// PipeEdge's inputs (usc-isi/PipeEdge), with the optimum of each found by exhaustive search or a second program, and
// the answers that its released scheduler gives to odd files.

#include <doctest/doctest.h>

#include <chrono>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "backends/backend.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/edgepipe/pipeedge_files.hpp"
#include "sim/plan/edgepipe/search.hpp"
#include "sim/report/report.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;
using edgepipe::Objective;
using ParsedJson = nlohmann::json;

namespace {

std::string folder_of_data() {
  const std::string folder = test::reference_data();
  return folder.empty() ? folder : folder + "/edgepipe";
}

ParsedJson json_of(const std::string& file) { return ParsedJson::parse(read_file(file)); }

pipeedge::Files files_in(const std::string& folder) {
  return {folder + "/models.yml", folder + "/device_types.yml", folder + "/devices.yml"};
}

/// The files of a case, as its expected.json names them.
struct Case {
  ParsedJson expected;
  pipeedge::Profiles profiles;
  edgepipe::Problem problem;
};

Case case_in(const std::string& folder) {
  Case c{json_of(folder + "/expected.json"), {}, {}};
  c.profiles =
      pipeedge::read(files_in(folder), {.model = c.expected.at("model"), .batch = c.expected.at("batch_size")});
  c.problem = pipeedge::problem_of(c.profiles, c.expected.at("buffers_in"), c.expected.at("buffers_out"));
  return c;
}

std::vector<std::string> folders_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.is_directory()) names.push_back(entry.path().string());
  std::sort(names.begin(), names.end());
  return names;
}

/// A temporary folder, removed at the end.
struct Scratch {
  std::filesystem::path path = std::filesystem::temp_directory_path() / "stagecraft_pipeedge_test";
  Scratch() { std::filesystem::create_directories(path); }
  ~Scratch() { std::filesystem::remove_all(path); }
};

ParsedJson schedule_of(const edgepipe::Chain& chain, const pipeedge::Profiles& profiles) {
  config::Problems problems;
  const config::Value list = config::parse_yaml(pipeedge::to_schedule(chain, profiles), "schedule", problems);
  problems.throw_if_any();
  ParsedJson json = ParsedJson::array();
  for (const config::Value& stage : list.items) {
    const config::Value& range = stage.members.front().value;
    json.push_back({{stage.members.front().key, {config::as_int(range.items[0]), config::as_int(range.items[1])}}});
  }
  return json;
}

}  // namespace

TEST_CASE("PipeEdge: every case has the expected optimum") {
  const std::string folder = folder_of_data();
  if (folder.empty()) return;
  int feasible = 0, infeasible = 0, same = 0;
  double slowest = 0;
  std::string slowest_name;
  for (const std::string& name : folders_in(folder + "/cases")) {
    CAPTURE(name);
    const Case c = case_in(name);
    const auto start = std::chrono::steady_clock::now();
    const auto found = edgepipe::search(c.problem, Objective::Bottleneck, 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > slowest) slowest = took.count(), slowest_name = c.expected.at("name");
    const ParsedJson& optimum = c.expected.at("optimum");
    const bool possible = !optimum.is_null() && !optimum.at("bottleneck_s").is_null();
    REQUIRE(found.has_value() == possible);
    ++(possible ? feasible : infeasible);
    if (!possible) continue;
    CHECK(found->period == doctest::Approx(optimum.at("bottleneck_s").get<double>()).epsilon(1e-9));
    const edgepipe::Figures figures = edgepipe::figures_of(c.problem, found->chain);
    CHECK(std::max(figures.slowest_stage, figures.slowest_hop) == found->period);
    CHECK(figures.latency <= optimum.at("one_microbatch_latency_s").get<double>() * (1 + 1e-9));
    same += schedule_of(found->chain, c.profiles) == optimum.at("schedule") ? 1 : 0;
  }
  MESSAGE(feasible << " optima, " << infeasible << " infeasible; " << same
                   << " schedules are the published ones, others as good; slowest " << slowest_name << " " << slowest
                   << " s");
  CHECK(feasible + infeasible >= 57);
}

TEST_CASE("PipeEdge: random instances have the exact optimum") {
  const std::string folder = folder_of_data();
  if (folder.empty()) return;
  const Scratch scratch;
  int feasible = 0, infeasible = 0;
  for (const char* name : {"small_multi_200.jsonl", "small_onehost_100.jsonl"}) {
    std::istringstream lines(read_file(folder + "/random/" + name));
    for (std::string line; std::getline(lines, line);) {
      const ParsedJson instance = ParsedJson::parse(line);
      const pipeedge::Files files = files_in(scratch.path.string());
      test::write_file(files.models, ParsedJson{{"toy", instance.at("model")}}.dump());
      test::write_file(files.types, instance.at("device_types").dump());
      test::write_file(files.devices, instance.at("devices").dump());
      CAPTURE(name);
      CAPTURE(feasible + infeasible);
      const auto problem = pipeedge::problem_of(pipeedge::read(files, {.model = "toy"}), 2, 2);
      const auto found = edgepipe::search(problem, Objective::Bottleneck, 1);
      const bool possible = instance.at("exact").at("feasible");
      REQUIRE(found.has_value() == possible);
      ++(possible ? feasible : infeasible);
      if (possible)
        CHECK(found->period == doctest::Approx(instance.at("exact").at("bottleneck_s").get<double>()).epsilon(1e-9));
    }
  }
  MESSAGE(feasible << " optima, " << infeasible << " infeasible");
  CHECK(feasible + infeasible >= 180);
  CHECK(infeasible >= 20);
}

TEST_CASE("PipeEdge: every odd input is accepted, warned about or refused with a sentence") {
  const std::string folder = folder_of_data();
  if (folder.empty()) return;
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
      {"param_too_long", {0, "", "6 layers have 7 numbers"}},
      {"param_empty", {0, "", "6 layers have 0 numbers"}},
      {"mem_len_mismatch", {0, "", "6 layers have 1 numbers"}},
      {"time_len_mismatch", {0, "", "6 layers have 2 times"}},
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
  for (const ParsedJson& released : json_of(folder + "/interop/released_behaviour.json")) {
    const std::string name = released.at("name");
    CAPTURE(name);
    if (answers.count(name) == 0) continue;  // It has no expected answer.
    const Answer& answer = answers.at(name);
    pipeedge::Request request;
    const auto& arguments = released.at("args");
    for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
      if (arguments[i] == "-m") request.model = arguments[i + 1];
      if (arguments[i] == "-b") request.batch = std::stoi(arguments[i + 1].get<std::string>());
      if (arguments[i] == "-d") request.dtype = arguments[i + 1];
    }
    ++tried;
    pipeedge::Profiles profiles;
    const std::string error =
        test::input_error_of([&] { profiles = pipeedge::read(files_in(folder + "/interop/" + name), request); });
    if (!answer.error.empty()) {
      CAPTURE(error);
      CHECK(error.find(answer.error) != std::string::npos);
      continue;
    }
    REQUIRE(error == "nothing");
    CAPTURE(join(profiles.warnings, "\n"));
    REQUIRE(profiles.warnings.empty() == answer.warning.empty());
    if (!answer.warning.empty()) CHECK(profiles.warnings.front().find(answer.warning) != std::string::npos);
    const auto found = edgepipe::search(pipeedge::problem_of(profiles, 2, 2), Objective::Bottleneck, 1);
    CHECK((found ? found->period : 0) == answer.period);
  }
  CHECK(tried >= 27);
}

TEST_CASE("PipeEdge: the two files of its documentation are refused because they do not match") {
  const std::string folder = folder_of_data();
  if (folder.empty()) return;
  pipeedge::Files files = files_in(folder + "/readme");
  const pipeedge::Request request{.model = "google/vit-base-patch16-224"};
  const auto read = pipeedge::read(files, request);
  REQUIRE(read.warnings.size() == 1);
  CHECK(read.warnings.front().find("4 hosts of type 'RCC-VE-C2558' are left out: ") != std::string::npos);
  CHECK(read.warnings.front().find("did you mean 'RCC-VE-C2000'?") != std::string::npos);
  files.devices = folder + "/readme/devices_fixed.yml";
  const auto fixed = pipeedge::read(files, request);
  CHECK(fixed.warnings.empty());
  // Its own example schedule takes 1.7262 s.
  CHECK(edgepipe::search(pipeedge::problem_of(fixed, 2, 2), Objective::Bottleneck, 1)->period ==
        doctest::Approx(1.5487600088119509).epsilon(1e-12));
}

namespace {

/// Hosts of a chain in its order, each with its link to one switch, or all on one medium.
Cluster network_of(const edgepipe::Problem& p, const edgepipe::Chain& chain, bool medium) {
  const int stages = static_cast<int>(chain.size());
  Cluster cluster = test::bare_cluster(stages, medium ? 0 : 1);
  std::vector<int> all;
  for (int s = 0; s < stages; ++s) {
    all.push_back(s);
    const double bandwidth = p.machines[chain[s].machines].bandwidth;
    if (!medium)
      test::connect(cluster, {s, stages}, bandwidth, 0);
    else if (s + 1 == stages && stages > 1)
      test::connect(cluster, all, bandwidth, 0, Duplex::Half);
  }
  return cluster;
}

/// Report of `iterations` iterations of inference on a backend.
Report simulate(const std::string& backend, const edgepipe::Problem& p, const edgepipe::Chain& chain, bool medium,
                int items, int iterations) {
  const int stages = static_cast<int>(chain.size());
  Plan plan = chain_plan(stages, stages, items);
  StageCosts costs;
  for (const edgepipe::Part& part : chain) {
    const auto& compute = p.machines[part.machines].compute;
    costs.add({test::times(compute.at(part.from, part.to), 0)});
  }
  for (std::size_t e = 0; e < plan.edges.size(); ++e) plan.edges[e].bytes = Bytes{p.message[chain[e].to]};
  LoweringOptions options;
  options.iterations = iterations;
  const Program program = test::program_of("inference", plan, costs, options);
  const Cluster cluster = network_of(p, chain, medium);
  return measure(program, get_from(backends::all(), "backend", backend).run(program, cluster, {}), cluster);
}

std::vector<std::string> simulators() {
  std::vector<std::string> names{"ideal"};
  if (find_in(backends::all(), "simgrid")) names.push_back("simgrid");
  return names;
}

}  // namespace

TEST_CASE("PipeEdge: on a switch the plan takes the predicted period") {
  const std::string folder = folder_of_data();
  if (folder.empty()) return;
  int plans = 0;
  double worst = 0;
  for (const std::string& name : folders_in(folder + "/cases")) {
    const Case c = case_in(name);
    for (const Objective objective : {Objective::Bottleneck, Objective::Latency}) {
      const auto found = edgepipe::search(c.problem, objective, 1);
      if (!found) continue;
      for (const std::string& backend : simulators()) {
        CAPTURE(name);
        CAPTURE(backend);
        const double period = simulate(backend, c.problem, found->chain, false, 16, 5).period.value / 16;
        CHECK(period == doctest::Approx(found->period).epsilon(1e-6));
        worst = std::max(worst, std::abs(period / found->period - 1));
        ++plans;
      }
    }
  }
  MESSAGE(plans << " runs, at most " << worst << " off");
  CHECK(plans >= 2 * 53);
}

TEST_CASE(
    "PipeEdge: on one medium the plan for it takes the predicted period, and the one for a switch up to 3.6 times") {
  const std::string folder = folder_of_data();
  if (folder.empty() || simulators().size() == 1) return;
  constexpr int kItems = 400;
  int plans = 0, close = 0;
  double worst = 0, most = 0;
  for (const std::string& name : folders_in(folder + "/cases")) {
    const Case c = case_in(name);
    std::set<double> bandwidths;
    for (const edgepipe::Machines& m : c.problem.machines) bandwidths.insert(m.bandwidth);
    const auto shared = edgepipe::search(c.problem, Objective::Shared, 1);
    if (bandwidths.size() != 1 || !shared || shared->chain.size() == 1) continue;
    CAPTURE(name);
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
    most = std::max(most, length(alone->chain, kItems) / first);
    ++plans;
  }
  MESSAGE(plans << " plans, " << close << " as predicted within 0.1 %, the others up to " << worst
                << " of it; a plan for a switch took up to " << most << " times as long");
  CHECK(plans >= 37);
  CHECK(close >= plans - 4);
  CHECK(most > 3.6);
}
