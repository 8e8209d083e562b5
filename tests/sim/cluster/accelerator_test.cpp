#include "sim/cluster/accelerator.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>

#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::accelerator_test {
namespace {

constexpr const char* kComplete = R"(
schema: device/1
title: a device
source: this test
calibrated: true
formats:
  bf16: {peak: 100 TFLOP/s, share: 0.5, half_depth: 100, measured: here}
  fp8: {peak: 200 TFLOP/s}
memory: {size: 10 GB, rate: 1 TB/s, share: 0.8, permute_share: 0.5}
multiprocessors: 10
tiles: [[128, 256], [64, 64]]
attention: {forward: {share: 0.5, fixed: 20 us}, backward: {share: 0.4, fixed: 30 us}}
grouped: {share: 0.4, half_rows: 280}
collectives: {alpha: 10 us, hop: 1 us, bus: 100 GB/s, root: 9.4 ns}
)";

Accelerator read(const std::string& yaml, const Accelerator* relative = nullptr) {
  return read_accelerator(test::checked(yaml, accelerator_fields()), relative);
}

std::vector<std::string> device_files() {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("topologies/devices")) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

TEST_CASE("a device type has the figures of its file in base units") {
  const Accelerator device = read(kComplete);
  CHECK(device.formats[NumberFormat::Bf16].peak.value == 100e12);
  CHECK(device.formats[NumberFormat::Bf16].calibrated);
  CHECK(device.collectives.root == doctest::Approx(9.4e-9));
  CHECK(device.tiles[1].columns == 64);
  CHECK(device.streaming_rate().value == doctest::Approx(0.8e12));
  CHECK(device.wide_format() == NumberFormat::Bf16);
  CHECK_FALSE(device.has(NumberFormat::NvFp4));
}

TEST_CASE("a format with a peak alone has the share of 16-bit products and is not calibrated") {
  const FormatFacts fp8 = read(kComplete).formats[NumberFormat::Fp8];
  CHECK(fp8.share == 0.5);
  CHECK(fp8.half_depth == doctest::Approx(200));
  CHECK_FALSE(fp8.calibrated);
}

TEST_CASE("a relative gives what a file leaves out, but not its formats") {
  const Accelerator relative = read(kComplete);
  const Accelerator device = read(
      "{schema: device/1, title: t, source: s, like: other, calibrated: false, formats: {bf16: {peak: 50 TFLOP/s}}, "
      "memory: {rate: 2 TB/s}}",
      &relative);
  CHECK(device.formats[NumberFormat::Bf16].peak.value == 50e12);
  CHECK(device.formats[NumberFormat::Bf16].share == 0.5);
  CHECK_FALSE(device.formats[NumberFormat::Bf16].calibrated);
  CHECK_FALSE(device.has(NumberFormat::Fp8));
  CHECK(device.type.memory_bandwidth.value == 2e12);
  CHECK(device.type.memory.value == 10e9);
  CHECK_FALSE(device.calibrated);
}

TEST_CASE("a device type without a relative needs every figure, and calibration needs a measured share") {
  CHECK(test::input_error_of([] {
          read("{schema: device/1, title: t, source: s, calibrated: true, formats: {bf16: {peak: 50 TFLOP/s}}}");
        }).find("formats.bf16.share") != std::string::npos);
  std::string claimed = kComplete;
  claimed.replace(claimed.find(", measured: here"), 16, "");
  CHECK(test::input_error_of([&] { read(claimed); }).find("calibrated") != std::string::npos);
}

TEST_CASE("an unknown number format is refused with a suggestion") {
  std::string wrong = kComplete;
  wrong.replace(wrong.find("fp8:"), 4, "pf8:");
  CHECK(test::input_error_of([&] { read(wrong); }).find("fp8") != std::string::npos);
}

TEST_CASE("relatives in a circle are refused") {
  const test::Folder folder;
  for (const auto& [name, like] : {std::pair{"a", "b"}, {"b", "a"}})
    test::write_file(folder / (std::string(name) + ".yaml"),
                     std::string("{schema: device/1, title: t, source: s, like: ") + like +
                         ", calibrated: false, formats: {bf16: {peak: 50 TFLOP/s}}}");
  CHECK(test::input_error_of([&] { load_accelerator(folder / "a.yaml"); }).find("circle") != std::string::npos);
}

TEST_CASE("every device type of the project loads, and every share says where it comes from") {
  const auto files = device_files();
  REQUIRE(files.size() >= 20);
  for (const std::string& file : files) {
    CAPTURE(file);
    const Accelerator device = load_accelerator(file);
    CHECK(device.name == std::filesystem::path(file).stem().string());
    CHECK(device.type.idle <= device.type.busy);
    for (const NumberFormat format : kNumberFormats)
      if (device.has(format)) CHECK_FALSE(device.formats[format].origin.empty());
    // Narrower numbers are never slower.
    if (device.has(NumberFormat::Fp8))
      CHECK(device.formats[NumberFormat::Fp8].peak >= device.formats[device.wide_format()].peak);
  }
}

TEST_CASE("costs of whole layers take the 16-bit peak and the share of products unless a roofline says otherwise") {
  const Accelerator plain = read(kComplete);
  CHECK(plain.type.peak.value == 100e12);
  CHECK(plain.type.efficiency == 0.5);
  CHECK(plain.type.launch.value == 0);
  CHECK(plain.type.memory_reserve.value == doctest::Approx(2 * 0x1p30 + 0.03 * 10e9));
  const Accelerator stated =
      read(std::string(kComplete) + "roofline: {peak: 90 TFLOP/s, efficiency: 0.3, launch: 5 us}\n");
  CHECK(stated.type.peak.value == 90e12);
  const Accelerator derived = read(
      "{schema: device/1, title: t, source: s, like: other, calibrated: false, formats: {bf16: {peak: 50 TFLOP/s}}}",
      &stated);
  CHECK(derived.type.peak.value == 50e12);
  CHECK(derived.type.efficiency == 0.3);
  CHECK(derived.type.launch.value == doctest::Approx(5e-6));
}

TEST_CASE("a device type without number formats has a roofline and no kernels") {
  const std::string text =
      "schema: device/1\ntitle: t\nsource: s\ncalibrated: false\nmemory: {size: 4 GiB, rate: 10 GB/s, reserve: 0 "
      "GiB}\n";
  const Accelerator device = read(text + "roofline: {peak: 1 TFLOP/s, efficiency: 0.5}\n");
  CHECK_FALSE(device.has_kernels());
  CHECK(device.type.memory_reserve.value == 0);
  CHECK(device.type.peak.value == 1e12);
  CHECK(test::input_error_of([&] { read(text); }).find("roofline.peak") != std::string::npos);
  CHECK(test::input_error_of([&] { read(text + "roofline: {peak: 1 TFLOP/s}\n"); }).find("roofline.efficiency") !=
        std::string::npos);
}

TEST_CASE("figures that no device can have are refused") {
  for (const auto& change : {std::pair<std::string, std::string>{"100 TFLOP/s", "0 FLOP/s"},
                             {"1 TB/s", "0 B/s"},
                             {"20 us", "1e31 s"},
                             {"10 GB,", "1e40 GB,"}}) {
    const std::string &figure = change.first, &wrong = change.second;
    CAPTURE(wrong);
    std::string yaml = kComplete;
    yaml.replace(yaml.find(figure), figure.size(), wrong);
    CHECK(test::input_error_of([&] { read(yaml); }).find("is not possible here") != std::string::npos);
  }
}

}  // namespace stagecraft::accelerator_test
