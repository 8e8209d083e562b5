#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cuda/capture.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::cuda {

/// What is recorded at the end of an instruction.
enum class EndEvent : std::uint8_t { None, Plain, Timed };

/// The event at the end of each instruction when only iterations are timed. An instruction has one if another stream
/// waits for it, if the host needs it to observe progress, or, timed, if it is the last of an iteration on its device.
std::vector<EndEvent> end_events(const Program&);

/// Spreads the times of these events, which share a clock, over all instructions: each gets the interval from the end
/// of the previous iteration to the end of its iteration.
void spread_over_iterations(const Program&, IdVector<InstructionId, double>& start,
                            IdVector<InstructionId, double>& end);

/// An event of a GPU. It is used again when the last of its users has released it.
class SharedEvent : public Event {
 public:
  SharedEvent(int gpu, bool timed)
      : Event(timed ? cudaEventDefault : cudaEventDisableTiming), gpu_(gpu), timed_(timed) {}

 private:
  friend class EventPool;
  int gpu_;
  bool timed_;
  int users_ = 0;
};

class EventPool {
 public:
  /// An event without users on this GPU, which is the current one.
  SharedEvent* take(int gpu, bool timed);
  static void hold(SharedEvent* event, int users = 1) { event->users_ += users; }
  /// One user less; null has none.
  void release(SharedEvent*);
  void release_all();

 private:
  std::deque<SharedEvent> events_;
  std::map<std::pair<int, bool>, std::vector<SharedEvent*>> unused_;  ///< By GPU, and whether they are timed.
};

class EventReader;

/// Events around each instruction, in the order in which their queues come to them, until they are read.
struct InstructionEvents {
  EventPool pool;
  std::vector<SharedEvent*> start_events;  ///< The first event on each GPU; null for GPUs that have nothing to do.
  std::vector<SharedEvent*> start, end;    ///< Indexed by instruction; instructions that run as one share events.
  std::vector<bool> finished;              ///< Indexed by instruction: it is over, and its events were released.
  std::vector<int> gpu;                    ///< GPU of each instruction's events.
  std::vector<std::vector<int>> of_queue;  ///< Instructions, by the queue that their end is on.
  int gpu_of_barriers = -1;                ///< -1: there are no barriers between iterations.
  std::deque<SharedEvent*> iterations;     ///< With barriers: the end of each iteration that was not read.
  std::map<int, std::vector<SharedEvent*>> others;  ///< Events inside of instructions, by iteration.

  std::shared_ptr<EventReader> reader;

  /// Forgets everything, for a run of that number of instructions and queues.
  void reset(std::size_t instructions, int queues);
  bool is_over(std::size_t instruction) const {
    return finished[instruction] || (end[instruction] && end[instruction]->over());
  }
};

/// Reads when instructions began and ended, in seconds since the gate of their GPU, one iteration after the other. The
/// host is a bounded number of instructions ahead of each queue, so a run needs a bounded number of events.
///
/// Milliseconds come as floats, which are fine over one iteration and coarse over a run. So each iteration is measured
/// from the start of the one before.
class EventReader {
 public:
  /// `ends`: as end_events() gives them where only iterations are timed, each instruction's `end` is then 0 but for the
  /// last ones; empty where every instruction is timed.
  EventReader(const Program&, InstructionEvents&, std::vector<EndEvent> ends);

  /// Reads iterations that are over. Without barriers, all their instructions are below `next`. `over` is called for
  /// each instruction right before its events are released.
  void read_finished(InstructionId next, const std::function<void(InstructionId)>& over);
  /// Reads the rest; everything is over.
  void read_all();

  const IdVector<InstructionId, double>& start() const { return start_; }
  const IdVector<InstructionId, double>& end() const { return end_; }

 private:
  struct DeviceClock {
    SharedEvent *before = nullptr, *last = nullptr;  ///< First events of this iteration and of the one before.
    double before_s = 0, last_s = 0;                 ///< Their seconds.
    int iteration = 0;                               ///< The one of `last`.
  };
  bool is_over(std::size_t iteration, InstructionId next) const;
  void read(std::size_t iteration);
  void release(std::size_t iteration);
  void begin_iteration(DeviceClock&, int iteration, SharedEvent* start);
  double step_to(DeviceClock&, SharedEvent* end);

  const Program& p_;
  InstructionEvents& events_;
  std::vector<EndEvent> ends_;
  std::vector<std::vector<int>> instructions_;  ///< By iteration.
  std::size_t next_ = 0;                        ///< The first iteration that was not read.
  std::vector<DeviceClock> clocks_;             ///< By GPU.
  IdVector<InstructionId, double> start_, end_;
};

}  // namespace stagecraft::cuda
