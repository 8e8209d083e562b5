// Events around instructions: chooses which have one where only iterations are timed, uses events again, and reads the
// times of each iteration when it is over.

#include "backends/cuda/instruction_events.hpp"

#include <algorithm>

namespace stagecraft::cuda {

std::vector<EndEvent> end_events(const Program& p) {
  constexpr int kSeen = 16;  // The host can observe progress after this many ops.
  std::vector<EndEvent> ends(p.size(), EndEvent::None);
  IdVector<DeviceId, int> ops(p.devices, 0);
  std::map<std::pair<DeviceId, int>, std::size_t> last;
  for (std::size_t n = 0; n < p.size(); ++n) {
    const Instruction& i = p.at(InstructionId{n});
    if (!i.is_compute()) ends[n] = EndEvent::Plain;
    for (const InstructionId w : p.waits_for(InstructionId{n}))
      if (!i.is_compute() || p.at(w).device != i.device) ends[w.value] = EndEvent::Plain;
    if (!i.is_compute()) continue;
    if (++ops[i.device] % kSeen == 0) ends[n] = EndEvent::Plain;
    last[{i.device, p.iteration_of(i)}] = n;
  }
  for (const auto& [where, n] : last) ends[n] = EndEvent::Timed;
  return ends;
}

void spread_over_iterations(const Program& p, IdVector<InstructionId, double>& start,
                            IdVector<InstructionId, double>& end) {
  std::vector<double> last(static_cast<std::size_t>(p.iterations) + 1, 0);
  const auto iteration_slot = [&](InstructionId n) { return static_cast<std::size_t>(p.iteration_of(p.at(n))) + 1; };
  for (const InstructionId n : p.instructions.ids())
    last[iteration_slot(n)] = std::max(last[iteration_slot(n)], end[n]);
  for (std::size_t k = 1; k < last.size(); ++k) last[k] = std::max(last[k], last[k - 1]);
  start.resize(p.size());
  for (const InstructionId n : p.instructions.ids()) {
    start[n] = last[iteration_slot(n) - 1];
    end[n] = last[iteration_slot(n)];
  }
}

SharedEvent* EventPool::take(int gpu, bool timed) {
  std::vector<SharedEvent*>& unused = unused_[{gpu, timed}];
  if (unused.empty()) return &events_.emplace_back(gpu, timed);
  SharedEvent* const event = unused.back();
  unused.pop_back();
  return event;
}

void EventPool::release(SharedEvent* event) {
  if (event && --event->users_ == 0) unused_[{event->gpu_, event->timed_}].push_back(event);
}

void EventPool::release_all() {
  unused_.clear();
  for (SharedEvent& event : events_) {
    event.users_ = 0;
    unused_[{event.gpu_, event.timed_}].push_back(&event);
  }
}

void InstructionEvents::reset(std::size_t instructions, int queues) {
  pool.release_all();
  start_events.clear();
  iterations.clear();
  gpu_of_barriers = -1;
  others.clear();
  start.assign(instructions, nullptr);
  end.assign(instructions, nullptr);
  finished.assign(instructions, false);
  gpu.assign(instructions, 0);
  of_queue.assign(static_cast<std::size_t>(queues), {});
}

EventReader::EventReader(const Program& program, InstructionEvents& events, std::vector<EndEvent> ends)
    : p_(program), events_(events), ends_(std::move(ends)), instructions_(program.iterations) {
  for (const InstructionId n : p_.instructions.ids())
    instructions_[p_.iteration_of(p_.at(n))].push_back(static_cast<int>(n.value));
  for (SharedEvent* const gate : events_.start_events) {
    if (gate) EventPool::hold(gate, 2);
    clocks_.push_back({gate, gate});
  }
  start_.assign(p_.size(), 0);
  end_.assign(p_.size(), 0);
}

void EventReader::read_finished(InstructionId next, const std::function<void(InstructionId)>& over) {
  for (; next_ < instructions_.size(); ++next_) {
    if (!is_over(next_, next)) return;
    read(next_);
    for (const int n : instructions_[next_]) over(InstructionId{n});
    release(next_);
  }
}

void EventReader::read_all() {
  for (; next_ < instructions_.size(); ++next_) {
    read(next_);
    release(next_);
  }
}

/// Instructions without an end are in another process.
bool EventReader::is_over(std::size_t iteration, InstructionId next) const {
  const std::vector<int>& list = instructions_[iteration];
  const bool enqueued = list.empty() || list.back() < static_cast<int>(next.value);
  if (events_.gpu_of_barriers >= 0 ? events_.iterations.empty() : !enqueued) return false;
  return std::all_of(list.begin(), list.end(), [&](int n) { return !events_.end[n] || events_.end[n]->over(); });
}

void EventReader::begin_iteration(DeviceClock& clock, int iteration, SharedEvent* start) {
  if (clock.iteration == iteration) return;
  events_.pool.release(clock.before);
  clock.before = clock.last;
  clock.before_s = clock.last_s;
  clock.last = start;
  clock.last_s += 1e-3 * start->milliseconds_since(*clock.before);
  clock.iteration = iteration;
  EventPool::hold(start);
}

/// Seconds of an end of an iteration, event by event.
double EventReader::step_to(DeviceClock& clock, SharedEvent* end) {
  const double now = clock.last_s + 1e-3 * end->milliseconds_since(*clock.last);
  if (now <= clock.last_s) return now;
  events_.pool.release(clock.last);
  clock.last = end;
  clock.last_s = now;
  EventPool::hold(end);
  return now;
}

void EventReader::read(std::size_t iteration) {
  if (events_.gpu_of_barriers >= 0) {
    SharedEvent* const barrier = events_.iterations.front();
    events_.iterations.pop_front();
    const double end = step_to(clocks_[events_.gpu_of_barriers], barrier);
    for (const int n : instructions_[iteration]) end_[InstructionId{n}] = end;
    return events_.pool.release(barrier);
  }
  for (const int n : instructions_[iteration]) {
    SharedEvent* const end = events_.end[n];
    if (!end) continue;
    DeviceClock& clock = clocks_[events_.gpu[n]];
    if (ends_.empty()) {
      begin_iteration(clock, static_cast<int>(iteration), events_.start[n]);
      start_[InstructionId{n}] = clock.before_s + 1e-3 * events_.start[n]->milliseconds_since(*clock.before);
      end_[InstructionId{n}] = clock.before_s + 1e-3 * end->milliseconds_since(*clock.before);
    } else if (ends_[n] == EndEvent::Timed) {
      end_[InstructionId{n}] = step_to(clock, end);
    }
  }
}

void EventReader::release(std::size_t iteration) {
  for (const int n : instructions_[iteration]) {
    events_.finished[n] = events_.end[n] != nullptr;
    events_.pool.release(std::exchange(events_.start[n], nullptr));
    events_.pool.release(std::exchange(events_.end[n], nullptr));
  }
  if (const auto others = events_.others.extract(static_cast<int>(iteration)))
    for (SharedEvent* const event : others.mapped()) events_.pool.release(event);
}

}  // namespace stagecraft::cuda
