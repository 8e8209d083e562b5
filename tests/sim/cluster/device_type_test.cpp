#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "tests/support/checked.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::device_type_test {
namespace {

DeviceType preset(const std::string& name) { return find_device_preset(name).value().type; }

}  // namespace

TEST_CASE("every preset is complete and names its source") {
  const std::vector<std::string> names = device_preset_names();
  CHECK(names.size() == 24);
  for (const std::string& name : names) {
    CAPTURE(name);
    const Accelerator preset = find_device_preset(name).value();
    const DeviceType type = preset.type;
    CHECK(type.name == name);
    CHECK(type.preset == name);
    CHECK(type.peak.value > 0);
    CHECK(type.efficiency > 0);
    CHECK(type.efficiency <= 1);
    CHECK(type.memory_bandwidth.value > 0);
    CHECK(type.memory.value > 0);
    CHECK(type.busy >= type.idle);
    CHECK_FALSE(preset.source.empty());
  }
  CHECK(preset("h100-sxm").peak.value == 989.4e12);
  CHECK_FALSE(find_device_preset("nothing"));
  CHECK_FALSE(find_device_preset("../lab-4"));  // A path is no name.
}

TEST_CASE("a file in a folder of STAGECRAFT_PATH is a device type, and may name a relative of the project") {
  const test::Folder root;
  std::filesystem::create_directories(root / "topologies/devices");
  test::write_file(root / "topologies/devices/mine.yaml",
                   "{schema: device/1, title: t, source: s, like: a100-80, calibrated: false, "
                   "formats: {bf16: {peak: 400 TFLOP/s}}, memory: {size: 90 GiB}}");
  setenv("STAGECRAFT_PATH", root.path().c_str(), 1);
  const DeviceType mine = preset("mine"), relative = preset("a100-80");
  CHECK(mine.peak.value == 400e12);
  CHECK(mine.efficiency == relative.efficiency);
  CHECK(mine.launch == relative.launch);
  CHECK(mine.memory_reserve.value == doctest::Approx((2 + 0.03 * 90) * 0x1p30));
  const auto map = test::checked("{preset: mine, efficiency: 0.25}", device_type_fields());
  CHECK(read_device_type(map, "other", "other").peak == mine.peak);
  unsetenv("STAGECRAFT_PATH");
}

TEST_CASE("a type starts from a preset and replaces what is given") {
  const auto map = test::checked("{preset: a100-80, efficiency: 0.25, memory: 70 GiB}", device_type_fields());
  const DeviceType type = read_device_type(map, "mine", "mine");
  CHECK(type.name == "mine");
  CHECK(type.efficiency == 0.25);
  CHECK(type.memory.value == 70 * 0x1p30);
  CHECK(type.peak.value == doctest::Approx(312e12));
  CHECK(type.speed == 1);
}

TEST_CASE("GPUs of presets reserve memory for CUDA, NCCL and fragmentation; all other devices reserve none") {
  const auto reserve = [](const std::string& text) {
    return read_device_type(test::checked(text, device_type_fields()), "mine", "mine").memory_reserve.value;
  };
  CHECK(preset("h100-sxm").memory_reserve.value == doctest::Approx((2 + 0.03 * 80) * 0x1p30));
  for (const char* other : {"tpu-v4", "jetson-agx-orin", "jetson-nano", "raspberry-pi-4"})
    CHECK(preset(other).memory_reserve.value == 0);
  CHECK(reserve("{peak: 1 TFLOP/s, memory_bandwidth: 1 TB/s, memory: 80 GiB}") == 0);
  CHECK(reserve("{preset: h100-sxm}") == preset("h100-sxm").memory_reserve.value);
  CHECK(reserve("{preset: h100-sxm, memory: 40 GiB}") == doctest::Approx((2 + 0.03 * 40) * 0x1p30));
  CHECK(reserve("{preset: h100-sxm, memory: 4 GiB}") == 0x1p30);  // A quarter.
  CHECK(reserve("{preset: h100-sxm, memory_reserve: 0 GiB}") == 0);
  CHECK(reserve("{preset: h100-sxm, memory_reserve: 7 GiB}") == 7 * 0x1p30);
  CHECK(reserve("{preset: raspberry-pi-4, memory: 8 GiB}") == 0);
}

