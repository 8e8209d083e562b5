// A share fitted to measured runs, and a file of a device type with it.

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/published/calibration.hpp"
#include "sim/published/cross_validation.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::calibration_test {
namespace {

constexpr const char* kColumns =
    "name, software, format, card, sequence, layers, hidden, heads, vocabulary, tensor, stages, replicas, micro_batch, "
    "micro_batches, recompute, seconds";

/// Runs that take as long as the formula says with another share.
std::string runs_at(double share, int count, const std::string& file) {
  Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  device.formats[NumberFormat::Bf16].share = share;
  std::string text = std::string(kColumns) + "\n";
  for (int i = 0; i < count; ++i) {
    TrainingRun run{.model = {.layers = 24 + 8 * i,
                              .hidden = 4096,
                              .heads = 32,
                              .key_value_heads = 32,
                              .width = 16384,
                              .sequence = 2048,
                              .vocabulary = 51200},
                    .software = software_stack("megatron-2021"),
                    .degrees = {.tensor = 8},
                    .stages = 2,
                    .micro_batch = 1 + i,
                    .micro_batches = 16,
                    .card = Bandwidth{25e9}};
    const double seconds = iteration_time(run, device).total().value;
    text +=
        fmt::format("r{}, megatron-2021, bf16, 25 GB/s, 2048, {}, 4096, 32, 51200, 8, 2, 1, {}, 16, none, {:.12g}\n", i,
                    run.model.layers, run.micro_batch, seconds);
  }
  test::write_file(file, text);
  return file;
}

}  // namespace

TEST_CASE("the share that made the times of runs is found again, whichever run is left out") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  const auto fits = fit_shares(read_runs_csv(runs_at(0.5, 4, "build/calibration.csv"), "a100-80"), device);
  REQUIRE(fits.size() == 1);
  CHECK(fits.front().after == doctest::Approx(0.5).epsilon(0.002));
  CHECK(fits.front().error_after < 0.002);
  CHECK(fits.front().error_left_out < 0.003);
  CHECK(fits.front().error_before > 0.05);
}

