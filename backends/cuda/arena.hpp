#pragma once

#include <deque>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "backends/cuda/queues.hpp"

namespace stagecraft::cuda {

/// The memory of one virtual device. Blocks are taken and given back when work is enqueued, long before it runs, so
/// each free region knows the moment from which it may be used. Equal calls give equal regions.
class Arena {
 public:
  /// `more` gives a large block, or null; at least `step` bytes are asked for at once, and more as the arena grows.
  Arena(std::function<void*(std::size_t)> more, std::size_t step) : more_(std::move(more)), step_(step) {}

  struct Taken {
    void* data = nullptr;
    VectorClock from;  ///< It may be used when all of this is over.
  };
  /// Takes the block with the shortest wait for a queue that waits for `clock` already. The arena grows rather than
  /// waits as long as it holds at most twice what was ever in use, plus a step. Null when no memory is left.
  Taken take(std::size_t bytes, const VectorClock& clock);
  /// Makes the next user of the block with this address, after the present one, wait for this moment, too.
  void hold(const void* inside, const VectorClock&);
  /// Gives a block back; it may be used again when `last_use` is over.
  void give(void* data, const VectorClock& last_use);
  /// The moment from which the block with this address, which is taken, may be used.
  const VectorClock& usable_from(const void* inside) const;
  /// Whether the address is here.
  bool holds(const void* inside) const { return find(inside) != nullptr; }

  /// From now on the arena grows only when a wait does not help.
  void stop_growing() { may_grow_ = false; }
  std::size_t reserved() const { return reserved_; }  ///< Bytes of all large blocks.
  /// Call it when everything that was enqueued is over.
  void forget();
  /// All blocks, taken and free: arenas of equal layouts give equal blocks to equal calls, after forget().
  void note_layout(std::vector<std::uint64_t>& words) const;

 private:
  struct Region {
    std::size_t size = 0;
    bool free = false;
    VectorClock from;
  };
  using Regions = std::map<std::size_t, Region>;  ///< By offset, without gaps.
  struct Chunk {
    char* begin = nullptr;
    std::size_t size = 0;
    Regions regions;
  };
  /// One free region, or several adjacent ones.
  struct Fit {
    bool any = false;
    std::size_t chunk = 0, offset = 0;
    std::uint64_t wait = 0;  ///< Pieces of work that the caller does not wait for already.
    std::size_t size = 0;
  };
  Fit best(std::size_t bytes, const VectorClock& clock) const;
  Fit best_ready(std::size_t bytes, const VectorClock& clock) const;
  void* occupy(const Fit&, std::size_t bytes);
  void absorb(std::size_t chunk, Regions::iterator low, Regions::iterator high);
  const Region* find(const void* inside) const;
  Region* find(const void* inside) { return const_cast<Region*>(std::as_const(*this).find(inside)); }
  bool grow(std::size_t bytes, std::size_t wanted);

  std::function<void*(std::size_t)> more_;
  std::size_t step_, reserved_ = 0, used_ = 0, most_used_ = 0;
  bool may_grow_ = true;
  std::deque<Chunk> chunks_;                                           ///< Never moved: `free_` points into them.
  std::map<std::pair<std::size_t, std::size_t>, const Region*> free_;  ///< By chunk and offset.
};

}  // namespace stagecraft::cuda
