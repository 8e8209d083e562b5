// Puts the instructions of a Program into CUDA streams: waits, start event, work, end event. The order is the program's
// or, with groups of devices, the one of enqueue_order.cpp.

#include "backends/cuda/enqueue.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>
#include <nvtx3/nvToolsExt.h>

#include "backends/real/host_copies.hpp"

namespace stagecraft::cuda {

Enqueuer::Enqueuer(const Program& program, GpuRuntime& runtime, const std::vector<int>& devices, Messages& messages,
                   EnqueueOptions options, NcclCommunicators* ranks)
    : p_(program),
      runtime_(runtime),
      devices_(devices),
      messages_(messages),
      ranks_(ranks),
      threads_(runtime.launch_limit()),
      options_(std::move(options)),
      ended_(program.size()) {
  open_queues();
}

/// Before anything runs: kernels and streams take their time to be made.
void Enqueuer::open_queues() {
  const IdVector<StreamId, StreamId> receivers = streams_that_carry();
  for (const StreamId s : p_.streams.ids()) {
    const Stream& stream = p_.streams[s];
    const bool computes = stream.kind == StreamKind::Compute;
    const bool used = device(stream.device) >= 0 && !receivers[s].valid();
    queue_of_stream_.push_back(!used      ? -1
                               : computes ? runtime_.compute_queue(device(stream.device))
                                          : runtime_.new_queue(device(stream.device), true));
  }
  for (const StreamId s : p_.streams.ids())
    if (receivers[s].valid()) queue_of_stream_[s] = queue_of_stream_[receivers[s]];
  for (const Transfer& t : p_.transfers) {
    const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
    if (here(r)) queue_of(r, s.device);
    if (here(s) && !s.stream.valid() && !r.stream.valid() && here(r) && !apart(t) && p_.rendezvous)
      free_queues_.try_emplace(free_key(s.device, r.device, true), queue_of(r, s.device));  // It would only wait.
    if (here(s)) queue_of(s, r.device);
    if (here(r) && !p_.rendezvous && apart(t)) free_queue(r.device, s.device, false);
  }
  for (const CollectiveCall& c : p_.collectives)
    for (int m = 0; m < c.members; ++m)
      if (const Instruction& i = p_.at(c.member(m)); here(i)) runtime_.kernels(queue_of(i, DeviceId{}));
}

/// The stream that carries all messages of a sender's stream, where the sender's does nothing but wait for their end: a
/// rendezvous within one process runs on the receiver's stream. Both are then one queue. That takes a stream of the
/// receiver which carries nothing else, so that no message waits for another one's.
IdVector<StreamId, StreamId> Enqueuer::streams_that_carry() const {
  IdVector<StreamId, StreamId> carried(p_.streams.size(), StreamId{}), sender(p_.streams.size(), StreamId{});
  IdVector<StreamId, bool> alone(p_.streams.size(), p_.rendezvous);
  for (const Transfer& t : p_.transfers) {
    const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
    for (const StreamId end : {s.stream, r.stream})
      if (end.valid() && (!s.stream.valid() || !r.stream.valid() || apart(t) || !here(s) || !here(r)))
        alone[end] = false;
    if (!s.stream.valid() || !r.stream.valid()) continue;
    const bool first = !carried[s.stream].valid() && !sender[r.stream].valid();
    if (first) carried[s.stream] = r.stream, sender[r.stream] = s.stream;
    if (carried[s.stream] != r.stream || sender[r.stream] != s.stream) alone[s.stream] = alone[r.stream] = false;
  }
  for (const Instruction& i : p_.instructions)  // Streams of computation or sums, or that send and receive.
    if (i.stream.valid() && (i.is_compute() || i.kind == InstructionKind::Collective)) alone[i.stream] = false;
  for (const StreamId s : p_.streams.ids()) {
    const StreamId r = carried[s];
    if (r.valid() && (!alone[s] || !alone[r] || carried[r].valid() || sender[s].valid() || r == s))
      carried[s] = StreamId{};
  }
  return carried;
}

/// The program lets messages without a stream overtake each other; here, each direction between two devices is a queue.
int Enqueuer::queue_of(const Instruction& i, DeviceId peer) {
  if (i.stream.valid()) return queue_of_stream_[i.stream];
  return free_queue(i.device, peer, i.kind == InstructionKind::Send);
}

int Enqueuer::free_queue(DeviceId local, DeviceId peer, bool sends) {
  const auto [it, fresh] = free_queues_.try_emplace(free_key(local, peer, sends));
  if (fresh) it->second = runtime_.new_queue(device(local), true);
  return it->second;
}

namespace {

/// Program order, but each copy of a stash right after all that it waits for: memory is taken and given back when work
/// is enqueued. The copies of a stream stay in their order.
std::vector<InstructionId> with_early_copies(const Program& p, std::vector<InstructionId> order) {
  std::map<DeviceId, std::map<StreamId, std::deque<InstructionId>>> waiting;
  for (const InstructionId id : order)
    if (real::is_host_copy(p, p.at(id))) waiting[p.at(id).device][p.at(id).stream].push_back(id);
  if (waiting.empty()) return order;
  IdVector<InstructionId, bool> done(p.size(), false);
  std::vector<InstructionId> early;
  const auto add = [&](InstructionId id) { early.push_back(id), done[id] = true; };
  const auto is_ready = [&](InstructionId id) {
    const auto waits = p.waits_for(id);
    return std::all_of(waits.begin(), waits.end(), [&](InstructionId on) { return done[on]; });
  };
  for (const InstructionId id : order) {
    if (real::is_host_copy(p, p.at(id))) continue;
    add(id);
    for (bool moved = true; moved;) {
      moved = false;
      for (auto& [stream, copies] : waiting[p.at(id).device])
        for (; !copies.empty() && is_ready(copies.front()); copies.pop_front(), moved = true) add(copies.front());
    }
  }
  STAGECRAFT_CHECK(early.size() == order.size());  // Whatever a copy waits for is on its device, so none is left.
  return early;
}

}  // namespace

/// Not all members of a group come to an exchange in a part of a program, unless that is the first iteration: schedules
/// of groups end one before the next begins to change weights.
void Enqueuer::run(real::Session& session, InstructionEvents& events, std::size_t count) {
  open(session, events);
  const bool is_part = count < p_.size();
  std::vector<InstructionId> instructions;
  for (std::size_t n = 0; n < count; ++n)
    if (const InstructionId id{n}; !(has_groups_ && is_part && p_.iteration_of(p_.at(id)) > 0))
      instructions.push_back(id);
  put(with_early_copies(p_, std::move(instructions)));
}

void Enqueuer::open(real::Session& session, InstructionEvents& events) {
  session_ = &session;
  session.when_part_done([this](InstructionId c, InstructionId member) { end_part(c, member); });
  parts_done_.clear();
  events_ = &events;
  ended_.assign(p_.size(), {});
  arrived_.assign(p_.transfers.size(), {});
  fresh_.clear();
  unmarked_.assign(runtime_.queues().size(), {});
  events.reset(p_.size(), runtime_.queues().size());
  newest_ = 0;
  open_gates();
  events.reader = std::make_shared<EventReader>(p_, events, options_.ends);
}

/// Work that is over is not waited for, so its events may be recorded for something else.
void Enqueuer::read_finished(InstructionId next) {
  events_->reader->read_finished(next, [this](InstructionId n) {
    runtime_.queues().set_over(ended_[n.value]);
    if (const Instruction& i = p_.at(n); i.kind == InstructionKind::Receive)
      runtime_.queues().set_over(arrived_[i.transfer()]);
  });
}

namespace {

/// A range for profilers such as Nsight Systems, around the calls of one instruction: "F3 of stage 1".
class NamedRange {
 public:
  explicit NamedRange(const Instruction& i) {
    std::array<char, 64> text{};
    if (i.is_compute())
      fmt::format_to_n(text.data(), text.size() - 1, "{}{} of stage {}", letter(i.kind), i.number, i.stage.value);
    else
      fmt::format_to_n(text.data(), text.size() - 1, "{} on device {}", kind_text(i.kind), i.device.value);
    nvtxRangePushA(text.data());
  }
  NamedRange(const NamedRange&) = delete;
  NamedRange& operator=(const NamedRange&) = delete;
  ~NamedRange() { nvtxRangePop(); }

