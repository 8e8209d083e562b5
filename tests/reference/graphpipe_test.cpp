// Graph pipelines: orders, samples in flight and makespans of the reference generator, and the buffer sizes of the
// strategy files that FlexFlow's prototype ships (flexflow-train, pull request 308).

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/result/report.hpp"
#include "sim/schedule/in_flight.hpp"
#include "tests/reference/schedules.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::graphpipe_test {
using test::ParsedJson;

namespace {

Plan plan_of(const std::vector<int>& sizes, const std::vector<int>& groups, int mini_batch) {
  const int n = static_cast<int>(sizes.size());
  Plan plan = chain_plan(n, n, mini_batch);
  for (std::size_t s = 0; s < sizes.size(); ++s)
    plan.stages[StageId{s}].micro_batch_size = sizes[s], plan.stages[StageId{s}].group = groups[s];
  return plan;
}

/// "0F0 0B0" of stage 0 becomes "F0 B0"; updates are omitted.
std::string order_of(const std::vector<Op>& row) {
  std::string text;
  for (const Op& op : row)
    if (op.kind != OpKind::Update) text += (text.empty() ? "" : " ") + (letter(op.kind) + std::to_string(op.micro));
  return text;
}

}  // namespace

TEST_CASE("orders, samples in flight and makespans equal GraphPipe's fixtures exactly") {
  const ParsedJson data = test::reference_json("graph_schedules.json");
  int count = 0;
  for (const ParsedJson& f : data["schedules"]) {
    CAPTURE(f["name"].get<std::string>());
    Plan plan = plan_of(f["micro_batches"], f["groups"], f["mini_batch"]);
    plan.edges.clear();
    for (const ParsedJson& e : f["edges"])
      plan.edges.push_back({StageId{e[0].get<int>()}, StageId{e[1].get<int>()}, {}});
    CHECK_NOTHROW(check_plan(plan));
    CHECK(in_flight_samples(plan) == IdVector<StageId, int>(f["in_flight"].get<std::vector<int>>()));

    const Schedule schedule = test::build("graph", plan);
    const auto orders = f["orders"].get<std::vector<std::string>>();
    REQUIRE(orders.size() == schedule.device_count());
    for (std::size_t s = 0; s < orders.size(); ++s) CHECK(order_of(schedule.row(DeviceId{s})) == orders[s]);

    StageCosts costs;
    for (const Stage& stage : plan.stages)
      costs.add({test::times(f["forward"].get<double>() * stage.micro_batch_size,
                             f["backward"].get<double>() * stage.micro_batch_size)});
    const Program program = test::program_of("graph", plan, costs, test::pure_delays());
    const Cluster cluster = test::delay_cluster(program.devices, 0);
    const Timeline timeline = get_from(backends::catalog(), "backend", "ideal").run(program, cluster, {});
    CHECK(measure(program, timeline, cluster).makespan.value == f["makespan"].get<double>());
    ++count;
  }
  CHECK(count >= 11);
}

TEST_CASE("buffer sizes equal those in the prototype's strategy files") {
  const ParsedJson data = test::reference_json("graph_schedules.json");
  int count = 0;
  for (const ParsedJson& strategy : data["strategies"]) {
    const std::string file = strategy["file"];
    CAPTURE(file);
    std::vector<int> sizes, buffers, groups;
    for (const ParsedJson& stage : strategy["stages"])  // micro-batch, buffer, group, devices
      sizes.push_back(stage[0]), buffers.push_back(stage[1]), groups.push_back(stage[2]);
    Plan plan = plan_of(sizes, groups, 1024);
    if (file.ends_with("partition-ns.txt")) {  // branches 1 to 4 into 0, and that into 5
      plan.edges.clear();
      for (int s = 1; s <= 4; ++s) plan.edges.push_back({StageId{s}, StageId{0}, {}});
      plan.edges.push_back({StageId{0}, StageId{5}, {}});
    }
    CHECK(in_flight_samples(plan) == IdVector<StageId, int>(buffers));
    ++count;
  }
  CHECK(count >= 5);
}

}  // namespace stagecraft::graphpipe_test
