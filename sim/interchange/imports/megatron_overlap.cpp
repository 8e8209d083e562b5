// What Megatron-LM runs next to computation, as the software stack that does so. Stacks are whole: where none has just
// what the options ask for, the nearest one is taken, and a note says what it has that they do not, or lacks.

#include <limits>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {
namespace {

constexpr const char* kTensor = "tp-comm-overlap";
constexpr const char* kGradients = "overlap-grad-reduce";
constexpr const char* kWeights = "overlap-param-gather";
constexpr const char* kExperts = "overlap-moe-expert-parallel-comm";
constexpr const char* kWeightGradients = "delay-wgrad-compute";

/// The overlap that takes effect with these degrees.
struct MegatronOverlap {
  bool tensor = false, gradients = false, weights = false, experts = false, fsdp = false;
};

MegatronOverlap effective_overlap(const MegatronArguments& a, const TrainingSetup& s, std::int64_t replicas) {
  MegatronOverlap o;
  o.tensor = a.has(kTensor) && s.tensor > 1 && s.sequence_parallel;
  o.gradients = a.has(kGradients) && (replicas > 1 || s.context > 1);
  o.weights = o.gradients && a.has(kWeights);
  o.experts = a.has(kExperts) && s.expert > 1;
  o.fsdp = s.shard == "gradients" || s.shard == "weights";
  return o;
}

/// Buckets of gradients say what --overlap-grad-reduce alone does, so that without a tensor group the stack is another
/// one only for --overlap-param-gather, or where no updated weights are gathered.
const char* stack_of(const MegatronOverlap& o, const TrainingSetup& s) {
  if (o.fsdp) return "megatron-fsdp";
  if (o.experts) return "megatron-bridge-overlap";
  const bool hides_data = o.gradients && (o.weights || s.shard != "optimizer");
  return o.tensor || (s.tensor == 1 && hides_data) ? "megatron-bridge" : "megatron-core";
}

/// Notes the options that the stack stands for, and those without effect.
void note_options(MegatronArguments& a, TrainingSetup& s, const MegatronOverlap& o, const SoftwareStack& stack) {
  const bool hides_gather = stack.data_overlap > 0;
  const std::pair<const char*, bool> kStandsFor[] = {{kTensor, o.tensor},
                                                     {kGradients, o.gradients && hides_gather},
                                                     {kWeights, o.weights && hides_gather},
                                                     {kExperts, o.experts},
                                                     {kWeightGradients, o.experts}};
  std::string matched;
  for (const auto& [option, represented] : kStandsFor)
    if (represented && a.take(option)) matched += (matched.empty() ? "--" : " --") + std::string(option);
  if (!matched.empty()) s.matched.push_back(fmt::format("{} -> software: {}", matched, stack.name));
  const bool has_sums = o.gradients || !(a.has(kGradients) || a.has(kWeights));
  for (const char* option : {kGradients, kWeights})
    if (!has_sums && a.take(option)) s.without_use.push_back(fmt::format("--{} with one replica", option));
  if (o.weights && !hides_gather && a.take(kWeights)) s.unmodeled.push_back(fmt::format("--{}", kWeights));
}

/// What the stack does and the options do not, and the other way round.
std::string differences(const MegatronArguments& a, const TrainingSetup& s, const MegatronOverlap& o,
                        const SoftwareStack& stack, bool has_sums) {
  std::vector<std::string> list;
  if (stack.tensor_overlap > 0 && s.tensor > 1 && !o.tensor)
    list.push_back(fmt::format("it hides {:.0f} % of the collectives of the tensor group, as with --{}",
                               100 * stack.tensor_overlap, kTensor));
  if (stack.data_overlap > 0 && has_sums && !o.gradients)
    list.push_back(
        fmt::format("it hides {:.0f} % of the sums over replicas, as with --{}", 100 * stack.data_overlap, kGradients));
  else if (stack.data_overlap > 0 && has_sums && !o.weights && !s.shard.empty() && s.shard != "none")
    list.push_back(fmt::format("it gathers updated weights next to the forward, as with --{}", kWeights));
  if (!stack.hides_regather && s.tensor > 1 && s.sequence_parallel)
    list.emplace_back("it gathers inputs for weight gradients before them, and not next to the input gradient");
  if (stack.loss_forward_traffic < 24 && !a.has("cross-entropy-loss-fusion"))
    list.emplace_back("it has the loss in one kernel, as with --cross-entropy-loss-fusion");
  return join(list, "; ");
}

/// Megatron-LM sums gradients in buckets only with --overlap-grad-reduce; the size of one counts parameters. What is
/// summed after each backward stays whole here.
void read_gradient_buckets(MegatronArguments& a, TrainingSetup& s, const MegatronOverlap& o) {
  constexpr int kMost = std::numeric_limits<int>::max();
  const std::optional<int> parameters = a.find_number("ddp-bucket-size", kMost);
  const std::string size = parameters ? a.written("ddp-bucket-size") : "";
  if (!o.gradients) {
    if (parameters) s.without_use.push_back(size);
    return;
  }
  a.take(kGradients);
  const SoftwareStack& stack = software_stack(s.software);
  if (o.fsdp || (!parameters && !stack.buckets.cuts())) {
    if (stack.data_overlap == 0) s.unmodeled.push_back(fmt::format("--{}", kGradients));
    if (parameters) s.unmodeled.push_back(size);
    return;
  }
  s.gradient_buckets = parameters ? fmt::format("{:.0f} B", *parameters * stack.gradient_bytes) : "software";
  note_match(s, kGradients, "run.gradient_buckets", s.gradient_buckets);
  if (parameters && s.ranks > 1)
    s.assumed.emplace_back(
        "--ddp-bucket-size is of the first pipeline rank alone in Megatron-LM, and run.gradient_buckets of all stages");
}

}  // namespace

void read_megatron_overlap(MegatronArguments& a, TrainingSetup& s, std::int64_t replicas) {
  const MegatronOverlap o = effective_overlap(a, s, replicas);
  const bool has_sums = replicas > 1 || s.context > 1;
  const bool older = s.software != "megatron-core";  // Its stack is what its options of that time say.
  if (!older) {
    s.software = stack_of(o, s);
    const SoftwareStack& stack = software_stack(s.software);
    note_options(a, s, o, stack);
    if (a.take("cross-entropy-loss-fusion")) note_match(s, "cross-entropy-loss-fusion", "software", s.software);
    if (const std::string text = differences(a, s, o, stack, has_sums); !text.empty())
      s.assumed.push_back(fmt::format("software: {} is the nearest stack: {}", s.software, text));
  }
  read_gradient_buckets(a, s, o);
}

}  // namespace stagecraft
