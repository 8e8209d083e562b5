#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/cost/collective.hpp"
#include "sim/cost/kernel.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft {

/// Where the time of a pass, or of anything that consists of passes, goes. Collectives and messages count as far as
/// nothing hides them.
struct TimeByClass {
  Seconds products, attention, memory_bound;
  Seconds other;     ///< Layers whose operations are not known, and times that were measured or given.
  Seconds launches;  ///< What the device waits for the host, in addition to all other times.
  Seconds tensor, context, expert, data;
  Seconds messages;
  Seconds host_memory;  ///< Copies from host memory that come later than all else that an op needs.
  Seconds optimizer;    ///< Updates of the weights.

  Seconds kernels() const { return products + attention + memory_bound + other; }
  Seconds collectives() const { return tensor + context + expert + data; }
  Seconds total() const { return kernels() + launches + collectives() + messages + host_memory + optimizer; }

  TimeByClass& operator+=(const TimeByClass&);
  friend TimeByClass operator+(TimeByClass a, const TimeByClass& b) { return a += b; }
  friend TimeByClass operator*(double factor, TimeByClass);
};

/// One class: its name in text, its key in files and what it contains.
struct TimeClass {
  std::string_view name, key, contents;
  Seconds TimeByClass::*part;
};
/// All classes. Their parts sum to the total.
std::span<const TimeClass> time_class_list();

/// Which collectives of an op a Program writes as instructions of their own: none; those that ops which run as one may
/// hide, which are the exchanges of experts, or these and the collectives of tensor groups; or all, as messages on the
/// links.
enum class Written : std::uint8_t { None, Exchanges, Braided, All };

/// A pass without these collectives: the time of the instruction of its op. With `All` it is the computation alone.
TimeByClass in_op(TimeByClass pass, Written);

/// One pass of a layer or a stage on one device: where its time goes with everything inside, and its collectives.
struct PassCost {
  TimeByClass time;
  Collectives collectives{};
};

/// Times of kernels that run one after another, by class.
TimeByClass kernel_time(std::span<const Kernel>, const Accelerator&);

/// Number of kernels that the host launches.
double launch_count(std::span<const Kernel>);

/// Time of a pass. Launches run ahead of the device, so a pass takes the longer of
///   - its kernels and what its collectives leave exposed, or the collectives ahead, which the pass as a whole hides,
///   - the launches of all kernels and collectives, which `launches` counts;
/// and their sum where the host waits for each kernel. `beside` is more work next to what the pass hides.
TimeByClass pass_time(TimeByClass kernels, double launches, const Collectives&, const Accelerator&,
                      const SoftwareStack&, Seconds beside = {});

}  // namespace stagecraft
