// The table of software stacks: what each training framework does that costs time, with its sources.

#include "sim/cost/software.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

// An update with Adam in mixed precision moves 34 bytes for each parameter: fp32 weight and two moments read and
// written (24), gradient read (4 to 8), 16-bit weight written (2), with what fused kernels re-read.

// Megatron-LM, core/distributed/distributed_data_parallel.py: max(40000000, 1000000 dp) parameters; stages other than
// the first, and further chunks of its rank, have one bucket.
constexpr BucketRule kMegatronBuckets{.parameters = 40e6, .parameters_per_rank = 1e6, .on_first_stage = true};
// torch.nn.parallel.DistributedDataParallel: bucket_cap_mb is 25. Its first bucket of 1 MiB is not modeled.
constexpr BucketRule kTorchBuckets{.gradients = Bytes{25.0 * (1 << 20)}};

constexpr Overlap kFeatures[] = {Overlap::Tensor,   Overlap::Gradients, Overlap::Weights,
                                 Overlap::Messages, Overlap::Experts,   Overlap::WeightGradients};
constexpr EnumArray<Overlap, std::string_view, kOverlaps> kFeatureNames = {"tensor",   "gradients", "weights",
                                                                           "messages", "experts",   "weight_gradients"};
constexpr EnumArray<Overlap, std::string_view, kOverlaps> kEffects = {
    "A share of the collectives of the tensor group runs next to matrix products.",
    "A share of the sum of gradients after the last backward runs next to it; with divided gradients, the "
    "reduce-scatter of a layer runs next to the computation of others.",
    "A share of the gather of updated weights runs next to the forward; with divided weights, the gather of a layer "
    "runs next to the computation of others.",
    "A tensor group without sequence parallelism gathers a message next to computation; without it, before the op "
    "that reads it. run.overlap: false has messages themselves between ops.",
    "A share of dispatch and combine of experts runs next to other work.",
    "Weight gradients of experts fill their exchanges. No time or memory changes here: Megatron-Bridge measured no "
    "gain on Qwen3-30B-A3B."};
constexpr EnumArray<Overlap, std::string_view, kOverlaps> kOverlapFlags = {
    "Megatron-LM --tp-comm-overlap, with --sequence-parallel; Megatron-Bridge comm_overlap.tp_comm_overlap=true; "
    "torchtitan enable_async_tensor_parallel",
    "Megatron-LM --overlap-grad-reduce; Megatron-Bridge ddp.overlap_grad_reduce=true; DeepSpeed overlap_comm, with "
    "ZeRO-2 and 3; FSDP always",
    "Megatron-LM --overlap-param-gather, with --overlap-grad-reduce; Megatron-Bridge ddp.overlap_param_gather=true; "
    "DeepSpeed with ZeRO-3; FSDP always",
    "Megatron-LM with virtual stages, unless --no-overlap-p2p-communication; off without virtual stages",
    "Megatron-LM --overlap-moe-expert-parallel-comm, with virtual stages in a pipeline; Megatron-Bridge "
    "comm_overlap.overlap_moe_expert_parallel_comm=true",
    "Megatron-LM --delay-wgrad-compute, with --overlap-moe-expert-parallel-comm"};

constexpr OverlapSwitches kNothingOverlaps{};

/// Bytes that the forward and the backward of a loss move for each logit: in one kernel each; and in several with the
/// logits in fp32 between them, as vocab_parallel_cross_entropy of Megatron-LM has them: a cast (2 + 4), the maximum
/// (4), difference, exponential and quotient in place (8 each), the sum (4); the gradient in place (8), a cast (4 + 2).
constexpr double kFusedLoss[] = {10, 6}, kLossInSeveralKernels[] = {38, 14};

constexpr std::string_view kMegatronReleases[] = {"0.11", "0.12", "0.13", "0.14", "0.15",
                                                  "0.16", "0.17", "0.18", "0.19", "0.20"},
                           kOldMegatronReleases[] = {"0.14"};
// Containers of NVIDIA, with measured runs of each.
constexpr std::string_view kNemoReleases[] = {"24.07", "24.09", "24.11", "24.12", "25.02", "25.04", "25.07"};
constexpr std::string_view kBridgeReleases[] = {"25.07", "25.09",    "25.11", "26.02",    "26.02.01",
                                                "26.04", "26.04.01", "26.06", "26.06.01", "26.08"};
constexpr std::string_view kTorchtitanReleases[] = {"0.1", "0.2"};

