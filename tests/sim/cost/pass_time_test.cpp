#include "sim/cost/pass_time.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/checked.hpp"

namespace stagecraft::pass_time_test {
namespace {

Accelerator simple() {
  Accelerator device;
  device.memory_rate = Bandwidth{100};
  device.memory_share = 1;
  device.launch = Seconds{1};
  return device;
}

/// Kernels that take 0.5 s and 3 s.
std::vector<Kernel> two_kernels() { return {{.bytes = Bytes{50}}, {.bytes = Bytes{300}, .attention_core = true}}; }

}  // namespace

TEST_CASE("on one device, launches that run ahead cost nothing as long as kernels take longer") {
  const TimeByClass t = pass_time(two_kernels(), {}, simple(), software_stack("plain"));
  CHECK(t.memory_bound.value == 0.5);
  CHECK(t.attention.value == 3);
  CHECK(t.launches.value == 0);
  CHECK(t.total().value == 3.5);
}

TEST_CASE("a pass takes at least the launches of its kernels and collectives") {
  std::vector<Kernel> kernels = two_kernels();
  kernels.front().count = 5;
  const PassCollectives collectives{.tensor = Seconds{0.25}, .launches = 2};
  const TimeByClass t = pass_time(kernels, collectives, simple(), software_stack("plain"));
  CHECK(t.total().value == 8);
  CHECK(t.tensor.value == 0.25);
  CHECK(t.launches.value == 8 - 3.75);
}

TEST_CASE("where the host waits for each kernel, launches and kernels add up") {
  const TimeByClass t = pass_time(two_kernels(), {.tensor = Seconds{1}}, simple(), software_stack("bloom"));
  CHECK(t.total().value == 3.5 + 1 + 2);
}

TEST_CASE("collectives of divided weights run next to the pass where the stack gathers ahead, else after it") {
  const auto with_weights = [&](double seconds, std::string_view stack) {
    return pass_time(two_kernels(), {.tensor = Seconds{1}, .weights = Seconds{seconds}}, simple(),
                     software_stack(stack));
  };
  CHECK(with_weights(4, "torchtitan").total().value == 4.5);
  CHECK(with_weights(6, "torchtitan").total().value == 6);
  CHECK(with_weights(6, "torchtitan").data.value == 1.5);
  CHECK(with_weights(6, "plain").total().value == 10.5);
  CHECK(with_weights(6, "plain").data.value == 6);
}

TEST_CASE("software stacks have different names, a summary and a source") {
  std::set<std::string_view> names;
  for (const SoftwareStack& stack : software_stacks()) {
    CAPTURE(stack.name);
    CHECK(names.insert(stack.name).second);
    CHECK_FALSE(stack.summary.empty());
    CHECK_FALSE(stack.source.empty());
    CHECK(&software_stack(stack.name) == &stack);
  }
  CHECK(test::input_error_of([] { software_stack("megatron-brige"); }).find("megatron-bridge") != std::string::npos);
}

}  // namespace stagecraft::pass_time_test
