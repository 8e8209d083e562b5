// A share fitted to measured runs, and a file of a device type with it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <set>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/published/calibration.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::calibration_test {
namespace {

const std::string kFile = test::own_file("calibration.csv");

/// Writes rows without seconds, and adds the seconds that simulations of them take on a device.
void write_runs(const std::string& columns, const std::vector<std::string>& rows, const Accelerator& truth,
                const std::string& file = kFile) {
  const auto text_with = [&](const std::vector<double>& seconds) {
    std::string text = columns + ", seconds\n";
    for (std::size_t i = 0; i < rows.size(); ++i) text += fmt::format("{}, {:.15g}\n", rows[i], seconds[i]);
    return text;
  };
  test::write_file(file, text_with(std::vector<double>(rows.size(), 1)));
  std::vector<double> seconds;
  for (const MeasuredRun& m : read_runs_csv(file, "a100-80").runs) {
    std::string why;
    const auto simulated = simulate(m, truth, why);
    REQUIRE(simulated);
    seconds.push_back(simulated->time.value);
  }
  test::write_file(file, text_with(seconds));
}

/// Runs that take as long as simulations say with another share.
std::string runs_at(double share, int count) {
  Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  device.formats[NumberFormat::Bf16].share = share;
  std::vector<std::string> rows;
  for (int i = 0; i < count; ++i)
    rows.push_back(fmt::format("r{}, megatron-2021, bf16, 25 GB/s, 2048, {}, 4096, 32, 51200, 8, 2, 1, {}, 4, none", i,
                               12 + 4 * i, 1 + i));
  write_runs(
      "name, software, format, card, sequence, layers, hidden, heads, vocabulary, tensor, stages, replicas, "
      "micro_batch, micro_batches, recompute",
      rows, device);
  return kFile;
}

}  // namespace

TEST_CASE("the share that made the times of runs is found again, whichever run is left out") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const auto fits = fit_shares(read_runs_csv(runs_at(0.5, 4), "a100-80"), device);
  REQUIRE(fits.size() == 1);
  CHECK(fits.front().applied(device).formats[NumberFormat::Bf16].share == doctest::Approx(0.5).epsilon(0.002));
  CHECK(fits.front().error_after < 0.002);
  CHECK(fits.front().error_left_out < 0.003);
  CHECK(fits.front().error_before > 0.05);
}

TEST_CASE("runs are left out alone up to 64, and the work of leaving out grows with the runs") {
  for (const std::size_t count : {2, 63, 64, 65, 400, 1000}) {
    const std::vector<Fold> folds = folds_of(count);
    std::set<std::size_t> left_out;
    std::size_t fitted = 0;
    for (const Fold& fold : folds) {
      CHECK(fold.left_out.size() + fold.others.size() == count);
      left_out.insert(fold.left_out.begin(), fold.left_out.end());
      fitted += fold.others.size();
    }
    CHECK(left_out.size() == count);
    if (count <= 64) CHECK(folds.size() == count);
    CHECK(fitted <= std::max<std::size_t>(64 * 64, 4 * count));
  }
}

TEST_CASE("the share is found again with runs that are left out in groups, and a file has at most 1,000 runs") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const std::string file = runs_at(0.5, 4);
  const std::string text = read_file(file), rows = text.substr(text.find('\n') + 1);
  std::string many = text;
  for (int i = 1; i < 30; ++i) many += rows;
  test::write_file(file, many);
  const auto fits = fit_shares(read_runs_csv(file, "a100-80"), device);
  CHECK(fits.front().runs == 120);
  CHECK(fits.front().applied(device).formats[NumberFormat::Bf16].share == doctest::Approx(0.5).epsilon(0.002));
  CHECK(fits.front().error_left_out < 0.003);
  for (int i = 30; i < 251; ++i) many += rows;
  test::write_file(file, many);
  try {
    read_runs_csv(file, "a100-80");
    FAIL("1,004 runs were read");
  } catch (const InputError& error) {
    CHECK(error.problems().front().message == "there are more than 1000 runs");
    CHECK(error.problems().front().where.line == 1002);
  }
}

