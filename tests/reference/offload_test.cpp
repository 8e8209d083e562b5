// Copies of stashes to host memory against a small separate event simulation: makespan, and the peaks of devices and
// hosts.

#include <doctest/doctest.h>

#include "sim/result/report.hpp"
#include "tests/support/offload.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::offload_reference_test {
namespace {

/// "1.5 2" for each rank, in stashes.
std::vector<double> numbers(const std::string& text) {
  std::vector<double> list;
  for (const std::string& word : split(text, ' ')) list.push_back(std::stod(word));
  return list;
}

Report simulated(const test::ReferenceRow& row) {
  const int ranks = static_cast<int>(row.number("ranks"));
  const std::string& order = row.text("order");
  const int chunks = order == "interleaved" ? 2 : 1;
  const Plan plan = test::reduced(chain_plan(ranks * chunks, ranks, static_cast<int>(row.number("micro_batches"))));
  const StageCosts costs = uniform_costs(plan, test::stashing(row.number("forward_s"), row.number("backward_s")));
  Cluster cluster = test::delay_cluster(ranks, 0);
  test::add_hosts(cluster, row.number("copy_s"), row.number("copy_s"), row.number("full_duplex") > 0);
  const double first = row.number("share"), later = row.number("share_of_later");
  const auto share = [&](const Instruction& i) { return i.stage.value < ranks ? first : later; };
  const Program program =
      test::offloaded(test::program_of(order, plan, costs, test::pure_delays()), plan, cluster,
                      {.share = share, .ahead = static_cast<int>(row.number("ahead")), .late = row.number("late") > 0});
  return measure(program, test::run_ideal(program, cluster), cluster);
}

}  // namespace

TEST_CASE("random cases have the makespan and the peaks of a simulation that shares no code") {
  for (const test::ReferenceRow& row : test::reference_rows("offloads.csv")) {
    const Report report = simulated(row);
    CAPTURE(row.text("order"));
    CAPTURE(row.text("ranks"));
    CAPTURE(row.text("micro_batches"));
    CAPTURE(row.text("share"));
    CAPTURE(row.text("copy_s"));
    CAPTURE(row.text("full_duplex"));
    CAPTURE(row.text("ahead"));
    CAPTURE(row.text("late"));
    CHECK(report.makespan.value == doctest::Approx(row.number("makespan_s")).epsilon(1e-9));
    const std::vector<double> device = numbers(row.text("device_peaks")), host = numbers(row.text("host_peaks"));
    for (std::size_t r = 0; r < device.size(); ++r) {
      CAPTURE(r);
      CHECK(report.devices[DeviceId{r}].memory.total.value / test::kStash == doctest::Approx(device[r]).epsilon(1e-9));
      CHECK(report.host_peaks[r].value / test::kStash == doctest::Approx(host[r]).epsilon(1e-9));
    }
    CHECK(report.time.total().value == doctest::Approx(report.period.value).epsilon(1e-9));
    CHECK(report.time.unexplained.value <= 1e-9 * report.period.value);
  }
}

TEST_CASE("copies as they are issued take no longer than copies as they become ready, and mostly as long") {
  int same = 0, count = 0;
  for (const test::ReferenceRow& row : test::reference_rows("offloads.csv")) {
    const double issued = simulated(row).makespan.value, ready = row.number("as_ready_s");
    CHECK(issued <= ready * (1 + 1e-9));
    same += issued >= ready * (1 - 1e-9), ++count;
  }
  CHECK(same > 0.8 * count);
}

}  // namespace stagecraft::offload_reference_test
