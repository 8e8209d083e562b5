// A share fitted to measured runs, and a file of a device type with it.

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "sim/core/file.hpp"
#include "sim/published/calibration.hpp"
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
  for (const std::string device : {"a100-80", "h100-pcie"}) {
    CAPTURE(device);
    std::filesystem::create_directories("build/calibrated");
    const Accelerator base = load_accelerator("topologies/devices/" + device + ".yaml");
    const ShareFit fit{.format = NumberFormat::Bf16, .runs = 4, .after = 0.345};
    test::write_file("build/calibrated/" + device + ".yaml", calibrated_device_file(device, {fit}, "runs.csv"));
    const Accelerator mine = load_accelerator("build/calibrated/" + device + ".yaml");
    CHECK(mine.formats[NumberFormat::Bf16].share == doctest::Approx(0.345));
    CHECK(mine.calibrated);
    CHECK(mine.memory == base.memory);
    CHECK(mine.multiprocessors == base.multiprocessors);
    CHECK(mine.launch == base.launch);
    CHECK(mine.collectives.bus == base.collectives.bus);
    CHECK(mine.formats[NumberFormat::Fp8].peak == base.formats[NumberFormat::Fp8].peak);
    CHECK(mine.formats[NumberFormat::Fp8].share == doctest::Approx(base.formats[NumberFormat::Fp8].share));
  }
}

}  // namespace stagecraft::calibration_test