TEST_CASE("a fit whose simulations would take long is refused, and equal runs count once") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const std::string file = runs_at(0.5, 4);
  const std::string text = read_file(file);
  const auto with_micro_batches = [&](const std::string& count) {
    std::string many = text;
    for (std::size_t at = 0; (at = many.find(", 4, none", at)) != std::string::npos; at += count.size())
      many.replace(at, 9, ", " + count + ", none");
    test::write_file(file, many);
    return read_runs_csv(file, "a100-80");
  };
  // Four different runs of 4 n ops, each simulated 18 times.
  CHECK(fit_shares(with_micro_batches("1000"), device).size() == 1);
  CHECK_THROWS_AS(fit_shares(with_micro_batches("60000"), device), InputError);
  CHECK_THROWS_AS(fit_together(with_micro_batches("60000"), device, {FreeNumber::Share}), InputError);
  MeasuredRuns different;
  const PredictionSet set = read_runs_csv(runs_at(0.5, 3), "a100-80");
  CHECK(equal_rows({&set.runs[0], &set.runs[1], &set.runs[0], &set.runs[2]}, different) ==
        std::vector<std::size_t>{0, 1, 0, 2});
  CHECK(different.size() == 3);
}

TEST_CASE("one run is not enough for a share") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  CHECK_THROWS_AS(fit_shares(read_runs_csv(runs_at(0.5, 1), "a100-80"), device), InputError);
}

TEST_CASE("a wrong cell is reported at its line of the file") {
  runs_at(0.5, 2);
  std::string text = read_file(kFile);
  test::write_file(kFile, text +
                              "r9, megatron-2021, bf99, 25 GB/s, 2048, 24, 4096, 32, 51200, 8, 2, 1, 1, "
                              "16, none, 1\n");
  try {
    read_runs_csv(kFile, "a100-80");
    FAIL("accepted");
  } catch (const InputError& e) {
    CHECK(e.problems().front().where.line == 4);
    CHECK(e.problems().front().where.file == kFile);
  }
}

TEST_CASE("the file of a calibrated type is complete and has the new share") {
  const std::pair<std::string, NumberFormat> cases[] = {
      {"a100-80", NumberFormat::Bf16}, {"h100-pcie", NumberFormat::Bf16}, {"v100-16", NumberFormat::Fp16}};
  for (const auto& one : cases) {
    const std::string& device = one.first;
    const NumberFormat format = one.second;
    CAPTURE(device);
    const Accelerator base = load_accelerator("topologies/devices/" + device + ".yaml");
    const double factor = 0.345 / base.formats[format].share;
    const Fit fit{.numbers = {{.formats = {format}, .factor = factor}}, .runs = 4};
    const Accelerator mine =
        load_accelerator(test::own_file(device + ".yaml", calibrated_device_file(base, {fit}, "runs.csv")));
    CHECK(mine.formats[format].share == doctest::Approx(0.345));
    CHECK(mine.calibrated);
    for (const NumberFormat other : kNumberFormats) CHECK(mine.has(other) == base.has(other));
    CHECK(mine.type.peak == base.type.peak);
    CHECK(mine.type.efficiency == base.type.efficiency);
    CHECK(mine.type.launch == base.type.launch);
    CHECK(mine.type.memory == base.type.memory);
    CHECK(mine.multiprocessors == base.multiprocessors);
    CHECK(mine.launch == base.launch);
    CHECK(mine.collectives.bus == base.collectives.bus);
    CHECK(mine.formats[NumberFormat::Fp8].peak == base.formats[NumberFormat::Fp8].peak);
    CHECK(mine.formats[NumberFormat::Fp8].share == doctest::Approx(base.formats[NumberFormat::Fp8].share));
  }
}

namespace {

/// Large and tiny models on one device: matrix products bind the first three, launches the others.
std::string large_and_tiny(const Accelerator& truth) {
  std::vector<std::string> rows;
  for (int i = 0; i < 6; ++i) {
    const int hidden = i < 3 ? 4096 : 256;
    rows.push_back(fmt::format("r{}, megatron-2021, bf16, 25 GB/s, 1024, {}, {}, {}, 8192, {}, 4", i, 12 + 4 * i,
                               hidden, hidden / 64, i < 3 ? 4 : 1));
  }
  write_runs("name, software, format, card, sequence, layers, hidden, heads, vocabulary, micro_batch, micro_batches",
             rows, truth, test::own_file("joint.csv"));
  return test::own_file("joint.csv");
}

}  // namespace