TEST_CASE("a type without a preset needs its three figures") {
  const auto map = test::checked("{peak: 1 TFLOP/s}", device_type_fields());
  const std::string error = test::input_error_of([&] { read_device_type(map, "mine", "mine"); });
  CHECK(error.find("1: mine: the field 'memory_bandwidth' is missing") != std::string::npos);
  CHECK(error.find("the field 'memory' is missing") != std::string::npos);
  CHECK(error.find("'peak'") == std::string::npos);
}

TEST_CASE("links have defaults and duplex words, and a bandwidth of zero is refused") {
  const Link plain = read_link(test::checked("{bandwidth: 8 Gbit/s}", link_fields()), "l");
  CHECK(plain.bandwidth.value == 1e9);
  CHECK(plain.latency.value == 0);
  CHECK(plain.duplex == Duplex::Full);
  CHECK(plain.efficiency == 1);
  CHECK(plain.window.value == 0);
  CHECK_FALSE(plain.slow_start);
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, duplex: half}", link_fields()), "l").duplex == Duplex::Half);
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, duplex: unshared}", link_fields()), "l").duplex ==
        Duplex::Unshared);
  const auto zero = test::checked("{bandwidth: 0}", link_fields());
  CHECK(test::input_error_of([&] { read_link(zero, "l"); }).find("1: l.bandwidth: a bandwidth of 0 carries nothing") ==
        0);
  CHECK(test::input_error_of([&] { test::checked("{bandwidth: -1 GB/s}", link_fields()); }).find("negative") !=
        std::string::npos);
}

TEST_CASE("messages get the share of a link's bandwidth that is not headers") {
  const Link link = read_link(test::checked("{bandwidth: 100 Mbit/s, efficiency: 0.956}", link_fields()), "l");
  CHECK(link.bandwidth.value == 12.5e6 * 0.956);
  CHECK(link.efficiency == 0.956);
  for (const char* share : {"0", "-0.5", "1.01"}) {
    CAPTURE(share);
    const std::string text = std::string("{bandwidth: 1 GB/s, efficiency: ") + share + "}";
    CHECK_THROWS_AS(test::checked(text, link_fields()), InputError);
  }
}

TEST_CASE("a link may have a window above zero") {
  const auto window = [](const std::string& text) {
    return read_link(test::checked("{bandwidth: 1 GB/s, window: " + text + "}", link_fields()), "l").window.value;
  };
  CHECK(window("64 kB") == 64e3);
  CHECK_THROWS_WITH_AS(window("0"), doctest::Contains("l.window: 0 is not possible here"), InputError);
  CHECK_THROWS_AS(window("-1 kB"), InputError);
  CHECK_THROWS_AS(window("10 ms"), InputError);
}

TEST_CASE("a link may have slow start") {
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, slow_start: true}", link_fields()), "l").slow_start);
  CHECK_THROWS_AS(test::checked("{bandwidth: 1 GB/s, slow_start: 1}", link_fields()), InputError);
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, queue: fifo}", link_fields()), "l").one_queue);
  CHECK_FALSE(read_link(test::checked("{bandwidth: 1 GB/s, queue: fair}", link_fields()), "l").one_queue);
}

TEST_CASE("a link without contention has no queue") {
  const auto read = [](const std::string& text) { read_link(test::checked(text, link_fields()), "l"); };
  CHECK_THROWS_WITH_AS(read("{bandwidth: 1 GB/s, duplex: unshared, queue: fifo}"),
                       doctest::Contains("l.queue: nothing waits for a link with `duplex: unshared`"), InputError);
  CHECK_NOTHROW(read("{bandwidth: 1 GB/s, duplex: unshared, queue: fair}"));
  CHECK_NOTHROW(read("{bandwidth: 1 GB/s, duplex: half, queue: fifo}"));
}

}  // namespace stagecraft::device_type_test
