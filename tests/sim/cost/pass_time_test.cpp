#include "sim/cost/pass_time.hpp"

#include <doctest/doctest.h>

#include <set>

#include "tests/support/checked.hpp"

namespace stagecraft::pass_time_test {
namespace {

Accelerator simple() {
  Accelerator device;
  device.type.memory_bandwidth = Bandwidth{100};
  device.memory_share = 1;
  device.launch = Seconds{1};
  return device;
}

/// Kernels that take 0.5 s and 3 s.
std::vector<Kernel> two_kernels() { return {{.bytes = Bytes{50}}, {.bytes = Bytes{300}, .attention_core = true}}; }

TimeByClass time_with(const Collectives& list, std::string_view stack,
                      const std::vector<Kernel>& kernels = two_kernels(), int launched = 0) {
  const Accelerator device = simple();
  return pass_time(kernel_time(kernels, device), launch_count(kernels) + launched, list, device, software_stack(stack));
}

Collective of_tensor(double cost) { return {.axis = Axis::Tensor, .cost = Seconds{cost}}; }

}  // namespace

TEST_CASE("on one device, launches that run ahead cost nothing as long as kernels take longer") {
  const TimeByClass t = time_with({}, "plain");
  CHECK(t.memory_bound.value == 0.5);
  CHECK(t.attention.value == 3);
  CHECK(t.launches.value == 0);
  CHECK(t.total().value == 3.5);
}

TEST_CASE("a pass takes at least the launches of its kernels and collectives") {
  std::vector<Kernel> kernels = two_kernels();
  kernels.front().count = 5;
  const TimeByClass t = time_with({of_tensor(0.25)}, "plain", kernels, 2);
  CHECK(t.total().value == 8);
  CHECK(t.tensor.value == 0.25);
  CHECK(t.launches.value == 8 - 3.75);
}

TEST_CASE("where the host waits for each kernel, launches and kernels add up") {
  const TimeByClass t = time_with({of_tensor(1)}, "bloom");
  CHECK(t.total().value == 3.5 + 1 + 2);
}

TEST_CASE("what the pass as a whole hides runs next to it, everything else after it") {
  const auto with_weights = [&](double seconds, bool ahead) {
    const Collective weights{.axis = Axis::Data, .ahead = ahead, .rounds = 2, .cost = Seconds{seconds / 2}};
    return time_with({weights, of_tensor(1)}, "plain");
  };
  CHECK(with_weights(4, true).total().value == 4.5);
  CHECK(with_weights(6, true).total().value == 6);
  CHECK(with_weights(6, true).data.value == 1.5);
  CHECK(with_weights(6, false).total().value == 10.5);
  CHECK(with_weights(6, false).data.value == 6);
  Collective half{.axis = Axis::Data, .ahead = true, .cost = Seconds{6}, .shown = 0.5};
  CHECK(time_with({half}, "plain").data.value == 3);  // The other half runs next to kernels.
  half.shown = 1;
  CHECK(time_with({half}, "plain").data.value == 6);
  CHECK(half.exposed_share() == 1);
  const Accelerator device = simple();
  const Collectives weights{{.axis = Axis::Data, .ahead = true, .cost = Seconds{6}}};
  const TimeByClass kernels = kernel_time(two_kernels(), device);
  CHECK(pass_time(kernels, 0, weights, device, software_stack("plain"), Seconds{2}).data.value == 0.5);
}

TEST_CASE("a pass waits for what is longer than the work next to it, and for those that start together once") {
  Collective exchange{.axis = Axis::Expert, .rounds = 3, .cost = Seconds{2}, .hidden = Seconds{0.5}};
  CHECK(time_with({exchange}, "plain").expert.value == 4.5);
  Collective beside = exchange;
  beside.parallel = true;
  CHECK(time_with({exchange, beside}, "plain").expert.value == 4.5);
  exchange.hidden = Seconds{7};
  CHECK(time_with({exchange}, "plain").expert.value == 0);
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
