#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "backends/real/kernels.hpp"

// The work of an iteration as a list of commands, which `repeat` compares with earlier iterations to launch a graph
// again.

namespace stagecraft::cuda {

class Queues;

/// A piece of work: its queue and its number there. Number 0: none, which is always over.
struct Point {
  int queue = 0;
  std::uint32_t number = 0;
  auto operator<=>(const Point&) const = default;
};

struct Copied {
  const void* from = nullptr;
  void* to = nullptr;
  std::size_t bytes = 0;
};

/// The work of an iteration, recorded before it is enqueued. Two recorders with equal words do the same work in the
/// same memory.
class CommandRecorder {
 public:
  using CommandWords = std::vector<std::uint64_t>;

  /// Adds a piece of work on the stream of the queue. `facts` are all that it depends on.
  template <class... Facts>
  void work(int queue, std::function<void()> play, const Facts&... facts) {
    note(queue);
    (note(facts), ...);
    entries_.push_back({queue, {}, std::move(play)});
  }
  /// Adds a kernel of NCCL on the streams of these queues, which waits for other GPUs.
  template <class... Facts>
  void nccl(const std::vector<int>& queues, std::function<void()> play, const Facts&... facts) {
    work(queues.front(), std::move(play), facts...);
    for (const int queue : queues) note(queue);
    entries_.back().nccl = queues;
  }
  void wait(int queue, Point);
  void end(Point);

  const CommandWords& words() const { return words_; }
  /// The words of the updates alone: only their work may depend on how many iterations there were before.
  const CommandWords& update_words() const { return update_words_; }
  /// Everything from this number of words on is an update.
  void end_update(std::size_t from) {
    update_words_.insert(update_words_.end(), words_.begin() + static_cast<std::ptrdiff_t>(from), words_.end());
  }
  std::set<int> queues() const;  ///< Queues that have anything to do.
  enum class NcclOrder : std::uint8_t {
    Enqueued,  ///< Kernels of different communicators may overlap; the streams take them in the order of the calls.
    Chained    ///< In a graph, which does not keep the order of the calls, each kernel waits for the one before it.
  };
  /// Enqueues the work. Events are recorded only where something waits for them. Chained kernels are on one GPU.
  void play(const Queues&, NcclOrder = NcclOrder::Enqueued) const;

  void note(std::uint64_t word) { words_.push_back(word); }
  void note(std::int64_t word) { note(static_cast<std::uint64_t>(word)); }
  void note(int word) { note(static_cast<std::int64_t>(word)); }
  void note(double word) { note(std::bit_cast<std::uint64_t>(word)); }
  void note(const void* place) { note(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(place))); }
  void note(const Copied&);
  void note(const real::Tensor&);
  void note(const real::Call&);
  void note(const real::KeyPart&);
  void note(const real::DividedLoss&);
  void note(const real::ScoreRecords&);
  void note(const real::OptimizerState&);
  void note(const real::UpdateOptions&);

 private:
  struct Entry {
    int queue = 0;
    Point point;                 ///< It ends here if it is of this queue; otherwise the queue waits for it.
    std::function<void()> play;  ///< Enqueues the work; null for waits and ends.
    std::vector<int> nccl = {};  ///< The queues of a kernel of NCCL; empty for other work.
  };
  std::vector<Entry> entries_;
  std::set<Point> awaited_;
  CommandWords words_, update_words_;
};

/// Kernels that record their calls, for the kernels of the queue to execute later; they cannot read
/// numbers.
std::unique_ptr<real::Kernels> recorded_kernels(CommandRecorder&, int queue, real::Kernels&);

}  // namespace stagecraft::cuda
