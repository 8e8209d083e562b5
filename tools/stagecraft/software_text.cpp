// The text of `explain` about software stacks: their list, the facts of one stack, and what each stack has of one
// feature of software.overlap.

#include "tools/stagecraft/explanation.hpp"

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {
namespace {

std::string yes_or_no(bool is_true) { return is_true ? "yes" : "no"; }
std::string short_percent(double share) { return fmt::format("{:.4g} %", 100 * share); }

std::string bucket_text(const BucketRule& rule) {
  if (!rule.cuts()) return "none";
  if (rule.gradients.value > 0) return to_text(rule.gradients);
  return fmt::format("{:g} million parameters, or {:g} million a rank if more{}", rule.parameters / 1e6,
                     rule.parameters_per_rank / 1e6, rule.on_first_stage ? ", on the first stage" : "");
}

/// "on, hides 90 %", "off, would hide 80 %, since 0.14" or "off, not known".
std::string overlap_state(const SoftwareStack& s, Overlap feature) {
  const bool on = s.overlap[feature];
  const double share = s.overlap_share[feature];
  const std::string since = s.overlap_since[feature].empty() ? "" : fmt::format(", since {}", s.overlap_since[feature]);
  if (share > 0)
    return fmt::format("{}, {} {}{}", on ? "on" : "off", on ? "hides" : "would hide", short_percent(share), since);
  if (on) return "on" + since;
  return (s.can_overlap(feature) ? "off" : "off, not known how much it hides") + since;
}

struct Fact {
  std::string_view label;
  std::string (*value)(const SoftwareStack&);
};

using S = const SoftwareStack&;

constexpr Fact kFacts[] = {
    {"attention in one kernel", [](S s) { return yes_or_no(s.fused_attention); }},
    {"kernel of fused attention", [](S s) { return std::string(title(s.attention_kernel)); }},
    {"time of a launch on x86, on Grace",
     [](S s) { return to_text(s.launch[Host::X86]) + ", " + to_text(s.launch[Host::Grace]); }},
    {"exchanges of divided weights next to passes", [](S s) { return short_percent(s.pass_overlap); }},
    {"dropout", [](S s) { return yes_or_no(s.dropout); }},
    {"bytes of norms over what one fused kernel moves", [](S s) { return fmt::format("{:g}", s.norm_traffic); }},
    {"context ranks with equal causal work", [](S s) { return yes_or_no(s.balanced_context); }},
    {"bytes of a weight gradient as a product writes it",
     [](S s) { return fmt::format("{:g}", s.weight_gradient_bytes); }},
    {"bytes of a gradient that replicas sum", [](S s) { return fmt::format("{:g}", s.gradient_bytes); }},
    {"second gather of inputs hidden", [](S s) { return yes_or_no(s.hides_regather); }},
    {"expert exchanges hidden by a pair of F and B", [](S s) { return short_percent(s.pair_overlap); }},
    {"multiprocessors of an exchange in a pair", [](S s) { return fmt::format("{:g}", s.exchange_multiprocessors); }},
    {"bytes of a dispatched number",
     [](S s) { return s.dispatch_bytes > 0 ? fmt::format("{:g}", s.dispatch_bytes) : "as of activations"; }},
    {"buckets of gradients, if run.gradient_buckets asks", [](S s) { return bucket_text(s.buckets); }},
    {"bytes that an update moves for a parameter", [](S s) { return fmt::format("{:g}", s.optimizer_traffic); }},
    {"bytes of norm, scaling and copies of a gradient", [](S s) { return fmt::format("{:g}", s.gradient_traffic); }},
    {"bytes of the loss for a logit, forward and backward",
     [](S s) { return fmt::format("{:g} and {:g}", s.loss_forward_traffic, s.loss_backward_traffic); }},
    {"host waits for each kernel", [](S s) { return yes_or_no(s.blocking_launches); }},
};

std::string releases_text(const SoftwareStack& s) {
  if (s.releases.empty()) return "";
  const std::vector<std::string> releases(s.releases.begin(), s.releases.end());
  const std::string text =
      fmt::format("  {:<52}{}\n", "releases; the last where none is written", join(releases, ", "));
  if (s.weights_in_experts_since.empty()) return text;
  return text +
         fmt::format("  {:<52}since {}\n", "routing weights in the activation of experts", s.weights_in_experts_since);
}

/// A line for each factor on the share of a device type.
std::string share_factors_text(const SoftwareStack& s) {
  std::string text;
  for (const ShareFactor& f : s.share_factors) {
    const std::string releases = f.before.empty() ? "" : fmt::format(" before {}", f.before);
    text += fmt::format("  {:<52}x {:g}, {}\n",
                        fmt::format("share of products, {} in {}{}", f.device, name(f.format), releases), f.factor,
                        f.runs > 0 ? "fitted to " + pluralize(f.runs, "run") : "derived: as its relatives");
  }
  return text;
}

}  // namespace

std::optional<std::string> software_text(std::string_view word) {
  for (const SoftwareStack& stack : software_stacks()) {
    if (stack.name != word) continue;
    std::string text = fmt::format("{}: a software stack. {}\n  source: {}\n", stack.name, stack.summary, stack.source);
    if (!stack.base.empty())
      text += fmt::format("  another name of {}, with these switches of software.overlap\n", stack.base);
    for (const Overlap f : overlap_features())
      text += fmt::format("  {:<52}{}\n", fmt::format("overlap.{}", name_of(f)), overlap_state(stack, f));
    text += releases_text(stack) + share_factors_text(stack);
    for (const Fact& fact : kFacts) text += fmt::format("  {:<52}{}\n", fact.label, fact.value(stack));
    return text + "  use: software: " + std::string(word) + " in a scenario\n";
  }
  return {};
}

std::optional<std::string> overlap_text(std::string_view path) {
  constexpr std::string_view kPath = "software.overlap.";
  for (const Overlap f : overlap_features()) {
    if (!path.starts_with(kPath) || path.substr(kPath.size()) != name_of(f)) continue;
    std::string text = fmt::format("  flags: {}\n  effect: {}\n  by stack\n", flags_of(f), effect_of(f));
    for (const SoftwareStack& s : software_stacks())
      text += fmt::format("    {:<24}{}; source: {}\n", s.name, overlap_state(s, f), s.source);
    return text;
  }
  return {};
}

std::string software_list() {
  std::string text = "stacks; stagecraft explain NAME lists the facts of one\n";
  for (const SoftwareStack& stack : software_stacks())
    text += fmt::format("  {:<24}{}\n  {:<24}source: {}\n", stack.name, stack.summary, "", stack.source);
  return text;
}

}  // namespace stagecraft
