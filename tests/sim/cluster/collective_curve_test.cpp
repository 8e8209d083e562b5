#include "sim/cluster/collective_curve.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/accelerator.hpp"
#include "sim/core/numbers.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::collective_curve_test {
namespace {

std::vector<CollectiveCurve> curves(const char* file) {
  return load_collective_curves(std::string("topologies/collectives/") + file + ".yaml");
}

CollectiveCurve simple() {
  CollectiveCurve curve;
  curve.system = "test";
  curve.ranks = 8;
  curve.points = {{Bytes{100}, Seconds{1}}, {Bytes{1000}, Seconds{2}}, {Bytes{10000}, Seconds{4}}};
  return curve;
}

constexpr const char* kOutput = R"(
# nThread 1 nGpus 1 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1
#
# Using devices
#  Rank  0 Group  0 Pid    149 on     node1 device  0 [0x56] NVIDIA A100-SXM4-80GB
#  Rank  1 Group  0 Pid    150 on     node1 device  1 [0x57] NVIDIA A100-SXM4-80GB
#  Rank  2 Group  0 Pid    149 on     node2 device  0 [0x56] NVIDIA A100-SXM4-80GB
#  Rank  3 Group  0 Pid    150 on     node2 device  1 [0x57] NVIDIA A100-SXM4-80GB
node1:149:149 [0] NCCL INFO Bootstrap : Using eno1:172.17.120.207<0>
#
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
     1048576        262144     float     sum      -1    60.5   17.33   26.00      0    61.1   17.2    25.7      0
     2097152        524288     float     sum      -1   100.0   20.97   31.46      0   101.0   20.8    31.1      0
# Out of bounds values : 0 OK
# Avg bus bandwidth    : 28.7
)";

}  // namespace

TEST_CASE("a power law stays one between measured sizes; above, the last rate holds") {
  const CollectiveCurve curve = simple();
  CHECK(curve.time_of(Bytes{100})->value == doctest::Approx(1));
  CHECK(curve.time_of(Bytes{300})->value == doctest::Approx(std::pow(3, std::log10(2))));
  CHECK(curve.time_of(Bytes{10000})->value == doctest::Approx(4));
  CHECK(curve.time_of(Bytes{20000})->value == doctest::Approx(8));
  CHECK_FALSE(curve.time_of(Bytes{99}));
}

TEST_CASE("times between two measured sizes are between their times") {
  for (const char* file : {"nccl-public", "vtrain-a100", "vtrain-v100"})
    for (const CollectiveCurve& curve : curves(file))
      for (std::size_t i = 0; i + 1 < curve.points.size(); ++i) {
        const auto [low, high] = std::minmax(curve.points[i].time, curve.points[i + 1].time);
        for (const double share : {0.1, 0.5, 0.9}) {
          const Bytes bytes = (1 - share) * curve.points[i].bytes + share * curve.points[i + 1].bytes;
          const Seconds time = *curve.time_of(bytes);
          CHECK(time.value >= low.value * (1 - 1e-12));
          CHECK(time.value <= high.value * (1 + 1e-12));
        }
      }
}

TEST_CASE("a curve answers for its kind, ranks and nodes alone") {
  const std::vector<CollectiveCurve> curve_list = {simple()};
  CHECK(find_curve(curve_list, CollectiveKind::AllReduce, {8}) == &curve_list.front());
  CHECK(find_curve(curve_list, CollectiveKind::AllGather, {8}) == nullptr);
  CHECK(find_curve(curve_list, CollectiveKind::AllReduce, {4}) == nullptr);
  CHECK(find_curve(curve_list, CollectiveKind::AllReduce, {8, 4}) == nullptr);
  const auto time = [&](double bytes) { return curve_time(curve_list, CollectiveKind::AllReduce, {8}, Bytes{bytes}); };
  REQUIRE(time(1000));
  CHECK(time(1000)->value == doctest::Approx(2));
  CHECK(!time(10));  // The curve does not reach so far down: the price list goes on to the constants.
}

TEST_CASE("three constants that made a curve are found again") {
  CollectiveCurve curve = simple();
  curve.points.clear();
  const CurveFit original{Seconds{20e-6}, Bandwidth{250e9}, 9e-9};
  for (double bytes = 1024; bytes < 1e10; bytes *= 3)
    curve.points.push_back({Bytes{bytes}, original.time_of(Bytes{bytes})});
  const CurveFit fitted = fit(curve);
  CHECK(fitted.alpha.value == doctest::Approx(20e-6).epsilon(1e-6));
  CHECK(fitted.rate.value == doctest::Approx(250e9).epsilon(1e-6));
  CHECK(fitted.root == doctest::Approx(9e-9).epsilon(1e-6));
  curve.points.resize(2);
  CHECK(test::input_error_of([&] { fit(curve); }).find("2 points") != std::string::npos);
}

