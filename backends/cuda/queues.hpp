#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <vector>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/command_recorder.hpp"

namespace stagecraft::cuda {

/// A vector clock: for each stream, the number of its newest piece of work that is over, counted from 1.
using VectorClock = std::vector<std::uint32_t>;

/// Whether all that is over at `earlier` is over at `later` too.
bool covers(const VectorClock& later, const VectorClock& earlier);
void join(VectorClock& into, const VectorClock& other);

/// The streams of a run, filled by one host thread. A wait is enqueued only where a stream does not already wait for
/// that work, directly or through others.
class Queues {
 public:
  /// The stream stays the caller's.
  int add(cudaStream_t, int gpu);

  int size() const { return static_cast<int>(queues_.size()); }
  cudaStream_t stream(int queue) const { return at(queue).stream; }
  int gpu(int queue) const { return at(queue).gpu; }
  int with(cudaStream_t) const;  ///< The queue of a stream.
  void select(int queue) const;  ///< Makes its GPU the current one.

  void wait(int queue, Point);
  void wait(int queue, const VectorClock&);
  /// Ends the piece of work at the end of the queue and records the event there, which has to live as long. Null: an
  /// event is made when something waits for it.
  Point end(int queue, const Event*);
  Point end(int queue, const Event& event) { return end(queue, &event); }

  /// From now on records work instead of enqueuing it. What was enqueued before counts as over.
  void write_to(CommandRecorder* recorder) { recorder_ = recorder; }

  /// What is over when the queue gets to its end; the piece that is being enqueued counts as over.
  VectorClock reached(int queue) const;
  /// Number of the newest piece of the queue: the one that is being enqueued, or the last that was ended.
  std::uint32_t newest(int queue, bool running) const {
    return static_cast<std::uint32_t>(at(queue).ended.size()) + running;
  }

  /// The piece of work and all before it in its queue are over, so nothing waits for them any more and their events may
  /// be recorded for something else. Work that is enqueued later takes the same memory as without this call.
  void set_over(Point);

  /// Call when everything that is enqueued is over: numbers begin at 1 again.
  void forget();

 private:
  struct Ended {
    const Event* event = nullptr;
    VectorClock clock;
    Event* late = nullptr;  ///< The event, where it was made for a wait.
  };
  struct Queue {
    cudaStream_t stream{};
    int gpu = 0;
    VectorClock clock;         ///< At its end.
    std::vector<Ended> ended;  ///< Its pieces so far.
    std::uint32_t over = 0;    ///< Number of the last that is known to be over.
  };
  const Queue& at(int queue) const { return queues_[queue]; }
  const Ended& recorded(Point);

  std::vector<Queue> queues_;
  std::deque<Event> late_;
  std::map<int, std::vector<Event*>> unused_;  ///< Events of late_, by GPU.
  CommandRecorder* recorder_ = nullptr;
};

}  // namespace stagecraft::cuda