// The table of fits in scenarios/predictions/README.md lists these numbers with the runs that gave them.
constexpr ShareFactor kNemoShares[] = {
    {.device = "h100-sxm", .format = NumberFormat::Bf16, .before = "25.09", .factor = 1.095, .runs = 21},
    {.device = "b200", .format = NumberFormat::Bf16, .factor = 1.09, .runs = 0},
    {.device = "gb200", .format = NumberFormat::Bf16, .factor = 1.09, .runs = 6},
    {.device = "gb200", .format = NumberFormat::Fp8, .before = "25.09", .factor = 0.857, .runs = 3}};
constexpr Seconds kDeepSpeedLaunch{54e-6};  // Fitted to 872 runs of vTrain on 2 to 8 A100.
// Fitted to 32 functional tests of Megatron-LM, which run deterministically and log each iteration.
constexpr Seconds kMegatronLaunch{150e-6};
// Fitted to runs of Megatron-Bridge with experts, and bounded by 19 dense runs of SimuMax, which take longer with more.
constexpr Seconds kBridgeLaunch{110e-6};
// Without torch.compile norms and rotations stand for all kernels between products: casts to fp32 and back, sums,
// copies. Runs of fms-fsdp with and without it give 17, and of torchtitan 11 (scenarios/unseen).
constexpr double kEagerTraffic = 14;

SoftwareStack megatron_2021(std::string_view name, std::string_view summary, std::string_view source) {
  SoftwareStack s{name, summary, source};
  s.fused_attention = false;
  s.attention_kernel = AttentionKernel::Flash2;
  s.launch = {kDeepSpeedLaunch, kDeepSpeedLaunch};
  s.dropout = true;
  s.weight_gradient_bytes = 2;
  s.overlap = kNothingOverlaps;
  s.gradient_bytes = 2;
  s.gradient_traffic = 10;
  set_fused_loss(s, false);
  return s;
}

SoftwareStack megatron_deepspeed() {
  SoftwareStack s = megatron_2021("megatron-deepspeed", "Megatron-DeepSpeed as in vTrain's runs",
                                  "Bang et al., vTrain, MICRO 2024; VIA-Research/vTrain");
  s.overlap[Overlap::Gradients] = s.overlap[Overlap::Weights] = true;  // What ZeRO-2 and 3 do in each pass alone.
  return s;
}

/// What scripts of Megatron-LM usually have. How much of the exchanges of experts products hide inside an NVLink domain
/// is not published; the share is assumed to be that of the sum of gradients. It was chosen after the errors without it
/// were seen (MAPE 22.5 % over the experts of Megatron-Bridge, now 18.2 %).
SoftwareStack megatron_core(std::string_view name, std::string_view summary, std::string_view source) {
  SoftwareStack s{name, summary, source};
  s.share_factors = kNemoShares;
  s.launch = {kMegatronLaunch, kMegatronLaunch};
  s.sequence_first = true;      // qkv_format sbhd: FlashAttention returns output.transpose(0, 1).contiguous().
  s.keeps_casts = true;         // Linear and GroupedLinear of Transformer Engine: update_usage(columnwise_usage=True).
  s.weights_in_experts = true;  // weighted_bias_swiglu of core/transformer/moe/experts.py, in tags from core_v0.13.0.
  s.overlap_share[Overlap::Tensor] = 0.8;
  s.overlap_share[Overlap::Gradients] = s.overlap_share[Overlap::Weights] = s.overlap_share[Overlap::Experts] = 0.9;
  s.buckets = kMegatronBuckets;
  // With --overlap-moe-expert-parallel-comm 36.55 % of communication ran next to products and attention, on the run
  // that this share predicts: Qwen3-30B-A3B on 16 H100 (nsys; skills of NVIDIA-NeMo/Megatron-Bridge, 067f987). Those
  // are 81 % of its predicted computation; as much communication is assumed to run next to each second of the rest.
  // That DeepEP has 20 multiprocessors there (moe_deepep_num_sms of Megatron-LM) is assumed: the source does not say
  // so.
  s.pair_overlap = 0.3655 / 0.81;
  s.exchange_multiprocessors = 20;
  return s;
}

/// The stack with the releases of Megatron-Core itself: since which tags of Megatron-LM the options of its parser, and
/// weights in the activation of experts, are there.
SoftwareStack by_release(SoftwareStack s) {
  s.releases = kMegatronReleases;
  s.weights_in_experts_since = "0.13";
  s.overlap_since[Overlap::Experts] = "0.14";
  s.overlap_since[Overlap::WeightGradients] = "0.13";
  return s;
}

