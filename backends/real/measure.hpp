#pragma once

#include <vector>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"
#include "sim/core/quantity.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft::real {

/// Measures every kind of layer of a model, updates of several sizes, messages, collectives of layers, gradients and
/// weights, and what each op adds. The model runs whole, forward and backward, on `threads` threads at once, each with
/// its own copy; results are medians of the runs after the first ones.
Profile measure(const ProfileRequest&, const KernelFactory&);

/// What the interpreter adds to the computing itself.
struct MessageFigures {
  Seconds op_gap;       ///< From the end of an op to the start of the next on the same device.
  Seconds latency;      ///< From the end of an op to the start of one on another device that waits for its message.
  Bandwidth bandwidth;  ///< Measured with a long message.
};

inline constexpr double kShortWait = 2e-4;  ///< Seconds, twenty times as long as a thread spins.

/// Runs a program of two devices that pass a message back and forth, once small and once large. Each computes for
/// `wait` seconds while the other one waits: the longer a thread sleeps, the longer it takes to wake up. With less than
/// one second to measure there are fewer rounds.
MessageFigures measure_messages(double wait = kShortWait, double seconds = 1);

/// What an op of a stage takes in addition to its layers: the median op of a model whose layers take almost no time.
Seconds measure_op_overhead(const std::function<Timeline(const Program&)>& run);

}  // namespace stagecraft::real