TEST_CASE("share and launch that made the times of runs are found together") {
  Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  device.launch = Seconds{54e-6}, device.has_launch = true;  // As its host takes in megatron-2021.
  Accelerator truth = device;
  truth.formats[NumberFormat::Bf16].share = 0.5;
  truth.launch = 2 * device.launch;
  const PredictionSet runs = read_runs_csv(large_and_tiny(truth), "a100-80");
  const Fit fit = fit_together(runs, device, {FreeNumber::Share, FreeNumber::Launch});
  const Accelerator fitted = fit.applied(device);
  CHECK(fitted.formats[NumberFormat::Bf16].share == doctest::Approx(0.5).epsilon(0.01));
  CHECK(fitted.launch.value == doctest::Approx(truth.launch.value).epsilon(0.01));
  CHECK(fit.error_before > 0.1);
  CHECK(fit.error_left_out < 0.01);
  const std::string file = test::own_file("a100-80.yaml", calibrated_device_file(device, {fit}, "runs.csv"));
  CHECK(load_accelerator(file).launch.value == doctest::Approx(fitted.launch.value));
}

TEST_CASE("without a launch of its own, a device has that of its host in the framework of the runs") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const PredictionSet runs = read_runs_csv(large_and_tiny(device), "a100-80");
  CHECK(with_launch_of(runs, device).launch.value == doctest::Approx(54e-6));
  PredictionSet mixed = runs;
  *mixed.runs.front().row.find("software") = config::Value::scalar("megatron-core", {});
  CHECK_THROWS_AS(with_launch_of(mixed, device), InputError);
}

namespace {

/// Long and short sequences, with fused attention.
PredictionSet long_and_short(const Accelerator& truth) {
  std::vector<std::string> rows;
  for (int i = 0; i < 9; ++i)
    rows.push_back(fmt::format("r{}, torchtitan, bf16, 25 GB/s, {}, {}, 2048, 16, 8192, 1, 2", i, 512 << i, 4 + i % 2));
  write_runs("name, software, format, card, sequence, layers, hidden, heads, vocabulary, micro_batch, micro_batches",
             rows, truth, test::own_file("attention.csv"));
  return read_runs_csv(test::own_file("attention.csv"), "a100-80");
}

}  // namespace

TEST_CASE("slow attention is found as such, and a share in its place is doubtful") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  Accelerator truth = device;
  for (AttentionFacts* pass :
       {&truth.attention[AttentionKernel::Flash2].forward, &truth.attention[AttentionKernel::Flash2].backward})
    pass->share *= 0.5;
  const PredictionSet runs = long_and_short(truth);
  const Fit fit = fit_together(runs, device, {FreeNumber::Attention});
  CHECK(fit.applied(device).attention[AttentionKernel::Flash2].forward.share ==
        doctest::Approx(truth.attention[AttentionKernel::Flash2].forward.share).epsilon(0.01));
  CHECK_FALSE(fit.is_doubtful());
  const Fit share = fit_shares(runs, device).front();
  REQUIRE_FALSE(share.correlated.empty());
  CHECK(share.correlated.front().kind == FreeNumber::Attention);
  CHECK(share.is_doubtful());
}

TEST_CASE("equal runs that took other times, and a share that nothing reaches, are doubtful") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  PredictionSet runs = read_runs_csv(runs_at(0.5, 4), "a100-80");
  CHECK(fit_shares(runs, device).front().disagreement == 0);
  CHECK(fit_shares(runs, device).front().largest_share == doctest::Approx(0.5).epsilon(0.002));
  runs.runs.push_back(runs.runs.front());
  runs.runs.back().measured = 1.09 * runs.runs.front().measured;
  CHECK_FALSE(fit_shares(runs, device).front().has_contradictions());
  runs.runs.back().measured = 1.5 * runs.runs.front().measured;
  const Fit apart = fit_shares(runs, device).front();
  CHECK(apart.disagreement == doctest::Approx(0.5));
  CHECK(apart.is_doubtful());
  runs.runs.pop_back();
  for (MeasuredRun& m : runs.runs) m.measured = 0.4 * m.measured;
  const Fit fast = fit_shares(runs, device).front();
  CHECK(fast.has_impossible_share());
  CHECK(fast.is_doubtful());
}

TEST_CASE("more numbers than runs support are refused, and so is a number that no run depends on") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const auto message = [&](const PredictionSet& runs, const std::vector<FreeNumber>& numbers) {
    try {
      fit_together(runs, device, numbers);
    } catch (const InputError& e) {
      return e.problems().front().message;
    }
    return std::string("accepted");
  };
  const PredictionSet three = read_runs_csv(runs_at(0.5, 3), "a100-80");
  CHECK(message(three, {FreeNumber::Share, FreeNumber::Launch}).starts_with("2 numbers cannot be fitted to 3 runs"));
  const PredictionSet one_device = read_runs_csv(large_and_tiny(device), "a100-80");
  CHECK(message(one_device, {FreeNumber::Card}).starts_with("these runs say nothing about the rate of the cards"));
}

}  // namespace stagecraft::calibration_test
