#include <doctest/doctest.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/cluster/generator.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::device_type_test {

TEST_CASE("every preset is complete and names its source") {
  CHECK(device_presets().size() == 24);
  for (const DevicePreset& preset : device_presets()) {
    CAPTURE(preset.type.name);
    CHECK(preset.type.peak.value > 0);
    CHECK(preset.type.efficiency > 0);
    CHECK(preset.type.efficiency <= 1);
    CHECK(preset.type.memory_bandwidth.value > 0);
    CHECK(preset.type.memory.value > 0);
    CHECK(preset.type.busy >= preset.type.idle);
    CHECK_FALSE(preset.source.empty());
    CHECK(find_device_preset(preset.type.name) == &preset);
  }
  CHECK(find_device_preset("h100-sxm")->type.peak.value == doctest::Approx(989.4e12));
  CHECK(find_device_preset("nothing") == nullptr);
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
  CHECK(find_device_preset("h100-sxm")->type.memory_reserve.value == doctest::Approx((2 + 0.03 * 80) * 0x1p30));
  for (const char* other : {"tpu-v4", "jetson-agx-orin", "jetson-nano", "raspberry-pi-4"})
    CHECK(find_device_preset(other)->type.memory_reserve.value == 0);
  CHECK(reserve("{peak: 1 TFLOP/s, memory_bandwidth: 1 TB/s, memory: 80 GiB}") == 0);
  CHECK(reserve("{preset: h100-sxm}") == find_device_preset("h100-sxm")->type.memory_reserve.value);
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
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, duplex: half}", link_fields()), "l").duplex == Duplex::Half);
  CHECK(read_link(test::checked("{bandwidth: 1 GB/s, duplex: unshared}", link_fields()), "l").duplex ==
        Duplex::Unshared);
  const auto zero = test::checked("{bandwidth: 0}", link_fields());
  CHECK(test::input_error_of([&] { read_link(zero, "l"); }).find("1: l.bandwidth: a bandwidth of 0 carries nothing") ==
        0);
  CHECK(test::input_error_of([&] { test::checked("{bandwidth: -1 GB/s}", link_fields()); }).find("negative") !=
        std::string::npos);
}

}  // namespace stagecraft::device_type_test
