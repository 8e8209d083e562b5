#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

// PipeEdge's problem: a chain of layers on any devices in any order, with the times, memory and links that its
// search reads.

namespace stagecraft::edgepipe {

/// One number for each run of consecutive layers from..to-1.
class Runs {
 public:
  Runs() = default;
  Runs(int layers, const std::function<double(int from, int to)>& value);
  /// Sums of `layers` over runs, added from left to right.
  static Runs sums(const std::vector<double>& layers);

  double at(int from, int to) const { return values_[from * (layers_ + 1) + to]; }

 private:
  int layers_ = 0;
  std::vector<double> values_;
};

/// Devices that are equal.
struct MachineKind {
  int count = 1;
  Runs compute;             ///< Seconds of one item.
  double memory = 0;        ///< Bytes; a stage has to need less.
  double bandwidth = 0;     ///< Bytes a second of the link, each way; 0: not connected.
  bool first_only = false;  ///< The items start on these devices, so they run the first stage or none.
};

/// A chain of layers, and devices that may each run consecutive layers of it, in any order. One item is a micro-batch.
struct ChainProblem {
  int layers = 0;
  std::vector<double> message;             ///< Bytes of one item before each layer, and after the last.
  Runs weights;                            ///< Bytes that stay in memory.
  double buffers_in = 2, buffers_out = 2;  ///< Items that wait at a stage, in addition to the one in progress.
  std::vector<MachineKind> machines;
};

/// Number of devices of each of the machines.
std::vector<int> counts_of(const ChainProblem&);

/// Layers from..to-1 on one device of machines[machines].
struct ChainStage {
  int from = 0, to = 0, machines = 0;
};

/// The stages in the order in which items pass them.
using Chain = std::vector<ChainStage>;

/// Bytes that a stage keeps in memory. PipeEdge runs inference and counts queues of messages at both ends of a stage,
/// which stage_memory() does not have. The first stage receives from no other, so it has no queue in front.
///
///   weights + [from > 0] b_in in + b_out out + in + out
double memory_of(const ChainProblem&, int from, int to);
bool fits(const ChainProblem&, const ChainStage&);

/// Seconds of `bytes` on a link; infinite where there is none.
double hop_seconds(double bytes, double bandwidth);

/// Cost of a chain for one item.
struct ChainFigures {
  double slowest_stage = 0, slowest_hop = 0;
  double all_hops = 0;  ///< Seconds of all hops one after the other, as on a shared medium.
  double latency = 0;   ///< Seconds of an item alone through all stages and hops.
  double memory = 0;    ///< Bytes of the fullest stage.
};

ChainFigures figures_of(const ChainProblem&, const Chain&);

/// The longest that one stage and one hop may take.
struct Limits {
  double stage, hop;
};

/// Numbers from 0 to `layers`, as bits of 64-bit words.
using Cuts = std::vector<std::uint64_t>;

inline bool has(std::span<const std::uint64_t> cuts, int cut) { return (cuts[cut / 64] >> (cut % 64) & 1) != 0; }

template <class Visit>
void for_each(std::span<const std::uint64_t> cuts, Visit&& visit) {
  for (std::size_t w = 0; w < cuts.size(); ++w)
    for (std::uint64_t rest = cuts[w]; rest != 0; rest &= rest - 1)
      visit(static_cast<int>(w * 64) + __builtin_ctzll(rest));
}

/// Which stages each kind of machine may run. A hop is as slow as the slower of its two links, so each end is compared
/// with the limit separately: whether a stage may be part of a chain depends on the stage alone.
class Allowed {
 public:
  Allowed(const ChainProblem&, Limits);

  int words() const { return words_; }
  /// Cuts at which these machines may begin a stage.
  const Cuts& starts(int machines) const { return starts_[machines]; }
  /// Cuts at which a stage on these machines that begins at `from` may end.
  std::span<const std::uint64_t> ends(int machines, int from) const {
    return {&ends_[(machines * layers_ + from) * words_], static_cast<std::size_t>(words_)};
  }

 private:
  int layers_, words_;
  std::vector<Cuts> starts_;
  Cuts ends_;
};

}  // namespace stagecraft::edgepipe
