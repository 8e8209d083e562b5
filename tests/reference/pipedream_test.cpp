// The local orders and weight versions of PipeDream's runtimes: 1F1B-RR with replicas, with flushes, GPipe and 2BW.

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "backends/backend.hpp"
#include "sim/core/file.hpp"
#include "sim/report/report.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;
using ParsedJson = nlohmann::json;

namespace {

struct Case {
  const ScheduleDef* def;
  Plan plan;
  int iterations = 1;
  std::vector<std::string> options;
};

Case case_of(const ParsedJson& vector) {
  const std::string name = vector["schedule"];
  const auto def = [](const char* schedule) { return &get_from(schedules::all(), "schedule", schedule); };
  if (name == "pipedream_1f1b_rr")
    return {def("pipedream"),
            test::in_turn(vector["replication"].get<std::vector<int>>(), vector["minibatches"].get<int>()),
            1,
            {"update=micro_batch"}};
  const int depth = vector["depth"];
  if (name == "pipedream_2bw")
    return {def("2bw"), chain_plan(depth, depth, vector["microbatches_per_batch"]), vector["batches"], {}};
  return {def(name == "gpipe" ? "gpipe" : "1f1b"), chain_plan(depth, depth, vector["microbatches"]), 1, {}};
}

std::string theirs(const ParsedJson& worker) {
  std::string text;
  for (const ParsedJson& op : worker["ops"]) text += op[0].get<std::string>() + std::to_string(op[1].get<int>()) + " ";
  return text;
}

/// The released runtime sends the j-th micro-batch of replica q to replica (j + q) mod r; we send micro-batch m to m
/// mod r. Both are equal unless two consecutive stages are replicated.
bool routes_alike(const ParsedJson& vector) {
  if (!vector.contains("replication")) return true;
  const std::vector<int> replicas = vector["replication"];
  for (std::size_t s = 1; s < replicas.size(); ++s)
    if (replicas[s - 1] > 1 && replicas[s] > 1) return false;
  return true;
}

}  // namespace

TEST_CASE("order, weight versions and in-flight counts of every worker equal PipeDream's runtime") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const ParsedJson file = ParsedJson::parse(read_file(folder + "/msr/schedule_vectors.json"));
  int workers = 0, routed_otherwise = 0, spans = 0;
  for (const ParsedJson& vector : file["vectors"]) {
    CAPTURE(vector["schedule"].get<std::string>());
    Case c = case_of(vector);
    const auto options = options_of(*c.def, c.options);
    const StageCosts costs = uniform_costs(c.plan, test::times(1, 2));
    const Schedule schedule = build_schedule(*c.def, {.plan = c.plan,
                                                      .costs = costs,
                                                      .iterations = c.iterations,
                                                      .options = read_options(*c.def, options ? &*options : nullptr)});
    CHECK(validate(schedule, c.plan, {.iterations = c.iterations}).empty());
    const WeightReads reads(schedule, c.plan, test::policy(c.def->weights));
    const bool alike = routes_alike(vector);
    for (const ParsedJson& worker : vector["workers"]) {
      const Stage& stage = c.plan.stage(StageId{worker["stage"].get<int>()});
      const int replica = worker.contains("replica") ? worker["replica"].get<int>() : 0;
      const DeviceId device = stage.devices()[replica];
      std::string ours;
      std::vector<int> versions, expected;
      const auto& ops = schedule.row(DeviceId{device});
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const int version = reads.at(device, i).version;
        ours += letter(ops[i].kind) + std::to_string(ops[i].kind == OpKind::Update ? version : ops[i].micro) + " ";
        if (ops[i].kind != OpKind::Update) versions.push_back(version);
      }
      for (const ParsedJson& op : worker["ops"])
        if (op[0] != "U") expected.push_back(op.size() > 2 ? op[2].get<int>() : 0);  // None with a flush.
      if (alike || worker["stage"] == 0) CHECK(ours == theirs(worker));
      routed_otherwise += !alike && worker["stage"] != 0;
      CHECK(versions == expected);
      if (worker.contains("weight_versions_stashed"))
        CHECK(reads.needs(StageId{worker["stage"].get<int>()}, replica).buffers == worker["weight_versions_stashed"]);
      ++workers;
    }
    if (!vector.contains("makespan_zero_comm")) continue;
    for (const auto& [costs_name, seconds] : vector["makespan_zero_comm"].items()) {
      StageCosts own;
      for (int s = 0; s < c.plan.stage_count(); ++s) {
        const double forward = costs_name == "F=s+1,B=2(s+1)" ? s + 1 : 1;
        own.add({test::times(forward, costs_name == "F=1,B=1" ? forward : 2 * forward)});
      }
      const Program program = test::lowered(schedule, c.plan, own, test::pure_delays(c.iterations), c.def->weights);
      const Cluster cluster = test::delay_cluster(program.devices, 0);
      const Timeline timeline = get_from(backends::all(), "backend", "ideal").run(program, cluster, {});
      CHECK(*std::max_element(timeline.end.begin(), timeline.end.end()) == doctest::Approx(seconds.get<double>()));
      ++spans;
    }
  }
  MESSAGE(workers << " workers, " << spans << " makespans; " << routed_otherwise
                  << " workers get other micro-batches, by the released routing between two replicated stages");
  CHECK(workers > 80);
  CHECK(spans > 40);
}
