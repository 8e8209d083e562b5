#include "backends/cuda/enqueue.hpp"

#include <algorithm>

namespace stagecraft::cuda {

Enqueuer::Enqueuer(const Program& program, Yard& yard, const std::vector<int>& devices, Messages& messages,
                   EnqueueOptions options)
    : p_(program),
      yard_(yard),
      devices_(devices),
      messages_(messages),
      options_(std::move(options)),
      ended_(program.size()) {
  open_queues();
}

/// Before anything runs: kernels and streams take their time to be made.
void Enqueuer::open_queues() {
  for (const Stream& s : p_.streams) {
    const bool computes = s.kind == StreamKind::Compute;
    const bool used = device(s.device) >= 0;
    queue_of_stream_.push_back(!used      ? -1
                               : computes ? yard_.compute_queue(device(s.device))
                                          : yard_.new_queue(device(s.device), true));
  }
  for (const Transfer& t : p_.transfers) {
    queue_of(p_.at(t.send), p_.at(t.receive).device);
    queue_of(p_.at(t.receive), p_.at(t.send).device);
  }
  for (const Collective& c : p_.collectives)
    for (int m = 0; m < c.members; ++m) yard_.kernels(queue_of(p_.at(InstructionId{c.first + m}), DeviceId{}));
}

/// Messages in no stream do not wait for each other in the program; here those of one direction between two devices do.
int Enqueuer::queue_of(const Instruction& i, DeviceId peer) {
  if (i.stream.valid()) return queue_of_stream_[static_cast<std::size_t>(i.stream)];
  const bool sends = i.kind == InstructionKind::Send;
  const auto [it, fresh] =
      free_queues_.try_emplace({2 * static_cast<int>(i.device.value) + sends, static_cast<int>(peer.value)});
  if (fresh) it->second = yard_.new_queue(device(i.device), true);
  return it->second;
}

void Enqueuer::run(real::Session& session, Marks& marks, std::size_t count) {
  session_ = &session;
  marks_ = &marks;
  ended_.assign(p_.size(), {});
  marks.gates.clear();
  marks.events.clear();
  marks.start.assign(p_.size(), nullptr);
  marks.end.assign(p_.size(), nullptr);
  marks.of_queue.assign(static_cast<std::size_t>(yard_.queues().size()), {});
  marks.gpu.assign(p_.size(), 0);
  open_gates();
  for (std::size_t n = 0; n < count; ++n) {
    const InstructionId id{static_cast<std::int64_t>(n)};
    const Instruction& i = p_.instructions[n];
    if (i.is_compute())
      compute(id);
    else if (i.kind == InstructionKind::AllReduce)
      reduce(i.link);
    else if (!p_.rendezvous)
      i.kind == InstructionKind::Send ? send(i.link) : receive(i.link);
    else if (i.kind == InstructionKind::Send)
      rendezvous(i.link);
  }
}

/// The first queue's first, then one on each other GPU, then all queues.
void Enqueuer::open_gates() {
  Queues& queues = yard_.queues();
  std::vector<Point> gates;
  for (int q = 0; q < queues.size(); ++q) {
    queues.select(q);
    const auto gpu = static_cast<std::size_t>(queues.gpu(q));
    queues.wait(q, gpu < gates.size() ? gates[gpu] : gates.empty() ? Point{} : gates.front());
    if (gpu < gates.size()) continue;
    marks_->gates.push_back(mark(q, true));
    gates.push_back(queues.end(q, *marks_->gates.back()));
  }
}

void Enqueuer::behind(int queue, InstructionId id) {
  for (const InstructionId w : p_.waits_for(id)) yard_.queues().wait(queue, ended_[static_cast<std::size_t>(w)]);
}

const Event* Enqueuer::mark(int queue, bool timed) {
  yard_.queues().select(queue);
  return &marks_->events.emplace_back(timed ? cudaEventDefault : cudaEventDisableTiming);
}

void Enqueuer::begin(int queue, const std::vector<InstructionId>& instructions) {
  if (options_.keep_up) options_.keep_up(queue);
  yard_.queues().select(queue);
  for (const InstructionId id : instructions) behind(queue, id);
  if (!options_.timed) return;
  const Event* const start = mark(queue, true);
  start->record(yard_.queues().stream(queue));
  for (const InstructionId id : instructions) marks_->start[static_cast<std::size_t>(id)] = start;
}

void Enqueuer::end(int queue, const std::vector<InstructionId>& instructions) {
  const Event* const end = mark(queue, options_.timed);
  const Point point = yard_.queues().end(queue, *end);
  for (const InstructionId id : instructions) {
    marks_->end[static_cast<std::size_t>(id)] = end;
    marks_->gpu[static_cast<std::size_t>(id)] = yard_.queues().gpu(queue);
    ended_[static_cast<std::size_t>(id)] = point;
    marks_->of_queue[static_cast<std::size_t>(queue)].push_back(static_cast<int>(id.value));
  }
}

void Enqueuer::compute(InstructionId id) {
  const int queue = yard_.compute_queue(device(p_.at(id).device));
  begin(queue, {id});
  session_->compute(id);
  end(queue, {id});
}

void Enqueuer::carry(int transfer, int queue) {
  const Transfer& t = p_.transfers[static_cast<std::size_t>(transfer)];
  const int from = device(p_.at(t.send).device), to = device(p_.at(t.receive).device);
  const cudaStream_t stream = yard_.queues().stream(queue);
  yard_.use(from, queue);
  yard_.use(to, queue);
  messages_.message(transfer, stream, [&] {
    session_->carry(transfer, [&](const void* data, void* target, std::size_t bytes) {
      yard_.settle(queue, target);
      yard_.hold(queue, data);
      messages_.copy(data, target, bytes, stream);
    });
  });
  yard_.use(from, yard_.compute_queue(from));
  yard_.use(to, yard_.compute_queue(to));
}

/// On the stream of the receiver, as NCCL does it; that of the sender waits for the end.
void Enqueuer::rendezvous(int transfer) {
  const Transfer& t = p_.transfers[static_cast<std::size_t>(transfer)];
  const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
  const int queue = queue_of(r, s.device), other = queue_of(s, r.device);
  begin(queue, {t.send, t.receive});
  carry(transfer, queue);
  end(queue, {t.send, t.receive});
  yard_.queues().select(other);
  yard_.queues().wait(other, ended_[static_cast<std::size_t>(t.send)]);
}

void Enqueuer::send(int transfer) {
  const Transfer& t = p_.transfers[static_cast<std::size_t>(transfer)];
  const int queue = queue_of(p_.at(t.send), p_.at(t.receive).device);
  begin(queue, {t.send});
  carry(transfer, queue);
  end(queue, {t.send});
}

void Enqueuer::receive(int transfer) {
  const Transfer& t = p_.transfers[static_cast<std::size_t>(transfer)];
  const int queue = queue_of(p_.at(t.receive), p_.at(t.send).device);
  begin(queue, {t.receive});
  yard_.queues().wait(queue, ended_[static_cast<std::size_t>(t.send)]);
  end(queue, {t.receive});
}

/// On the stream of the first member; those of the others wait for the end. Called for each of them, which the first
/// time is early enough: what members wait for comes before all of them.
void Enqueuer::reduce(int collective) {
  const Collective& c = p_.collectives[static_cast<std::size_t>(collective)];
  if (ended_[static_cast<std::size_t>(c.first)].number > 0) return;
  std::vector<InstructionId> members;
  for (int m = 0; m < c.members; ++m) members.emplace_back(c.first + m);
  const int queue = queue_of(p_.at(c.first), DeviceId{});
  begin(queue, members);
  for (const InstructionId m : members) yard_.use(device(p_.at(m).device), queue);
  session_->reduce(collective);
  end(queue, members);
  for (const InstructionId m : members) {
    const int d = device(p_.at(m).device), own = queue_of(p_.at(m), DeviceId{});
    yard_.use(d, yard_.compute_queue(d));
    yard_.queues().select(own);
    yard_.queues().wait(own, ended_[static_cast<std::size_t>(m)]);
  }
}

}  // namespace stagecraft::cuda
