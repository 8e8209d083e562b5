// States of the optimizer on hosts, next to a published measurement.

#include <cmath>

#include <doctest/doctest.h>

#include "sim/plan/host_optimizer.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::host_optimizer_test {
namespace {

constexpr double kParameters = 30.5e9;  ///< Qwen3 30B-A3B.
constexpr int kDevices = 16, kOfHost = 8;
constexpr double kHostRate = 134e9;  ///< The one number that is fitted, to the row with all states.

constexpr Precision kMixed{.weight = 2, .gradient = 4, .optimizer = 12, .activation = 2};

double updated(double share) { return share * kParameters / kDevices; }

Seconds time(double share, bool beside = true) {
  const Route link{.hops = {}, .latency = {}, .bandwidth = Bandwidth{25e9}};
  return host_update_time(kMixed, updated(share), kOfHost * updated(share), link, link, Bandwidth{kHostRate}, beside);
}

}  // namespace

TEST_CASE("a share of the moments on the host saves 8 bytes of each parameter") {
  const std::vector<test::ReferenceRow> rows = test::reference_rows("host_optimizer.csv");
  const double whole = rows.front().number("allocated_GB");
  for (const test::ReferenceRow& row : rows) {
    if (row.text("allocated_GB").empty()) continue;
    const double saved = kMomentBytes * updated(row.number("share")) / 1e9;
    CAPTURE(row.text("share"));
    CHECK(saved == doctest::Approx(whole - row.number("allocated_GB")).epsilon(0.02));
  }
}

TEST_CASE("the host's updates take time in proportion; the measured rows are within 7 %") {
  const std::vector<test::ReferenceRow> rows = test::reference_rows("host_optimizer.csv");
  const double without = rows.front().number("iteration_ms");
  for (const test::ReferenceRow& row : rows) {
    const double share = row.number("share");
    const double predicted = without + 1000 * time(share).value;
    CAPTURE(share);
    MESSAGE(share, ": ", predicted, " ms, measured ", row.number("iteration_ms"));
    CHECK(predicted == doctest::Approx(row.number("iteration_ms")).epsilon(0.07));
  }
}

TEST_CASE("one after the other, the copies add to the update; next to each other one bucket of them does") {
  const double down = 4 * kParameters / kDevices / 25e9, up = down / 2;
  const double adam = 28 * kParameters / kDevices * kOfHost / kHostRate;
  const double buckets = std::ceil(4 * kParameters / kDevices / (25.0 * (1 << 20)));
  CHECK(time(1, false).value == doctest::Approx(down + adam + up).epsilon(1e-12));
  CHECK(time(1, true).value == doctest::Approx(adam + (down + up) / buckets).epsilon(1e-12));
  CHECK(time(0).value == 0);
}

}  // namespace stagecraft::host_optimizer_test