SoftwareStack bloom() {
  SoftwareStack s = megatron_2021("bloom", "Megatron-DeepSpeed as BigScience ran it: the host waits for each kernel",
                                  "bigscience-workshop/bigscience, train/tr11-176B-ml: scripts and chronicles (2022)");
  s.blocking_launches = true;
  s.loss_forward_traffic += 8;  // Its cross entropy works on a clone of the logits.
  return s;
}

SoftwareStack nemo() {
  SoftwareStack s = megatron_core("nemo",
                                  "NeMo: tensor collectives overlap, gradients are summed in 16 bits, the loss has "
                                  "several kernels",
                                  "NVIDIA/NeMo 24.07 to 25.07, performance guide and default configurations");
  s.releases = kNemoReleases;
  s.launch = {kBridgeLaunch, kBridgeLaunch};
  s.weights_in_experts = false;  // Most of its releases are older than Megatron-Core 0.13.
  s.overlap[Overlap::Tensor] = true;
  set_gradient_bytes(s, 2);
  s.pair_overlap = 0;
  set_fused_loss(s, false);
  return s;
}

SoftwareStack megatron_bridge() {
  SoftwareStack s = megatron_core(
      "megatron-bridge",
      "Megatron-Bridge: megatron-core, collectives of the tensor group overlap, gradients are summed in 16 bits",
      "NVIDIA-NeMo/Megatron-Bridge, recipes; the shares that are hidden, 0.8 and 0.9, are assumed");
  s.releases = kBridgeReleases;
  s.launch = {kBridgeLaunch, kBridgeLaunch};
  s.overlap[Overlap::Tensor] = true;
  set_gradient_bytes(s, 2);
  return s;
}

SoftwareStack megatron_no_overlap() {
  SoftwareStack s = megatron_core("megatron-no-overlap", "Megatron-LM 0.14 without overlap of collectives",
                                  "NVIDIA/Megatron-LM 0.14 with the options of SimuMax's runs (docs/b200)");
  s.releases = kOldMegatronReleases;
  s.launch = {kBridgeLaunch, kBridgeLaunch};
  s.share_factors = {};
  s.overlap = kNothingOverlaps;
  s.overlap[Overlap::Messages] = true;
  s.hides_regather = false;
  s.pair_overlap = 0;
  return s;
}

/// Asynchronous tensor parallelism hides 41 to 47 % of what the collectives of the group show on Llama 3.1 70B on H100.
SoftwareStack torchtitan() {
  SoftwareStack s{"torchtitan", "torchtitan with FSDP2, flash attention 2 and logits in fp32",
                  "pytorch/torchtitan (2024-12 to 2025-06), its defaults; async TP hides 45 %"};
  s.releases = kTorchtitanReleases;
  s.attention_kernel = AttentionKernel::Flash2;
  s.overlap_share[Overlap::Tensor] = 0.45;
  s.buckets = kTorchBuckets;
  s.overlap[Overlap::Messages] = false;
  s.balanced_context = false;
  s.exchange_multiprocessors = 20;
  s.loss_forward_traffic = 24;
  s.loss_backward_traffic = 10;
  return s;
}

/// What scripts with PyTorch's FSDP, DDP or DeepSpeed's ZeRO run, such as those on networks of Hugging Face.
SoftwareStack pytorch_eager() {
  SoftwareStack s = torchtitan();
  s.name = "pytorch-eager";
  s.summary = "PyTorch without torch.compile: FSDP, DDP or ZeRO, FlashAttention 2, many kernels between products";
  s.source = "foundation-model-stack/fms-fsdp and pytorch/torchtitan, runs with and without torch.compile";
  s.releases = {};
  s.norm_traffic = kEagerTraffic;
  return s;
}

/// Shapes and options of MPT: attention by the Triton kernel of FlashAttention 1, FSDP of PyTorch 2.0 and 2.1.
SoftwareStack llm_foundry() {
  SoftwareStack s = torchtitan();
  s.name = "llm-foundry";
  s.summary = "llm-foundry with FSDP1 and FlashAttention 1 in Triton";
  s.source = "mosaicml/llm-foundry (8c8dd48f7), scripts/train/benchmarking: attn_impl: triton";
  s.releases = {};
  s.attention_kernel = AttentionKernel::Flash1Triton;
  s.pass_overlap = 0;
  return s;
}

