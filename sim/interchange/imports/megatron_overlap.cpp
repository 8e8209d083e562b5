// Reads what Megatron-LM runs next to computation, as switches of the software stack megatron-core, and its buckets of
// gradients. Only switches that differ from what the stack usually has are written.

#include <limits>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

constexpr const char* kGradients = "overlap-grad-reduce";
constexpr const char* kNoMessageOverlap = "no-overlap-p2p-communication";
/// The option that turns a feature on. Messages are not among them: their option turns the overlap off.
constexpr std::pair<Overlap, const char*> kOverlapOptions[] = {{Overlap::Tensor, "tp-comm-overlap"},
                                                               {Overlap::Gradients, kGradients},
                                                               {Overlap::Weights, "overlap-param-gather"},
                                                               {Overlap::Experts, "overlap-moe-expert-parallel-comm"},
                                                               {Overlap::WeightGradients, "delay-wgrad-compute"}};

/// The features that these degrees have something to overlap with.
OverlapSwitches possible_overlap(const TrainingSetup& s, std::int64_t replicas) {
  const bool has_sums = replicas > 1 || s.context > 1;
  OverlapSwitches possible{};
  possible[Overlap::Tensor] = s.tensor > 1 && s.sequence_parallel;
  possible[Overlap::Gradients] = has_sums;
  possible[Overlap::Weights] = has_sums && !s.shard.empty() && s.shard != "none";
  possible[Overlap::Messages] = s.ranks > 1;
  possible[Overlap::Experts] = possible[Overlap::WeightGradients] = s.expert > 1;
  return possible;
}

/// Without virtual stages, messages do not overlap.
bool messages_overlap(const MegatronArguments& a, const TrainingSetup& s) {
  return s.chunks > 1 && !a.has(kNoMessageOverlap);
}

void read_switches(MegatronArguments& a, TrainingSetup& s, const OverlapSwitches& possible) {
  const OverlapSwitches usual = software_stack(s.software).overlap;
  const auto set = [&](Overlap feature, bool on) {
    if (possible[feature] && on != usual[feature]) s.overlap.emplace_back(feature, on);
  };
  for (const auto& [feature, option] : kOverlapOptions) {
    const bool given = a.take(option);
    set(feature, given);
    if (!given) continue;
    if (possible[feature])
      note_match(s, option, fmt::format("software.overlap.{}", name_of(feature)), "true");
    else
      s.without_use.push_back(fmt::format("--{} with nothing that it overlaps", option));
  }
  set(Overlap::Messages, messages_overlap(a, s));
  if (a.take(kNoMessageOverlap)) {
    if (s.chunks > 1)
      note_match(s, kNoMessageOverlap, "software.overlap.messages", "false");
    else
      s.without_use.push_back(fmt::format("--{} without virtual stages", kNoMessageOverlap));
  }
}

/// Megatron-LM sums gradients in buckets only with --overlap-grad-reduce; the size of one counts parameters. What is
/// summed after each backward stays whole here.
void read_gradient_buckets(MegatronArguments& a, TrainingSetup& s, bool in_buckets) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const std::optional<int> parameters = a.find_number("ddp-bucket-size", kMost);
  const std::string size = parameters ? a.written("ddp-bucket-size") : "";
  if (!in_buckets) {
    if (parameters) s.without_use.push_back(size);
    return;
  }
  a.take(kGradients);
  const SoftwareStack stack = stack_of(s);
  const bool whole = s.shard == "gradients" || s.shard == "weights";
  if (whole || (!parameters && !stack.buckets.cuts())) {
    if (!stack.overlap[Overlap::Gradients]) s.unmodeled.push_back(fmt::format("--{}", kGradients));
    if (parameters) s.unmodeled.push_back(size);
    return;
  }
  s.gradient_buckets = parameters ? fmt::format("{:.0f} B", *parameters * stack.gradient_bytes) : "software";
  note_match(s, kGradients, "run.gradient_buckets", s.gradient_buckets);
  if (parameters && s.ranks > 1)
    s.assumed.emplace_back(
        "--ddp-bucket-size is of the first pipeline rank alone in Megatron-LM, and run.gradient_buckets of all stages");
}

/// Without its option the loss has several kernels. Both keep the powers of the logits in fp32.
void read_loss(MegatronArguments& a, TrainingSetup& s) {
  const char* const option = "cross-entropy-loss-fusion";
  const bool is_fused = a.take(option);
  if (is_fused != software_stack(s.software).fuses_loss()) s.fused_loss = is_fused;
  if (is_fused) return note_match(s, option, "software", s.software);
  s.assumed.push_back(
      fmt::format("without --{} the loss has several kernels, so software.fused_loss is false", option));
}

/// Weights of products are kept in fp8 and gathered so.
void read_gathered_bytes(MegatronArguments& a, TrainingSetup& s) {
  const char* const option = "fp8-param-gather";
  if (!a.has(option) || s.shard.empty() || s.shard == "none") return;
  a.take(option);
  s.gathered_bytes = 1;
  note_match(s, option, "software.gathered_bytes", "1");
}

}  // namespace

void read_megatron_overlap(MegatronArguments& a, TrainingSetup& s, std::int64_t replicas) {
  const OverlapSwitches possible = possible_overlap(s, replicas);
  const bool sums_next_to_backward = a.has(kGradients) && possible[Overlap::Gradients];
  if (s.software == "megatron-core") {  // Older stacks have these switches fixed.
    read_switches(a, s, possible);
    read_loss(a, s);
    read_gathered_bytes(a, s);
  }
  read_gradient_buckets(a, s, sums_next_to_backward);
}

}  // namespace stagecraft
