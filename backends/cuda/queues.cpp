#include "backends/cuda/queues.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

bool covers(const Moment& later, const Moment& earlier) {
  for (std::size_t q = 0; q < earlier.size(); ++q)
    if (earlier[q] > (q < later.size() ? later[q] : 0)) return false;
  return true;
}

void join(Moment& into, const Moment& other) {
  into.resize(std::max(into.size(), other.size()), 0);
  for (std::size_t q = 0; q < other.size(); ++q) into[q] = std::max(into[q], other[q]);
}

int Queues::add(cudaStream_t stream, int gpu) {
  queues_.push_back({stream, gpu, {}, {}});
  for (Queue& q : queues_) q.known.resize(queues_.size(), 0);
  return size() - 1;
}

void Queues::select(int queue) const { check(cudaSetDevice(gpu(queue)), "cudaSetDevice"); }

void Queues::wait(int queue, Point point) {
  Queue& q = queues_[static_cast<std::size_t>(queue)];
  if (point.number == 0 || point.queue == queue) return;
  if (q.known[static_cast<std::size_t>(point.queue)] >= point.number) return;
  const Queue& other = at(point.queue);
  STAGECRAFT_CHECK(point.number <= other.ended.size());  // A wait for what is not recorded yet would do nothing.
  const Ended& ended = other.ended[point.number - 1];
  ended.event->hold_up(q.stream);
  join(q.known, ended.known);
}

void Queues::wait(int queue, const Moment& moment) {
  for (std::size_t other = 0; other < moment.size(); ++other)
    wait(queue, Point{static_cast<int>(other), moment[other]});
}

Point Queues::end(int queue, const Event& event) {
  Queue& q = queues_[static_cast<std::size_t>(queue)];
  event.record(q.stream);
  q.known = reached(queue);
  q.ended.push_back({&event, q.known});
  return {queue, static_cast<std::uint32_t>(q.ended.size())};
}

Moment Queues::reached(int queue) const {
  Moment moment = at(queue).known;
  moment[static_cast<std::size_t>(queue)] = newest(queue, true);
  return moment;
}

void Queues::forget() {
  for (Queue& q : queues_) {
    std::fill(q.known.begin(), q.known.end(), 0);
    q.ended.clear();
  }
}

}  // namespace stagecraft::cuda
