#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "backends/real/kernels.hpp"

namespace stagecraft::cuda {

class Queues;

/// A piece of work: of which queue, and its number there. 0: none, which is always over.
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

/// What an iteration would tell the streams, written down before any of them hears of it. Two with equal words do the
/// same with the same memory.
class Tape {
 public:
  using Words = std::vector<std::uint64_t>;

  /// A piece of work on the stream of the queue. `words` say all that it depends on.
  template <class... Facts>
  void work(int queue, std::function<void()> play, const Facts&... facts) {
    note(queue);
    (note(facts), ...);
    entries_.push_back({queue, {}, std::move(play)});
  }
  void wait(int queue, Point);
  void end(Point);

  const Words& words() const { return words_; }
  std::set<int> queues() const;  ///< That have anything to do.
  /// Tells the streams. Events are recorded only where somebody waits for them.
  void play(const Queues&) const;

  void note(std::uint64_t word) { words_.push_back(word); }
  void note(std::int64_t word) { note(static_cast<std::uint64_t>(word)); }
  void note(int word) { note(static_cast<std::int64_t>(word)); }
  void note(double word) { note(std::bit_cast<std::uint64_t>(word)); }
  void note(const void* place) { note(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(place))); }
  void note(const Copied&);
  void note(const real::Tensor&);
  void note(const real::Call&);
  void note(const real::OptimizerState&);
  void note(const real::UpdateOptions&);

 private:
  struct Entry {
    int queue = 0;
    Point point;                 ///< That ends here, or of another queue: that is waited for.
    std::function<void()> play;  ///< Of work.
  };
  std::vector<Entry> entries_;
  std::set<Point> awaited_;
  Words words_;
};

/// Kernels that write on the tape what they are told, for those of the queue to do later; nobody can look at numbers.
std::unique_ptr<real::Kernels> taped(Tape&, int queue, real::Kernels&);

}  // namespace stagecraft::cuda
