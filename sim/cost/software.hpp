#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/cluster/accelerator.hpp"
#include "sim/core/enum_array.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// How a framework cuts the gradients of a stage into buckets, each of which is summed as soon as its gradients are
/// there. A full bucket has the most of these numbers of parameters.
struct BucketRule {
  double parameters = 0;
  double parameters_per_rank = 0;  ///< For each device of the data-parallel group.
  Bytes gradients{};               ///< Bytes of the gradients of a bucket.
  bool on_first_stage = false;     ///< Only the first stage has buckets: the others wait for it anyway.

  bool cuts() const { return parameters > 0 || gradients.value > 0; }
};

/// What a framework can run next to computation. A run has each of them on or off: `software.overlap`.
enum class Overlap : std::uint8_t { Tensor, Gradients, Weights, Messages, Experts, WeightGradients };
inline constexpr std::size_t kOverlaps = 6;
using OverlapSwitches = EnumArray<Overlap, bool, kOverlaps>;

std::span<const Overlap> overlap_features();
/// The name of a feature in `software.overlap`.
std::string_view name_of(Overlap);
/// What is simulated where it is on.
std::string_view effect_of(Overlap);
/// The options of frameworks that turn it on.
std::string_view flags_of(Overlap);

/// What the products of a framework reach of the share that a device type has, from one release to another. It is a
/// fact of the libraries of these releases, such as cuBLAS and Transformer Engine.
struct ShareFactor {
  std::string_view device;  ///< The device type; it counts for relatives, too, which have none of their own.
  NumberFormat format = NumberFormat::Bf16;
  std::string_view from = {}, before = {};  ///< Releases; empty: all.
  double factor = 1;
  int runs = 0;  ///< Number of runs that it was fitted to; 0: none.
};