/// Another stack with these features on as well.
SoftwareStack with_overlap(const SoftwareStack& base, std::string_view name, std::string_view summary,
                           std::string_view source, std::initializer_list<Overlap> features) {
  SoftwareStack s = base;
  s.name = name, s.summary = summary, s.source = source, s.base = base.name;
  for (const Overlap feature : features) set_overlap(s, feature, true);
  return s;
}

// DualPipe runs chunks of a forward and a backward as one. In the published trace 4.24 of 114.52 ms of communication
// are not under computation; dispatch sends fp8 with one fp32 scale for 128 numbers, combine bf16; DeepEP takes 20 of
// the 132 multiprocessors (Buffer.set_num_sms). The share that is hidden is measured on the run that it predicts.
SoftwareStack deepseek_v3() {
  SoftwareStack s{"deepseek-v3", "DualPipe and DeepEP: pairs of forward and backward hide dispatch and combine",
                  "deepseek-ai/profile-data, DualPipe and DeepEP (2025): one trace of training on H800"};
  s.overlap[Overlap::Experts] = true;  // Pairs alone.
  s.pair_overlap = 1 - 4.24 / 114.52;
  s.exchange_multiprocessors = 20;
  s.dispatch_bytes = 1 + 4.0 / 128;
  return s;
}

SoftwareStack plain() {
  SoftwareStack s{"plain", "Fused attention and loss, gradients in fp32, and no collective next to other work",
                  "no framework: what remains when nothing overlaps"};
  s.buckets = kTorchBuckets;
  s.overlap = kNothingOverlaps;
  return s;
}

}  // namespace

std::span<const Overlap> overlap_features() { return kFeatures; }
std::string_view name_of(Overlap feature) { return kFeatureNames[feature]; }
std::string_view effect_of(Overlap feature) { return kEffects[feature]; }
std::string_view flags_of(Overlap feature) { return kOverlapFlags[feature]; }

bool SoftwareStack::can_overlap(Overlap feature) const {
  if (feature == Overlap::Messages) return true;
  if (feature == Overlap::WeightGradients) return overlap_share[Overlap::Experts] > 0;
  return overlap[feature] || overlap_share[feature] > 0;
}

void set_overlap(SoftwareStack& s, Overlap feature, bool on) {
  // Pairs of DualPipe are its overlap of experts; Megatron-LM has an option of the schedule for pairs.
  if (feature == Overlap::Experts && s.overlap[feature] && !on && s.overlap_share[feature] == 0) s.pair_overlap = 0;
  s.overlap[feature] = on;
}

bool is_before(std::string_view a, std::string_view b) {
  const std::vector<std::string> x = split(std::string(a), '.'), y = split(std::string(b), '.');
  return std::lexicographical_compare(
      x.begin(), x.end(), y.begin(), y.end(),
      [](const std::string& one, const std::string& other) { return std::stoi(one) < std::stoi(other); });
}

namespace {

/// The release itself, or the one that it is a patch of.
std::span<const std::string_view>::iterator find_release(const SoftwareStack& s, std::string_view release) {
  const auto exact = std::find(s.releases.begin(), s.releases.end(), release);
  if (exact != s.releases.end()) return exact;
  return std::find_if(s.releases.begin(), s.releases.end(), [&](std::string_view one) {
    const std::string_view patch = release.starts_with(one) ? release.substr(one.size()) : "";
    return patch.size() > 1 && patch.front() == '.' && patch.find_first_not_of("0123456789", 1) == patch.npos;
  });
}

/// "leave it out, or write one from 24.07 to 25.07: 24.07, 24.09, 25.07", and which other stacks have the release.
std::string release_help(const SoftwareStack& s, std::string_view release) {
  std::vector<std::string> others;
  for (const SoftwareStack& other : software_stacks())
    if (other.base.empty() && find_release(other, release) != other.releases.end()) others.emplace_back(other.name);
  const std::string elsewhere =
      others.empty() ? "" : fmt::format("; {} is a release of {}", release, join(others, " and "));
  if (s.releases.empty()) return "leave it out" + elsewhere;
  const std::vector<std::string> releases(s.releases.begin(), s.releases.end());
  if (releases.size() == 1) return fmt::format("leave it out, or write {}{}", releases.front(), elsewhere);
  return fmt::format("leave it out, or write one from {} to {}: {}{}", releases.front(), releases.back(),
                     join(releases, ", "), elsewhere);
}

}  // namespace

