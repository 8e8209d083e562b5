// The streams of a run, with a vector clock for each: a wait is enqueued only where a stream does not already wait for
// that work.

#include "backends/cuda/queues.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

bool covers(const VectorClock& later, const VectorClock& earlier) {
  for (std::size_t q = 0; q < earlier.size(); ++q)
    if (earlier[q] > (q < later.size() ? later[q] : 0)) return false;
  return true;
}

void join(VectorClock& into, const VectorClock& other) {
  into.resize(std::max(into.size(), other.size()), 0);
  for (std::size_t q = 0; q < other.size(); ++q) into[q] = std::max(into[q], other[q]);
}

int Queues::add(cudaStream_t stream, int gpu) {
  queues_.push_back({stream, gpu, {}, {}});
  for (Queue& q : queues_) q.clock.resize(queues_.size(), 0);
  return size() - 1;
}

int Queues::with(cudaStream_t stream) const {
  const auto it = std::find_if(queues_.begin(), queues_.end(), [&](const Queue& q) { return q.stream == stream; });
  STAGECRAFT_CHECK(it != queues_.end());
  return static_cast<int>(it - queues_.begin());
}

void Queues::select(int queue) const { check(cudaSetDevice(gpu(queue)), "cudaSetDevice"); }

void Queues::wait(int queue, Point point) {
  Queue& q = queues_[queue];
  if (point.number == 0 || point.queue == queue) return;
  if (q.clock[point.queue] >= point.number) return;
  const Queue& other = at(point.queue);
  STAGECRAFT_CHECK(point.number <= other.ended.size());  // A wait for what is not recorded yet would do nothing.
  if (recorder_) {
    recorder_->wait(queue, point);
    return join(q.clock, other.ended[point.number - 1].clock);
  }
  const Ended& ended = recorded(point);
  if (&ended >= other.ended.data() + other.over) ended.event->hold_up(q.stream);
  join(q.clock, ended.clock);
}

/// The piece, or the next of its queue whose end was recorded; where there is none, the end of the queue as it is now.
const Queues::Ended& Queues::recorded(Point point) {
  Queue& q = queues_[point.queue];
  for (std::size_t n = point.number - 1; n < q.ended.size(); ++n)
    if (q.ended[n].event) return q.ended[n];
  int before = 0;
  check(cudaGetDevice(&before), "cudaGetDevice");
  select(point.queue);
  std::vector<Event*>& unused = unused_[gpu(point.queue)];
  if (unused.empty()) unused.push_back(&late_.emplace_back());
  Event* const event = unused.back();
  unused.pop_back();
  event->record(q.stream);
  q.ended.back().event = q.ended.back().late = event;
  check(cudaSetDevice(before), "cudaSetDevice");
  return q.ended.back();
}

void Queues::wait(int queue, const VectorClock& moment) {
  for (std::size_t other = 0; other < moment.size(); ++other)
    wait(queue, Point{static_cast<int>(other), moment[other]});
}

Point Queues::end(int queue, const Event* event) {
  Queue& q = queues_[queue];
  if (event) event->record(q.stream);
  q.clock = reached(queue);
  q.ended.push_back({event, q.clock});
  const Point point{queue, static_cast<std::uint32_t>(q.ended.size())};
  if (recorder_) recorder_->end(point);
  return point;
}

VectorClock Queues::reached(int queue) const {
  VectorClock moment = at(queue).clock;
  moment[queue] = newest(queue, true);
  return moment;
}

void Queues::set_over(Point point) {
  Queue& q = queues_[point.queue];
  for (; q.over < point.number; ++q.over)
    if (Event* const late = q.ended[q.over].late) unused_[q.gpu].push_back(late);
}

void Queues::forget() {
  for (int q = 0; q < size(); ++q) set_over({q, newest(q, false)});
  for (Queue& q : queues_) {
    q.over = 0;
    std::fill(q.clock.begin(), q.clock.end(), 0);
    q.ended.clear();
  }
}

}  // namespace stagecraft::cuda