/// What a training framework does, as far as times depend on it: facts of code and of its default options, and
/// the few numbers that the table of fits lists in scenarios/predictions/README.md. What a user chooses for a run
/// (degrees, sharding, recomputation) is not here.
struct SoftwareStack {
  std::string_view name, summary, source;
  std::string_view base = {};                       ///< The stack that this one is, with other switches; empty: none.
  std::span<const std::string_view> releases = {};  ///< Releases that its facts are of, newest last; empty: unknown.
  std::string_view release = {};                    ///< The one that runs; empty: the newest, or unknown.
  std::span<const ShareFactor> share_factors = {};
  AttentionKernel attention_kernel = AttentionKernel::CuDnn;  ///< What runs attention that is fused.
  /// Time of a host for each kernel; 10 us without much of a framework around it, which is assumed.
  EnumArray<Host, Seconds, kHosts> launch{Seconds{10e-6}, Seconds{10e-6}};
  bool graphs = false;          ///< CUDA graphs launch whole passes, so that no kernel waits for the host.
  double pass_overlap = 1;      ///< Share of gathers of divided weights and sums of their gradients in each pass that
                                ///< runs next to the pass, where that overlap is on.
  bool prices = true;           ///< False for `none` alone, which says nothing of kernels and collectives: layers
                                ///< cost what their amounts say, no group divides them, and sums of gradients
                                ///< before an update are messages.
  bool fused_attention = true;  ///< Attention is one kernel that keeps no scores.
  /// The activation inside of experts multiplies rows with their routing weights, so that a combination keeps nothing.
  /// A bias after it is weighted apart, in fp32.
  bool weights_in_experts = false;
  std::string_view weights_in_experts_since = {};  ///< The first release with that; empty: all of them.
  /// Where one product of a narrow format reads an array, its cast is kept and not the array.
  bool keeps_casts = false;
  /// Arrays have the sequence first, and FlashAttention samples: it keeps what it made next to the reordered copy that
  /// the projection reads.
  bool sequence_first = false;
  bool dropout = false;              ///< Sums and softmax apply dropout and move its mask.
  double norm_traffic = 1;           ///< Bytes of norms and rotations, as a multiple of what one fused kernel moves.
  bool balanced_context = true;      ///< Each context rank has an early and a late part of the sequence, so that causal
                                     ///< attention takes equally long on all of them.
  double weight_gradient_bytes = 4;  ///< Bytes of each number that a weight-gradient product writes.
  OverlapSwitches overlap{false, true, true, true, false, false};   ///< What is on.
  EnumArray<Overlap, std::string_view, kOverlaps> overlap_since{};  ///< The first release with it; empty: all of them.
  /// Share that each hides where it is on: of the collectives of the tensor group, of the sum of gradients and of the
  /// gather of weights around an update, and of the all-to-alls of the expert group.
  EnumArray<Overlap, double, kOverlaps> overlap_share{};
  bool hides_regather = true;  ///< The all-gather of inputs for the weight gradient runs next to the input gradient.
  double pair_overlap = 0;     ///< Share of the all-to-alls of experts that a forward and a backward which a schedule
                               ///< runs as one hide.
  double exchange_multiprocessors = 0;  ///< Multiprocessors that such an all-to-all takes from the computation.
  double dispatch_bytes = 0;       ///< Bytes of each number of a dispatched row, with its scales; 0: as of activations.
  BucketRule buckets = {};         ///< Its buckets of gradients, where a run asks for them.
  double gradient_bytes = 4;       ///< Bytes of each gradient that the data-parallel group sums.
  double gradient_copy_bytes = 0;  ///< Bytes of each further copy of a gradient that stays in memory.
  double workspace_bytes = 4;      ///< Bytes of each number of the gradient of a matrix and of the scores of words,
                                   ///< of which a backward has copies.
  double optimizer_traffic = 34;   ///< Bytes that an update moves for each parameter that a device updates.
  double gradient_traffic = 4;     ///< Bytes that norm, scaling and copies move for each gradient of a device.
  double loss_forward_traffic = 10;  ///< Bytes that the forward of the loss moves for each logit.
  double loss_backward_traffic = 6;  ///< Bytes that the backward of the loss moves for each logit.
  double gathered_bytes = 2;  ///< Bytes of each weight that devices gather which divide states: bf16 in most stacks.
  bool blocking_launches = false;  ///< The host waits for each kernel (CUDA_LAUNCH_BLOCKING=1).

  /// The share of these collectives that other work hides.
  double hides(Overlap feature) const { return overlap[feature] ? overlap_share[feature] : 0; }
  /// Whether switching it on changes what is simulated.
  bool can_overlap(Overlap feature) const;
  /// Whether the loss reads each logit in one kernel for each pass.
  bool fuses_loss() const;
};

/// All but no_software_stack(). Some are another one with other switches, under a name of their own.
std::span<const SoftwareStack> software_stacks();
/// What `software: none` is: nothing in addition to the amounts of layers.
const SoftwareStack& no_software_stack();
/// The stack of this name; InputError with a suggestion when there is none.
const SoftwareStack& software_stack(std::string_view name);
std::vector<std::string> software_stack_names();
/// The stack in this release of it; 0.12.3 has the facts of 0.12. InputError where the release is not known.
SoftwareStack at_release(SoftwareStack, std::string_view release);
/// Whether release `a`, such as 25.02, is before release `b`.
bool is_before(std::string_view a, std::string_view b);
/// "eager", or the name of the kernel that runs fused attention.
std::string_view attention_word(const SoftwareStack&);
void set_attention(SoftwareStack&, std::string_view word);
/// Turns a feature on or off.
void set_overlap(SoftwareStack&, Overlap feature, bool on);
/// Whether the loss is one kernel for each pass, or several with logits in fp32 between them.
void set_fused_loss(SoftwareStack&, bool fused);
/// Replicas keep and sum gradients in this format, and products write it.
void set_gradient_bytes(SoftwareStack&, double bytes);

}  // namespace stagecraft
