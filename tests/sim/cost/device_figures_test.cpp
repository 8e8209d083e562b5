// What a device type reaches with the software that runs on it.

#include "sim/cost/device_figures.hpp"

#include <doctest/doctest.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::device_figures_test {
namespace {

Accelerator figures(const char* device, SoftwareStack stack, const char* release = "") {
  if (*release) stack = at_release(std::move(stack), release);
  return figures_for(accelerator_named(device), stack);
}

double share(const char* device, const char* stack, NumberFormat format, const char* release = "") {
  return figures(device, software_stack(stack), release).formats[format].share;
}

SoftwareStack with_attention(const char* stack, const char* word) {
  SoftwareStack s = software_stack(stack);
  set_attention(s, word);
  return s;
}

}  // namespace

TEST_CASE("attention has the share of the kernel that the software runs") {
  const auto forward = [](const char* device, const char* kernel) {
    return figures(device, with_attention("torchtitan", kernel)).attention_forward.share;
  };
  for (const char* device : {"h100-sxm", "h200", "a100-80", "a100-40"}) {
    CAPTURE(device);
    CHECK(forward(device, "fa1_triton") < forward(device, "fa2"));
    CHECK(forward(device, "fa2") <= forward(device, "cudnn"));
  }
  CHECK(forward("h100-sxm", "cudnn") < forward("h100-sxm", "fa3"));
  CHECK(figures("h100-sxm", software_stack("llm-foundry")).attention_forward.share ==
        forward("h100-sxm", "fa1_triton"));
}

TEST_CASE("a kernel of which a device has no share is refused, unless attention runs in several kernels") {
  const auto refused = [](const SoftwareStack& stack) {
    try {
      figures("b200", stack);
    } catch (const InputError& e) {
      return e.problems().front().message + "; " + e.problems().front().help;
    }
    return std::string();
  };
  const std::string message = refused(with_attention("torchtitan", "fa3"));
  CHECK(message.find("b200 has no share of FlashAttention 3, which 'torchtitan' runs") != std::string::npos);
  CHECK(message.find("attention: fa2 or cudnn") != std::string::npos);
  SoftwareStack eager = with_attention("torchtitan", "fa3");
  set_attention(eager, kEagerAttention);
  CHECK(refused(eager).empty());
}

TEST_CASE("products have the share of the device type times the factor of the stack, for relatives and releases") {
  const double plain = share("h100-sxm", "plain", NumberFormat::Bf16);
  CHECK(share("h100-sxm", "nemo", NumberFormat::Bf16) == doctest::Approx(1.095 * plain));
  CHECK(share("h200", "megatron-bridge", NumberFormat::Bf16, "25.07") == doctest::Approx(1.095 * plain));
  CHECK(share("h100-sxm", "nemo", NumberFormat::Fp8) == share("h100-sxm", "plain", NumberFormat::Fp8));
  const double fp8 = share("gb200", "plain", NumberFormat::Fp8);
  CHECK(share("gb200", "megatron-bridge", NumberFormat::Fp8, "25.07") == doctest::Approx(0.857 * fp8));
  CHECK(share("gb200", "megatron-bridge", NumberFormat::Fp8, "25.09") == fp8);
  CHECK(share("gb200", "megatron-bridge", NumberFormat::Fp8) == fp8);  // The newest release.
}

TEST_CASE("a stack has the facts of the release that runs, or that it is a patch of") {
  const auto in = [](const char* release) { return at_release(software_stack("megatron-core"), release); };
  CHECK(in("0.11").weights_in_experts == false);
  CHECK(in("0.12.3").weights_in_experts == false);
  CHECK(in("0.12.3").release == "0.12");
  CHECK(in("0.13").weights_in_experts == true);
  CHECK(in("0.20").weights_in_experts == software_stack("megatron-core").weights_in_experts);
  CHECK(at_release(software_stack("nemo"), "25.02").release == "25.02");
  const auto refused = [&](const char* release) {
    try {
      in(release);
    } catch (const InputError& e) {
      return e.problems().front().message + "; " + e.problems().front().help;
    }
    return std::string();
  };
  CHECK(refused("0.10").find("there are no facts of release 0.10 of 'megatron-core'") != std::string::npos);
  CHECK(refused("0.10").find("write one from 0.11 to 0.20: 0.11, 0.12") != std::string::npos);
  CHECK(refused("25.02").find("25.02 is a release of nemo") != std::string::npos);
  CHECK_FALSE(refused("0.1").empty());
  CHECK_FALSE(refused("0.12.x").empty());
}

TEST_CASE("releases are compared as numbers") {
  CHECK(is_before("25.02", "25.11"));
  CHECK(is_before("9.12", "25.01"));
  CHECK(is_before("26.04", "26.04.01"));
  CHECK(!is_before("25.02", "25.02"));
}

TEST_CASE("a launch takes what the framework takes, nothing with graphs, or what the device says") {
  SoftwareStack stack = software_stack("megatron-core");
  stack.launch = {Seconds{2}, Seconds{3}};
  CHECK(figures("h100-sxm", stack).launch == Seconds{2});
  CHECK(figures("gb300", stack).launch == Seconds{3});
  Accelerator given = accelerator_named("h100-sxm");
  given.launch = Seconds{5}, given.has_launch = true;
  CHECK(figures_for(given, stack).launch == Seconds{5});
  stack.graphs = true;
  CHECK(figures_for(given, stack).launch == Seconds{});
}

}  // namespace stagecraft::device_figures_test