TEST_CASE("runs are left out alone up to 64, and the work of leaving out grows with the runs") {
  const std::vector<MeasuredRun> measured(1000);
  for (const std::size_t count : {2, 63, 64, 65, 400, 1000}) {
    MeasuredRuns runs;
    for (std::size_t i = 0; i < count; ++i) runs.push_back(&measured[i]);
    const std::vector<Fold> folds = folds_of(runs);
    std::set<const MeasuredRun*> left_out;
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
  const std::string file = runs_at(0.5, 4, "build/calibration-many.csv");
  const std::string text = read_file(file), rows = text.substr(text.find('\n') + 1);
  std::string many = text;
  for (int i = 1; i < 30; ++i) many += rows;
  test::write_file(file, many);
  const auto fits = fit_shares(read_runs_csv(file, "a100-80"), device);
  CHECK(fits.front().runs == 120);
  CHECK(fits.front().after == doctest::Approx(0.5).epsilon(0.002));
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

TEST_CASE("one run is not enough for a share") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  CHECK_THROWS_AS(fit_shares(read_runs_csv(runs_at(0.5, 1, "build/calibration.csv"), "a100-80"), device), InputError);
}

TEST_CASE("a wrong cell is reported at its line of the file") {
  runs_at(0.5, 2, "build/calibration.csv");
  std::string text = read_file("build/calibration.csv");
  test::write_file("build/calibration.csv",
                   text +
                       "r9, megatron-2021, bf99, 25 GB/s, 2048, 24, 4096, 32, 51200, 8, 2, 1, 1, "
                       "16, none, 1\n");
  try {
    read_runs_csv("build/calibration.csv", "a100-80");
    FAIL("accepted");
  } catch (const InputError& e) {
    CHECK(e.problems().front().where.line == 4);
    CHECK(e.problems().front().where.file == "build/calibration.csv");
  }
}

TEST_CASE("the file of a calibrated type is complete and has the new share") {
  const std::pair<std::string, NumberFormat> cases[] = {
      {"a100-80", NumberFormat::Bf16}, {"h100-pcie", NumberFormat::Bf16}, {"v100-16", NumberFormat::Fp16}};
  for (const auto& one : cases) {
    const std::string& device = one.first;
    const NumberFormat format = one.second;
    CAPTURE(device);
    std::filesystem::create_directories("build/calibrated");
    const Accelerator base = load_accelerator("topologies/devices/" + device + ".yaml");
    const ShareFit fit{.format = format, .runs = 4, .after = 0.345};
    test::write_file("build/calibrated/" + device + ".yaml", calibrated_device_file(device, {fit}, "runs.csv"));
    const Accelerator mine = load_accelerator("build/calibrated/" + device + ".yaml");
    CHECK(mine.formats[format].share == doctest::Approx(0.345));
    CHECK(mine.calibrated);
    for (const NumberFormat other : kNumberFormats) CHECK(mine.has(other) == base.has(other));
    CHECK(mine.roofline.peak == base.roofline.peak);
    CHECK(mine.roofline.efficiency == base.roofline.efficiency);
    CHECK(mine.roofline.launch == base.roofline.launch);
    CHECK(mine.memory == base.memory);
    CHECK(mine.multiprocessors == base.multiprocessors);
    CHECK(mine.launch == base.launch);
    CHECK(mine.collectives.bus == base.collectives.bus);
    CHECK(mine.formats[NumberFormat::Fp8].peak == base.formats[NumberFormat::Fp8].peak);
    CHECK(mine.formats[NumberFormat::Fp8].share == doctest::Approx(base.formats[NumberFormat::Fp8].share));
  }
}

namespace {

/// Large and tiny models on one device: matrix products bind the first three, launches the others.
std::string large_and_tiny(const Accelerator& device, const std::string& file) {
  std::string text =
      "name, software, format, card, sequence, layers, hidden, heads, vocabulary, micro_batch, micro_batches, "
      "seconds\n";
  for (int i = 0; i < 6; ++i) {
    const int hidden = i < 3 ? 4096 : 256, layers = 12 + 4 * i;
    TrainingRun run{.model = {.layers = layers,
                              .hidden = hidden,
                              .heads = hidden / 64,
                              .key_value_heads = hidden / 64,
                              .width = 4 * hidden,
                              .sequence = 1024,
                              .vocabulary = 8192},
                    .software = software_stack("megatron-2021"),
                    .micro_batch = i < 3 ? 4 : 1,
                    .micro_batches = 4,
                    .card = Bandwidth{25e9}};
    text += fmt::format("r{}, megatron-2021, bf16, 25 GB/s, 1024, {}, {}, {}, 8192, {}, 4, {:.12g}\n", i, layers,
                        hidden, hidden / 64, run.micro_batch, iteration_time(run, device).total().value);
  }
  test::write_file(file, text);
  return file;
}

}  // namespace

TEST_CASE("share and launch that made the times of runs are found together") {
  const Accelerator device = load_accelerator("topologies/devices/a100-80.yaml");
  Accelerator truth = device;
  truth.formats[NumberFormat::Bf16].share = 0.5;
  truth.launch = 2 * device.launch;
  const PredictionSet runs = read_runs_csv(large_and_tiny(truth, "build/joint.csv"), "a100-80");
  const JointFit fit = fit_together(runs, device, {FreeNumber::Share, FreeNumber::Launch});
  const Accelerator fitted = fit.applied(device);
  CHECK(fitted.formats[NumberFormat::Bf16].share == doctest::Approx(0.5).epsilon(0.01));
  CHECK(fitted.launch.value == doctest::Approx(truth.launch.value).epsilon(0.01));
  CHECK(fit.error_before > 0.1);
  CHECK(fit.error_left_out < 0.01);
  std::filesystem::create_directories("build/calibrated");
  test::write_file("build/calibrated/a100-80.yaml", calibrated_device_file(fitted, fit, "runs.csv"));
  CHECK(load_accelerator("build/calibrated/a100-80.yaml").launch.value == doctest::Approx(fitted.launch.value));
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
  const PredictionSet three = read_runs_csv(runs_at(0.5, 3, "build/calibration.csv"), "a100-80");
  CHECK(message(three, {FreeNumber::Share, FreeNumber::Launch}).starts_with("2 numbers cannot be fitted to 3 runs"));
  const PredictionSet one_device = read_runs_csv(large_and_tiny(device, "build/joint.csv"), "a100-80");
  CHECK(message(one_device, {FreeNumber::Card}).starts_with("these runs say nothing about the rate of the cards"));
}

}  // namespace stagecraft::calibration_test
