// The constants of kernels and collectives, compared with the tables from which they come: SimuMax's shares of the peak
// by shape, and public outputs of nccl-tests.

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "sim/cluster/collective_curve.hpp"
#include "sim/core/numbers.hpp"
#include "sim/cost/kernel.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::kernel_table_test {
namespace {

/// Relative errors of the law of products on the rows of a system.
std::vector<double> product_errors(const std::string& system, const Accelerator& device) {
  std::vector<double> errors;
  for (const test::ReferenceRow& row : test::reference_rows("product_shares.csv")) {
    if (row.text("system") != system) continue;
    const Kernel product{.kind = KernelKind::Product,
                         .m = row.number("m"),
                         .n = row.number("n"),
                         .k = row.number("k"),
                         .batch = row.number("batch")};
    errors.push_back(std::abs(product_share(product, device) / row.number("share") - 1));
  }
  return errors;
}

}  // namespace

TEST_CASE("the law of products meets the measured products of an A100") {
  const auto errors = product_errors("a100_pcie", load_accelerator("topologies/devices/a100-80-pcie.yaml"));
  MESSAGE(errors.size(), " products: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  REQUIRE(errors.size() == 117);
  CHECK(median(errors) < 0.03);
  CHECK(quantile(errors, 0.9) < 0.1);
}

TEST_CASE("a table of shapes of a B200 scatters around the law with the share of single kernels") {
  Accelerator b200 = load_accelerator("topologies/devices/b200.yaml");
  b200.formats[NumberFormat::Bf16].share = 0.508;  // Training reaches 0.44.
  const auto errors = product_errors("b200_bf16_ceperm", b200);
  MESSAGE(errors.size(), " products: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  REQUIRE(errors.size() == 335);
  CHECK(median(errors) < 0.08);
}

TEST_CASE("the shipped curves have every measured point") {
  std::size_t points = 0;
  for (const CollectiveCurve& curve : load_collective_curves("topologies/collectives/nccl-public.yaml"))
    points += curve.points.size();
  CHECK(points == 279);  // The rows of the tables that the file names.
}

TEST_CASE("the shipped sizes of vTrain's table predict all of its sizes") {
  std::vector<double> errors;
  for (const test::ReferenceRow& row : test::reference_rows("all_reduces.csv")) {
    const auto curves = load_collective_curves("topologies/collectives/vtrain-" + row.text("device") + ".yaml");
    const CollectiveCurve* curve = find_curve(curves, CollectiveKind::AllReduce, {row.integer("ranks")});
    REQUIRE(curve != nullptr);
    for (const std::string& point : split(row.text("times"), ' ')) {
      const std::optional<Seconds> time = curve->time_of(Bytes{std::stod(point) * (1 << 20)});
      const double microseconds = std::stod(point.substr(point.find(':') + 1));
      if (time) errors.push_back(std::abs(time->value / (microseconds / 1e6) - 1));
    }
  }
  MESSAGE(errors.size(), " sizes: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  CHECK(errors.size() > 7000);
  CHECK(median(errors) < 0.01);
  CHECK(quantile(errors, 0.9) < 0.03);
}

}  // namespace stagecraft::kernel_table_test