TEST_CASE("the fit to a DGX H100 has the constants of that device type") {
  const std::vector<CollectiveCurve> curve_list = curves("nccl-public");
  const CurveFit fitted = fit(*find_curve(curve_list, CollectiveKind::AllReduce, {8}));
  CHECK(fitted.root ==
        doctest::Approx(load_accelerator("topologies/devices/h100-sxm.yaml").collectives.root).epsilon(0.02));
}

TEST_CASE("measured curves predict a size that was left out") {
  std::vector<double> errors;
  for (const char* file : {"nccl-public"})
    for (const CollectiveCurve& curve : curves(file))
      for (std::size_t i = 1; i + 1 < curve.points.size(); ++i) {
        if (curve.points[i].bytes.value <= 1024) continue;
        CollectiveCurve others = curve;
        others.points.erase(others.points.begin() + static_cast<std::ptrdiff_t>(i));
        errors.push_back(std::abs(*others.time_of(curve.points[i].bytes) / curve.points[i].time - 1));
      }
  REQUIRE(errors.size() > 200);
  MESSAGE("leave one out: ", errors.size(), " points, median ", median(errors), ", p90 ", quantile(errors, 0.9));
  CHECK(median(errors) <= 0.06);
  CHECK(quantile(errors, 0.9) <= 0.12);
}

TEST_CASE("the formula agrees with vTrain's table for groups of two to eight A100") {
  const CollectiveConstants a100 = load_accelerator("topologies/devices/a100-80.yaml").collectives;
  std::vector<double> errors;
  for (const CollectiveCurve& curve : curves("vtrain-a100"))
    for (const CollectiveCurve::Point& p : curve.points)
      errors.push_back(std::abs(collective_time(curve.kind, {curve.ranks}, p.bytes, a100, {}) / p.time - 1));
  MESSAGE("formula against the table: median ", median(errors), ", p90 ", quantile(errors, 0.9));
  CHECK(median(errors) <= 0.05);
}

TEST_CASE("points have to rise") {
  CHECK(test::input_error_of([] {
          read_collective_curves(
              test::checked("{schema: collectives/1, title: t, source: s, curves: [{system: a, "
                            "source: s, kind: all_reduce, ranks: 2, nodes: 1, points: [[2, 1], [1, "
                            "2]]}]}",
                            collective_curve_fields()));
        }).find("points") != std::string::npos);
}

TEST_CASE("the output of nccl-tests becomes a curve") {
  const CollectiveCurve curve = read_nccl_tests(kOutput, "log.txt", CollectiveKind::AllReduce);
  CHECK(curve.kind == CollectiveKind::AllReduce);
  CHECK(curve.ranks == 4);
  CHECK(curve.nodes == 2);
  REQUIRE(curve.points.size() == 2);
  CHECK(curve.points[0].bytes.value == 1048576);
  CHECK(curve.points[0].time.value == doctest::Approx(60.5e-6));
  const std::string named = std::string("# Collective test starting: all_gather_perf\n") + kOutput;
  CHECK(read_nccl_tests(named, "log.txt").kind == CollectiveKind::AllGather);
}

TEST_CASE("sizes and times that no test prints are refused with their line, and all others have a fit") {
  const std::string head = kOutput;
  const auto row = [](double bytes, double microseconds) {
    return fmt::format("{} 1 float sum -1 {} 1 1 0\n", bytes, microseconds);
  };
  const auto error = [&](const std::string& rows) {
    return test::input_error_of([&] { read_nccl_tests(head + rows, "log.txt", CollectiveKind::AllReduce); });
  };
  for (const std::string& rows : {row(1e300, 1), row(1e19, 1), row(0.5, 1), row(1, 1e16), row(1, 1e-4)})
    CHECK(error(rows).find("is outside") != std::string::npos);
  for (const double first : {1e-3, 1.0, 1e15})
    for (const double second : {1e-3, 1.0, 1e15})
      for (const double third : {1e-3, 1.0, 1e15})
        for (const double bytes : {3.0, 1e9, 1e18}) {
          const std::string rows = row(1, first) + row(2, second) + row(bytes, third);
          const CurveFit fitted = fit(read_nccl_tests(head + rows, "log.txt", CollectiveKind::AllReduce));
          CHECK(std::isfinite(fitted.time_of(Bytes{1e6}).value));
        }
}

TEST_CASE("other texts are refused with what they lack") {
  const auto error = [](const std::string& text) {
    return test::input_error_of([&] { read_nccl_tests(text, "log.txt"); });
  };
  CHECK(error("").find("no table") != std::string::npos);
  CHECK(error("a b c\n1 2 3\n").find("no table") != std::string::npos);
  CHECK(error(kOutput).find("does not name the collective") != std::string::npos);
  CHECK(error(std::string("all_reduce_perf\n") + kOutput + kOutput).find("twice") != std::string::npos);
}

}  // namespace stagecraft::collective_curve_test
