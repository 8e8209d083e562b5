// The local orders and weight versions of PipeDream's runtimes: 1F1B-RR with replicas, with flushes, GPipe and 2BW.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/result/report.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::pipedream_test {
using test::ParsedJson;

namespace {

struct Case {
  const ScheduleDef* def;
  Plan plan;
  int iterations = 1;
  std::vector<std::string> options;
};

Case case_of(const ParsedJson& vector) {
  const std::string name = vector["schedule"];
  const auto def = [](const char* schedule) { return &get_from(schedules::catalog(), "schedule", schedule); };
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

/// The ops of a worker: "F1@0 " is a forward of micro-batch 1 with weight version 0, which is not said where a flush
/// leaves only one; "U2 " is an update that makes version 2.
struct Worker {
  int stage, replica, stashed;
  std::string ops;            ///< Without versions.
  std::vector<int> versions;  ///< Weight version of each op but updates.

  explicit Worker(const ParsedJson& row) : stage(row[0]), replica(row[1]), stashed(row[2]) {
    for (const std::string& op : split(row[3].get<std::string>(), ' ')) {
      const std::size_t at = op.find('@');
      ops += op.substr(0, at) + " ";
      if (op.front() != 'U') versions.push_back(at == op.npos ? 0 : std::stoi(op.substr(at + 1)));
    }
  }
};

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
  const ParsedJson file = test::reference_json("pipedream_orders.json");
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
    for (const ParsedJson& row : vector["workers"]) {
      const Worker worker(row);
      const DeviceId device = c.plan.stage(StageId{worker.stage}).leaders[worker.replica];
      std::string ours;
      std::vector<int> versions;
      const auto& ops = schedule.row(DeviceId{device});
      for (std::size_t i = 0; i < ops.size(); ++i) {
        const int version = reads.at(device, i).version;
        ours += letter(ops[i].kind) + std::to_string(ops[i].kind == OpKind::Update ? version : ops[i].micro) + " ";
        if (ops[i].kind != OpKind::Update) versions.push_back(version);
      }
      if (alike || worker.stage == 0) CHECK(ours == worker.ops);
      routed_otherwise += !alike && worker.stage != 0;
      CHECK(versions == worker.versions);
      if (worker.stashed > 0) CHECK(reads.needs(StageId{worker.stage}, worker.replica).buffers == worker.stashed);
      ++workers;
    }
    if (!vector.contains("makespans")) continue;
    const auto makespans = vector["makespans"].get<std::vector<double>>();
    REQUIRE(makespans.size() == 3);  // Forward and backward of 1 and 2; 1 and 1; s + 1 and 2 s + 2 in stage s.
    for (std::size_t k = 0; k < makespans.size(); ++k) {
      StageCosts makespan_costs;
      for (int s = 0; s < c.plan.stage_count(); ++s) {
        const double forward = k == 2 ? s + 1 : 1;
        makespan_costs.add({test::times(forward, k == 1 ? forward : 2 * forward)});
      }
      const Program program =
          test::lowered(schedule, c.plan, makespan_costs, test::pure_delays(c.iterations), c.def->weights);
      const Cluster cluster = test::delay_cluster(program.devices, 0);
      const Timeline timeline = get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {});
      CHECK(*std::max_element(timeline.end.begin(), timeline.end.end()) == doctest::Approx(makespans[k]));
      ++spans;
    }
  }
  MESSAGE(workers << " workers, " << spans << " makespans; " << routed_otherwise
                  << " workers get other micro-batches, by the released routing between two replicated stages");
  CHECK(workers > 80);
  CHECK(spans > 40);
}

}  // namespace stagecraft::pipedream_test
