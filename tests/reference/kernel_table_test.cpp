// The constants of kernels and collectives, compared with the tables from which they come: SimuMax's shares of the peak
// by shape, and public outputs of nccl-tests.

#include <doctest/doctest.h>

#include <cmath>
#include <optional>

#include "sim/cluster/collective_curve.hpp"
#include "sim/core/file.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/kernel.hpp"
#include "tests/support/checked.hpp"

using namespace stagecraft;

namespace {

std::vector<std::string> lines_of(const std::string& file) {
  std::vector<std::string> lines = split(read_file(test::reference_data() + "/parallelism/" + file), '\n');
  lines.erase(lines.begin());
  if (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

/// The number after "m=" in a shape.
double number_after(const std::string& line, const std::string& key) {
  const std::size_t at = line.find(key);
  return at == std::string::npos ? 0 : std::stod(line.substr(at + key.size()));
}

/// Relative errors of the law of products on the rows of a system.
std::vector<double> product_errors(const std::string& system, const Accelerator& device) {
  std::vector<double> errors;
  for (const std::string& line : lines_of("kernel_efficiency_simumax.csv")) {
    if (!line.starts_with(system + ",matmul,")) continue;
    Kernel product{.kind = KernelKind::Product,
                   .m = number_after(line, "m="),
                   .n = number_after(line, "n="),
                   .k = number_after(line, " k="),
                   .batch = number_after(line, "b=")};
    const double measured = std::stod(line.substr(line.rfind(',') + 1));
    errors.push_back(std::abs(product_share(product, device) / measured - 1));
  }
  return errors;
}

}  // namespace

TEST_CASE("the law of products meets the measured products of an A100") {
  if (test::reference_data().empty()) return;
  const auto errors = product_errors("a100_pcie", load_accelerator("topologies/devices/a100-80-pcie.yaml"));
  MESSAGE(errors.size(), " products: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  REQUIRE(errors.size() == 117);
  CHECK(median(errors) < 0.03);
  CHECK(quantile(errors, 0.9) < 0.1);
}

TEST_CASE("a table of shapes of a B200 scatters around the law with the share of single kernels") {
  if (test::reference_data().empty()) return;
  Accelerator b200 = load_accelerator("topologies/devices/b200.yaml");
  b200.formats[NumberFormat::Bf16].share = 0.508;  // Training reaches 0.44.
  const auto errors = product_errors("b200_bf16_ceperm", b200);
  MESSAGE(errors.size(), " products: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  REQUIRE(errors.size() == 335);
  CHECK(median(errors) < 0.08);
}

TEST_CASE("the shipped curves have every measured point") {
  if (test::reference_data().empty()) return;
  std::size_t points = 0;
  for (const CollectiveCurve& curve : load_collective_curves("topologies/collectives/nccl-public.yaml"))
    points += curve.points.size();
  CHECK(points == lines_of("nccl_curves.csv").size());
}

TEST_CASE("the shipped sizes of vTrain's table predict all of its sizes") {
  if (test::reference_data().empty()) return;
  std::vector<double> errors;
  for (const char* type : {"a100", "v100"}) {
    const auto curves = load_collective_curves(std::string("topologies/collectives/vtrain-") + type + ".yaml");
    for (const std::string& line : lines_of("nccl_allreduce_a100_v100_vtrain.csv")) {
      const std::vector<std::string> cells = split(line, ',');
      if (cells[0] != type) continue;
      const CollectiveCurve* curve = find_curve(curves, CollectiveKind::AllReduce, {std::stoi(cells[1])});
      REQUIRE(curve != nullptr);
      const std::optional<Seconds> time = curve->time_of(Bytes{std::stod(cells[2])});
      if (time) errors.push_back(std::abs(time->value / (std::stod(cells[3]) / 1e6) - 1));
    }
  }
  MESSAGE(errors.size(), " sizes: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  CHECK(errors.size() > 7000);
  CHECK(median(errors) < 0.01);
  CHECK(quantile(errors, 0.9) < 0.03);
}
