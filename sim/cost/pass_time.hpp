#pragma once

#include <span>
#include <string_view>

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
  Seconds optimizer;  ///< Updates of the weights.

  Seconds kernels() const { return products + attention + memory_bound + other; }
  Seconds collectives() const { return tensor + context + expert + data; }
  Seconds total() const { return kernels() + launches + collectives() + messages + optimizer; }

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

/// Collectives of one pass.
struct PassCollectives {
  Seconds tensor{}, context{}, expert{};  ///< What products do not hide.
  Seconds weights{};  ///< All collectives of divided weights. With SoftwareStack::gathers_ahead they run next to the
                      ///< pass, which takes at least as long.
  int launches = 0;   ///< Collectives that the host launches, in kernels.
};

/// Times of kernels that run one after another, by class.
TimeByClass kernel_time(std::span<const Kernel>, const Accelerator&);

/// Number of kernels that the host launches.
double launch_count(std::span<const Kernel>);

/// Time of a pass. Launches run ahead of the device, so a pass takes the longer of
///   - its kernels and the collectives that nothing hides,
///   - the collectives of divided weights, where the stack gathers ahead; elsewhere they add up with the kernels,
///   - the launches of all kernels and collectives;
/// and their sum where the host waits for each kernel.
TimeByClass pass_time(TimeByClass kernels, double kernel_count, const PassCollectives&, const Accelerator&,
                      const SoftwareStack&);
TimeByClass pass_time(std::span<const Kernel>, const PassCollectives&, const Accelerator&, const SoftwareStack&);

}  // namespace stagecraft
