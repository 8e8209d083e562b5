// What a device type reaches with a software stack: products of a release, kernels of attention, launches of a host.

#include "sim/cost/device_figures.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool is_known(const AttentionKernelFacts& facts) { return facts.forward.share > 0 && facts.backward.share > 0; }

/// Whether the release of a stack is one that a factor is of.
bool counts(const ShareFactor& factor, const SoftwareStack& stack) {
  const std::string_view release =
      !stack.release.empty() || stack.releases.empty() ? stack.release : stack.releases.back();
  return (factor.from.empty() || !is_before(release, factor.from)) &&
         (factor.before.empty() || is_before(release, factor.before));
}

void use_attention_kernel(Accelerator& a, const SoftwareStack& stack) {
  const AttentionKernelFacts& facts = a.attention[stack.attention_kernel];
  if (is_known(facts)) {
    a.attention_forward = facts.forward;
    a.attention_backward = facts.backward;
    return;
  }
  std::vector<std::string> names;
  for (const AttentionKernel kernel : kAttentionKernels)
    if (is_known(a.attention[kernel])) names.emplace_back(name(kernel));
  if (names.empty() || !stack.fused_attention) return;  // A device with rates alone has one share for all kernels.
  throw InputError(
      fmt::format("{} has no share of {}, which '{}' runs", a.name, title(stack.attention_kernel), stack.name),
      fmt::format("software: {{base: {}, attention: {}}}, or give the share in a file of the device type", stack.name,
                  join(names, " or ")));
}

}  // namespace

const ShareFactor* share_factor(const SoftwareStack& stack, const Accelerator& a, NumberFormat format) {
  const NumberFormat wide = format == NumberFormat::Fp16 ? NumberFormat::Bf16 : format;
  for (const std::string& device : {a.name, a.like})
    for (const ShareFactor& factor : stack.share_factors)
      if (factor.device == device && factor.format == wide && counts(factor, stack)) return &factor;
  return nullptr;
}

Seconds launch_time(const Accelerator& a, const SoftwareStack& stack) {
  if (stack.graphs) return {};
  return a.has_launch ? a.launch : stack.launch[a.host];
}

Accelerator figures_for(Accelerator a, const SoftwareStack& stack) {
  use_attention_kernel(a, stack);
  for (const NumberFormat format : kNumberFormats)
    if (const ShareFactor* factor = share_factor(stack, a, format))
      a.formats[format].share = std::min(1.0, factor->factor * a.formats[format].share);
  a.launch = launch_time(a, stack);
  return a;
}

}  // namespace stagecraft
