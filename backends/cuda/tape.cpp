#include "backends/cuda/tape.hpp"

#include <map>

#include "backends/cuda/queues.hpp"

namespace stagecraft::cuda {

void Tape::wait(int queue, Point point) {
  note(-1);
  note(queue);
  note(point.queue);
  note(static_cast<std::uint64_t>(point.number));
  awaited_.insert(point);
  entries_.push_back({queue, point, {}});
}

void Tape::end(Point point) {
  note(-2);
  note(point.queue);
  entries_.push_back({point.queue, point, {}});
}

std::set<int> Tape::queues() const {
  std::set<int> used;
  for (const Entry& e : entries_) used.insert(e.queue);
  return used;
}

void Tape::play(const Queues& queues) const {
  std::map<Point, Event> events;
  int current = -1;
  for (const Entry& e : entries_) {
    if (e.queue != current) queues.select(current = e.queue);
    const cudaStream_t stream = queues.stream(e.queue);
    if (e.play)
      e.play();
    else if (e.point.queue != e.queue)
      events.at(e.point).hold_up(stream);
    else if (awaited_.contains(e.point))
      events.try_emplace(e.point).first->second.record(stream);
  }
}

void Tape::note(const Copied& copied) {
  note(copied.from);
  note(copied.to);
  note(static_cast<std::uint64_t>(copied.bytes));
}

void Tape::note(const real::Tensor& tensor) {
  note(tensor.data);
  note(tensor.rows);
  note(tensor.columns);
}

void Tape::note(const real::Call& call) {
  note(static_cast<const void*>(call.operation));
  note(call.samples);
  note(static_cast<std::uint64_t>(call.inputs.size()));
  for (const real::Tensor& input : call.inputs) note(input);
  note(call.weights);
  note(call.output);
  note(call.saved);
  note(call.scale);
}

void Tape::note(const real::OptimizerState& state) {
  for (const void* const place : {state.first, state.second, state.last, state.bare, state.average, state.counter})
    note(place);
  note(state.steps);
}

void Tape::note(const real::UpdateOptions& options) {
  note(options.rate_scale);
  note(options.delay);
  note(static_cast<int>(options.spike_compensation));
  note(static_cast<int>(options.reconstruction));
}

}  // namespace stagecraft::cuda