 private:
  static const char* kind_text(InstructionKind kind) {
    return kind == InstructionKind::Send ? "send" : kind == InstructionKind::Receive ? "receive" : "sum";
  }
};

}  // namespace

void Enqueuer::put(InstructionId id) {
  const Instruction& i = p_.at(id);
  const NamedRange range(i);
  if (const int iteration = p_.iteration_of(i); iteration > newest_ && !runtime_.recorder()) {
    newest_ = iteration;
    read_finished(id);
  }
  if (i.is_compute() && here(i))
    compute(id);
  else if (i.kind == InstructionKind::Collective)
    collective(i.collective(), id);
  else if (i.kind == InstructionKind::Send)
    p_.rendezvous ? rendezvous(i.transfer()) : send(i.transfer());
  else if (i.kind == InstructionKind::Receive && !p_.rendezvous)
    receive(i.transfer());
}

void Enqueuer::repeat(InstructionId id) {
  session_->repeat(id);
  unmarked_.front().push_back(static_cast<int>(id.value));
  events_->gpu[id.value] = runtime_.queues().gpu(0);
}

/// The gate of the first queue opens first, then one gate on each other GPU, then all queues.
void Enqueuer::open_gates() {
  Queues& queues = runtime_.queues();
  std::map<int, Point> gates;
  for (int q = 0; q < queues.size(); ++q) {
    queues.select(q);
    const int gpu = queues.gpu(q);
    const auto it = gates.find(gpu);
    queues.wait(q, it != gates.end() ? it->second : gates.empty() ? Point{} : gates.begin()->second);
    if (it != gates.end()) continue;
    events_->start_events.resize(std::max(events_->start_events.size(), static_cast<std::size_t>(gpu) + 1), nullptr);
    SharedEvent* const gate = events_->start_events[gpu] = mark(q, true);
    EventPool::hold(gate);
    gates[gpu] = queues.end(q, *gate);
  }
}

void Enqueuer::wait_for_inputs(int queue, InstructionId id) {
  for (const InstructionId w : p_.waits_for(id)) {
    const auto part = parts_done_.find({w, id});
    runtime_.queues().wait(queue, part == parts_done_.end() ? ended_[w.value] : part->second);
  }
}

SharedEvent* Enqueuer::mark(int queue, bool timed) {
  runtime_.queues().select(queue);
  return events_->pool.take(runtime_.queues().gpu(queue), timed);
}

/// An event for waits, which is released with the events of the instruction.
SharedEvent* Enqueuer::mark_inside(int queue, InstructionId id) {
  SharedEvent* const event = mark(queue, false);
  EventPool::hold(event);
  events_->others[p_.iteration_of(p_.at(id))].push_back(event);
  return event;
}

void Enqueuer::begin(int queue, const std::vector<InstructionId>& instructions) {
  if (!runtime_.recorder()) keep_up(queue);
  runtime_.queues().select(queue);
  for (const InstructionId id : instructions) wait_for_inputs(queue, id);
  if (!options_.timed) return;
  SharedEvent* const start = mark(queue, true);
  EventPool::hold(start, static_cast<int>(instructions.size()));
  start->record(runtime_.queues().stream(queue));
  for (const InstructionId id : instructions) events_->start[id.value] = start;
}

void Enqueuer::end(int queue, const std::vector<InstructionId>& instructions) {
  EndEvent wanted = options_.timed ? EndEvent::Timed : EndEvent::None;
  std::vector<int>& unmarked = unmarked_[queue];
  for (const InstructionId id : instructions) {
    if (!options_.ends.empty()) wanted = std::max(wanted, options_.ends[id.value]);
    unmarked.push_back(static_cast<int>(id.value));
  }
  const bool none = wanted == EndEvent::None || runtime_.recorder();
  SharedEvent* const end = none ? nullptr : mark(queue, wanted == EndEvent::Timed);
  const Point point = runtime_.queues().end(queue, end);
  for (const InstructionId id : instructions) {
    events_->gpu[id.value] = runtime_.queues().gpu(queue);
    ended_[id.value] = point;
    fresh_.push_back(static_cast<int>(id.value));
  }
  if (!end) return;
  EventPool::hold(end, static_cast<int>(unmarked.size()));
  for (const int n : unmarked) {
    events_->end[n] = end;
    events_->of_queue[queue].push_back(n);
  }
  unmarked.clear();
}

void Enqueuer::keep_up(int queue) {
  if (!options_.keep_up) return;
  const double begin = thread_seconds();
  options_.keep_up(queue);
  waited_ += thread_seconds() - begin;
}

void Enqueuer::barrier(bool ends_iteration) {
  Queues& queues = runtime_.queues();
  for (int q = 1; q < queues.size(); ++q) {
    SharedEvent* const end = mark(q, false);
    EventPool::hold(end);
    const Point point = queues.end(q, end);
    queues.select(0);
    queues.wait(0, point);
    events_->pool.release(end);  // A wait is for what was recorded before it.
  }
  SharedEvent* const event = mark(0, ends_iteration);
  EventPool::hold(event);
  const Point point = queues.end(0, event);
  for (int q = 1; q < queues.size(); ++q) {
    queues.select(q);
    queues.wait(q, point);
  }
  runtime_.forget();
  int last = -1;
  for (std::vector<int>& unmarked : unmarked_) {
    for (const int n : unmarked) events_->end[last = n] = event;
    EventPool::hold(event, static_cast<int>(unmarked.size()));
    unmarked.clear();
  }
  if (last >= 0) events_->of_queue.front().push_back(last);
  for (const int n : fresh_) ended_[n] = {};
  fresh_.clear();
  parts_done_.clear();
  if (ends_iteration)
    events_->iterations.push_back(event), events_->gpu_of_barriers = queues.gpu(0);
  else
    events_->pool.release(event);
}

void Enqueuer::compute(InstructionId id) {
  const int queue = runtime_.compute_queue(device(p_.at(id).device));
  begin(queue, {id});
  session_->compute(id);
  end(queue, {id});
}

/// A bucket of gradients is summed next to the rest of the backward.
void Enqueuer::end_part(InstructionId computation, InstructionId member) {
  const int queue = runtime_.compute_queue(device(p_.at(computation).device));
  const Event* const event = runtime_.recorder() ? nullptr : mark_inside(queue, computation);
  parts_done_[{computation, member}] = runtime_.queues().end(queue, event);
}

}  // namespace stagecraft::cuda
