// How an Enqueuer puts messages between devices into queues: as copies, and as calls of NCCL where the ends are apart.
#include <algorithm>

#include "backends/cuda/enqueue.hpp"

namespace stagecraft::cuda {

void Enqueuer::carry(int transfer, int queue) {
  const Transfer& t = p_.transfers[transfer];
  const DeviceId from = p_.at(t.send).device, to = p_.at(t.receive).device;
  const cudaStream_t stream = runtime_.queues().stream(queue);
  work_on(from, queue);
  work_on(to, queue);
  std::vector<Copied> copies;
  session_->carry(transfer, [&](const void* data, void* target, std::size_t bytes) {
    runtime_.wait_for_users(queue, target);
    runtime_.hold(queue, data);
    copies.push_back({data, target, bytes});
  });
  const auto move = [this, transfer, stream, copies] {
    messages_.message(transfer, stream, [&] {
      for (const Copied& c : copies) messages_.copy(c.from, c.to, c.bytes, stream);
    });
  };
  if (CommandRecorder* const recorder = runtime_.recorder()) {
    recorder->work(queue, move, device(from), device(to));
    for (const Copied& c : copies) recorder->note(c);
  } else {
    move();
  }
  work_alone(from);
  work_alone(to);
}

/// The ends that are here, each on its own queue; -1: it is elsewhere.
void Enqueuer::carry_apart(int transfer, int sender, int receiver) {
  const Transfer& t = p_.transfers[transfer];
  const DeviceId from = p_.at(t.send).device, to = p_.at(t.receive).device;
  std::vector<MessageEnd> ends;
  if (sender >= 0) {
    work_on(from, sender);
    session_->give(transfer, [&](void* data, std::size_t bytes) {
      runtime_.hold(sender, data);
      ends.push_back({from, to, data, bytes, true, runtime_.queues().stream(sender)});
    });
    work_alone(from);
  }
  if (receiver >= 0) {
    work_on(to, receiver);
    session_->take(transfer, [&](void* data, std::size_t bytes) {
      runtime_.wait_for_users(receiver, data);
      ends.push_back({to, from, data, bytes, false, runtime_.queues().stream(receiver)});
    });
    work_alone(to);
  }
  call_nccl(ends, [this, transfer, ends] { ranks_->carry(transfer, ends); });
}

/// Calls NCCL now, or when the recorded work is enqueued.
void Enqueuer::call_nccl(const std::vector<MessageEnd>& ends, std::function<void()> calls) {
  CommandRecorder* const recorder = runtime_.recorder();
  if (!recorder) return calls();
  std::vector<int> queues;
  for (const MessageEnd& h : ends)
    if (const int q = runtime_.queues().with(h.stream); std::find(queues.begin(), queues.end(), q) == queues.end())
      queues.push_back(q);
  recorder->nccl(queues, std::move(calls));
  for (const MessageEnd& h : ends) {
    for (const int number : {h.here.value, h.there.value, static_cast<int>(h.sends)}) recorder->note(number);
    recorder->note(static_cast<const void*>(h.data));
    recorder->note(static_cast<std::uint64_t>(h.bytes));
  }
}

void Enqueuer::rendezvous(int transfer) {
  const Transfer& t = p_.transfers[transfer];
  const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
  if (!here(s) && !here(r)) return;
  const int sender = here(s) ? queue_of(s, r.device) : -1, receiver = here(r) ? queue_of(r, s.device) : -1;
  if (apart(t)) {
    if (here(s)) begin(sender, {t.send});
    if (here(r)) begin(receiver, {t.receive});
    carry_apart(transfer, sender, receiver);
    if (here(s)) end(sender, {t.send});
    if (here(r)) end(receiver, {t.receive});
    return;
  }
  // The receiver's stream carries it, as with NCCL; the sender's stream waits for the end.
  begin(receiver, {t.send, t.receive});
  carry(transfer, receiver);
  end(receiver, {t.send, t.receive});
  runtime_.queues().select(sender);
  runtime_.queues().wait(sender, ended_[t.send.value]);
}

/// Between GPUs the receiver takes a message on a separate queue as soon as it comes, so that the sender does not wait
/// for other work of the receiver.
void Enqueuer::send(int transfer) {
  const Transfer& t = p_.transfers[transfer];
  const Instruction &s = p_.at(t.send), &r = p_.at(t.receive);
  if (!here(s) && !(here(r) && apart(t))) return;
  const int sender = here(s) ? queue_of(s, r.device) : -1;
  if (here(s)) begin(sender, {t.send});
  if (apart(t)) {
    const int receiver = here(r) ? free_queue(r.device, s.device, false) : -1;
    carry_apart(transfer, sender, receiver);
    if (here(r))
      arrived_[transfer] =
          runtime_.queues().end(receiver, runtime_.recorder() ? nullptr : mark_inside(receiver, t.receive));
  } else {
    carry(transfer, sender);
  }
  if (here(s)) end(sender, {t.send});
}

void Enqueuer::receive(int transfer) {
  const Transfer& t = p_.transfers[transfer];
  if (!here(p_.at(t.receive))) return;
  const int queue = queue_of(p_.at(t.receive), p_.at(t.send).device);
  begin(queue, {t.receive});
  runtime_.queues().wait(queue, apart(t) ? arrived_[transfer] : ended_[t.send.value]);
  end(queue, {t.receive});
}

}  // namespace stagecraft::cuda
