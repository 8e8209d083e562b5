// Graph pipelines: orders, samples in flight and makespans of the reference generator, and the buffer sizes of the
// strategy files that FlexFlow's prototype ships (flexflow-train, pull request 308).

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "sim/config/fields.hpp"
#include "sim/report/report.hpp"
#include "sim/schedule/in_flight.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/road.hpp"

using namespace stagecraft;

namespace {

config::Value yaml(const std::string& file) {
  config::Problems problems;
  config::Value tree = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  return tree;
}

std::vector<int> ints(const config::Value& list) {
  std::vector<int> numbers;
  for (const config::Value& item : list.items) numbers.push_back(config::as_int(item));
  return numbers;
}

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
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const config::Value tree = yaml(folder + "/graphpipe/schedule_fixtures.yaml");
  int count = 0;
  for (const config::Value& f : tree.at("fixtures").items) {
    CAPTURE(f.at("name").text);
    Plan plan = plan_of(ints(f.at("micro_batch")), ints(f.at("k")), config::as_int(f.at("mini_batch")));
    plan.edges.clear();
    for (const config::Value& e : f.at("edges").items)
      plan.edges.push_back({StageId{ints(e)[0]}, StageId{ints(e)[1]}, {}});
    CHECK_NOTHROW(check_plan(plan));
    CHECK(in_flight_samples(plan) == IdVector<StageId, int>(ints(f.at("inflight_samples"))));

    const Schedule schedule = test::build("graph", plan);
    const auto& orders = f.at("orders").items;
    REQUIRE(orders.size() == schedule.device_count());
    for (std::size_t s = 0; s < orders.size(); ++s) CHECK(order_of(schedule.row(DeviceId{s})) == orders[s].text);

    StageCosts costs;
    for (const Stage& stage : plan.stages)
      costs.add({test::times(config::as_real(f.at("tF")) * stage.micro_batch_size,
                             config::as_real(f.at("tB")) * stage.micro_batch_size)});
    const Program program = test::program_of("graph", plan, costs, test::pure_delays());
    const Cluster cluster = test::delay_cluster(program.devices, 0);
    const Timeline timeline = get_from(backends::all(), "backend", "ideal").run(program, cluster, {});
    CHECK(measure(program, timeline, cluster).makespan.value == config::as_real(f.at("makespan")));
    ++count;
  }
  CHECK(count >= 11);
}

TEST_CASE("buffer sizes equal those in the prototype's strategy files") {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const config::Value tree = yaml(folder + "/graphpipe/flexflow_pr308_strategies.yaml");
  int count = 0;
  for (const config::Value& strategy : tree.at("strategies").items) {
    CAPTURE(strategy.at("file").text);
    std::vector<int> sizes, buffers, groups;
    for (const config::Value& stage : strategy.at("stages").items) {
      const std::vector<int> numbers = ints(stage);  // micro-batch, buffer, group, devices
      sizes.push_back(numbers[0]), buffers.push_back(numbers[1]), groups.push_back(numbers[2]);
    }
    Plan plan = plan_of(sizes, groups, 1024);
    if (strategy.at("file").text.ends_with("partition-ns.txt")) {  // branches 1 to 4 into 0, and that into 5
      plan.edges.clear();
      for (int s = 1; s <= 4; ++s) plan.edges.push_back({StageId{s}, StageId{0}, {}});
      plan.edges.push_back({StageId{0}, StageId{5}, {}});
    }
    CHECK(in_flight_samples(plan) == IdVector<StageId, int>(buffers));
    ++count;
  }
  CHECK(count >= 5);
}
