// Sums of gradients over replicas: on the stream of the first, in the order of the CPU; or by NCCL on all of theirs.
#include "backends/cuda/enqueue.hpp"

namespace stagecraft::cuda {

/// Members whose memory goes through NCCL have streams of their own in it; of the others those wait for the end. What
/// members wait for comes before all of them, so the first stands for all.
void Enqueuer::reduce(int collective, InstructionId id) {
  const Collective& c = p_.collectives[collective];
  if (id != c.first) return;
  if (ranks_ && ranks_->sums()) return all_reduce(collective);
  const Instruction& first = p_.at(c.first);
  std::vector<InstructionId> near, far;  // Those near the first are where it is.
  for (int m = 0; m < c.members; ++m) {
    const InstructionId member{c.first + m};
    if (here(p_.at(member))) (apart(c.first, member) ? far : near).push_back(member);
  }
  const int queue = here(first) ? queue_of(first, DeviceId{}) : -1;
  if (here(first)) begin(queue, near);
  for (const InstructionId m : near) work_on(p_.at(m).device, queue);
  for (const InstructionId m : far) {
    const int own = queue_of(p_.at(m), DeviceId{});
    begin(own, {m});
    work_on(p_.at(m).device, own);
  }
  add_up(collective);
  if (here(first)) end(queue, near);
  for (const InstructionId m : near) {
    const int own = queue_of(p_.at(m), DeviceId{});
    work_alone(p_.at(m).device);
    yard_.queues().select(own);
    yard_.queues().wait(own, ended_[m]);
  }
  for (const InstructionId m : far) {
    end(queue_of(p_.at(m), DeviceId{}), {m});
    work_alone(p_.at(m).device);
  }
}

/// On a stream of each member, and in the place of its gradient.
void Enqueuer::all_reduce(int collective) {
  const Collective& c = p_.collectives[collective];
  std::vector<std::pair<InstructionId, int>> members;
  std::vector<Summand> summands;
  for (int m = 0; m < c.members; ++m) {
    const InstructionId member{c.first + m};
    const Instruction& i = p_.at(member);
    if (!here(i)) continue;
    const int own = members.emplace_back(member, queue_of(i, DeviceId{})).second;
    begin(own, {member});
    work_on(i.device, own);
    const real::Tensor gradient = session_->gradient(member);
    summands.push_back(
        {i.device, gradient.data, static_cast<std::size_t>(gradient.size()), yard_.queues().stream(own)});
  }
  if (summands.empty()) return;
  ranks_->sum(collective, yard_.width(), summands);
  for (const auto& [member, own] : members) {
    end(own, {member});
    work_alone(p_.at(member).device);
  }
}

/// One share after another comes to the first, so that the order of the additions is that of the members, and the sum
/// goes back to all.
void Enqueuer::add_up(int collective) {
  const Collective& c = p_.collectives[collective];
  const InstructionId first = c.first;
  const bool adds = here(p_.at(first));
  const std::size_t bytes = session_->share_bytes(first);
  bool all_reach = adds;
  for (int m = 1; m < c.members && all_reach; ++m) all_reach = reaches(first, InstructionId{first + m});
  if (all_reach) return session_->reduce(collective);

  const real::Tensor total = adds ? session_->gradient(first) : real::Tensor{};
  const auto release = [&](void* part) { session_->kernels(p_.at(first).device).release(part, bytes); };
  const std::unique_ptr<void, decltype(release)> part(
      adds ? session_->kernels(p_.at(first).device).allocate(bytes) : nullptr, release);
  for (int m = 1; m < c.members; ++m) {
    const InstructionId member{first + m};
    const bool direct = adds && reaches(first, member);
    const real::Tensor share = here(p_.at(member)) ? session_->gradient(member) : real::Tensor{};
    if (!direct) hand(collective, member, first, share.data, part.get(), bytes);
    if (adds)
      session_->kernels(p_.at(first).device)
          .add(direct ? share : real::Tensor{part.get(), total.rows, total.columns}, total);
  }
  for (int m = 1; m < c.members; ++m) {
    const InstructionId member{first + m};
    const real::Tensor share = here(p_.at(member)) ? session_->gradient(member) : real::Tensor{};
    hand(collective, first, member, total.data, share.data, bytes);
  }
}

/// From one member to another, whichever of them is here.
void Enqueuer::hand(int collective, InstructionId from, InstructionId to, void* data, void* target, std::size_t bytes) {
  const DeviceId a = p_.at(from).device, b = p_.at(to).device;
  const auto stream = [&](DeviceId d) { return yard_.queues().stream(yard_.used(device(d))); };
  if (!apart(from, to)) {
    if (data && target) copy_between(device(a), device(b), data, target, bytes, stream(a));
    return;
  }
  std::vector<Half> halves;
  if (data) halves.push_back({a, b, data, bytes, true, stream(a)});
  if (target) halves.push_back({b, a, target, bytes, false, stream(b)});
  if (!halves.empty()) ranks_->share(collective, halves);
}

void Enqueuer::copy_between(int from, int to, const void* data, void* target, std::size_t bytes, cudaStream_t stream) {
  const auto copy = [=, to = yard_.devices().gpu(to), from = yard_.devices().gpu(from)] {
    check(cudaMemcpyPeerAsync(target, to, data, from, bytes, stream), "cudaMemcpyPeerAsync");
  };
  if (Tape* const tape = yard_.tape()) return tape->work(yard_.used(from), copy, Copied{data, target, bytes});
  copy();
}

bool Enqueuer::apart(InstructionId a, InstructionId b) const {
  return ranks_ && ranks_->apart(p_.at(a).device, p_.at(b).device);
}

bool Enqueuer::reaches(InstructionId a, InstructionId b) const {
  return !apart(a, b) && yard_.devices().reaches(device(p_.at(a).device), device(p_.at(b).device));
}

}  // namespace stagecraft::cuda