SoftwareStack at_release(SoftwareStack s, std::string_view release) {
  const auto at = find_release(s, release);
  if (at == s.releases.end())
    throw InputError(fmt::format("there are no facts of release {} of '{}'", release, s.name),
                     release_help(s, release));
  s.release = *at;
  if (!s.weights_in_experts_since.empty() && is_before(s.release, s.weights_in_experts_since))
    s.weights_in_experts = false;
  return s;
}

std::string_view attention_word(const SoftwareStack& s) {
  return s.fused_attention ? name(s.attention_kernel) : kEagerAttention;
}

void set_attention(SoftwareStack& s, std::string_view word) {
  s.fused_attention = word != kEagerAttention;
  if (const auto kernel = parse_attention_kernel(word)) s.attention_kernel = *kernel;
}

bool SoftwareStack::fuses_loss() const {
  return loss_forward_traffic <= kFusedLoss[0] && loss_backward_traffic <= kFusedLoss[1];
}

void set_fused_loss(SoftwareStack& s, bool fused) {
  if (fused == s.fuses_loss()) return;
  s.loss_forward_traffic = fused ? kFusedLoss[0] : kLossInSeveralKernels[0];
  s.loss_backward_traffic = fused ? kFusedLoss[1] : kLossInSeveralKernels[1];
}

void set_gradient_bytes(SoftwareStack& s, double bytes) { s.gradient_bytes = s.weight_gradient_bytes = bytes; }

std::span<const SoftwareStack> software_stacks() {
  static const std::vector<SoftwareStack> stacks = [] {
    const SoftwareStack core = by_release(megatron_core(
        "megatron-core", "Megatron-Core as most scripts run it: sums of gradients and gathers of weights overlap",
        "NVIDIA/Megatron-LM 0.20, example scripts; the shares that are hidden, 0.8 and 0.9, are assumed"));
    const SoftwareStack titan = torchtitan(), bridge = megatron_bridge();
    const char* const korthikanti = "Korthikanti et al., Reducing Activation Recomputation, MLSys 2023";
    return std::vector<SoftwareStack>{
        plain(),
        megatron_2021("megatron-2021", "Megatron-LM of 2021: fp16, dropout, attention in several kernels, no overlap",
                      "Narayanan et al., SC 2021; NVIDIA/Megatron-LM, examples/sc21"),
        megatron_2021("megatron-2022", "Megatron-LM of 2022, run with sequence parallelism and selective recomputation",
                      korthikanti),
        megatron_2021("megatron-2022-full", "Megatron-LM of 2022, run with full recomputation", korthikanti),
        megatron_deepspeed(),
        bloom(),
        core,
        bridge,
        with_overlap(bridge, "megatron-bridge-overlap",
                     "Megatron-Bridge from 26.06: as megatron-bridge, exchanges of experts next to products",
                     "NVIDIA-NeMo/Megatron-Bridge, scripts/performance/configs: moe_a2a_overlap; the "
                     "share that is hidden, 0.9, is assumed",
                     {Overlap::Experts}),
        nemo(),
        with_overlap(nemo(), "nemo-2024", "NeMo of 2024 and 2025", "NVIDIA/NeMo 24.07 to 25.07", {}),
        megatron_no_overlap(),
        titan,
        pytorch_eager(),
        llm_foundry(),
        with_overlap(titan, "torchtitan-async-tp", "torchtitan with asynchronous tensor parallelism",
                     "pytorch/torchtitan, benchmarks of Llama 3.1 70B on H100: async TP hides 41 to 47 % of what TP "
                     "shows",
                     {Overlap::Tensor}),
        deepseek_v3(),
        with_overlap(bridge, "megatron-fsdp", "Megatron-FSDP: as megatron-bridge, with divided weights",
                     "NVIDIA-NeMo/Megatron-Bridge, recipes with FSDP", {}),
    };
  }();
  return stacks;
}

const SoftwareStack& no_software_stack() {
  static const SoftwareStack none = [] {
    SoftwareStack s{"none", "", ""};
    s.prices = false;
    s.gradient_bytes = s.workspace_bytes = 0;
    return s;
  }();
  return none;
}

std::vector<std::string> software_stack_names() {
  std::vector<std::string> names;
  for (const SoftwareStack& stack : software_stacks()) names.emplace_back(stack.name);
  return names;
}

const SoftwareStack& software_stack(std::string_view name) {
  for (const SoftwareStack& stack : software_stacks())
    if (stack.name == name) return stack;
  throw InputError("there is no software stack '" + std::string(name) + "'", suggest(name, software_stack_names()));
}

}  // namespace stagecraft
