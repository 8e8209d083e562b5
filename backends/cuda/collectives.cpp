// How an Enqueuer puts collectives into queues: by kernels of the members, which add in the order of the CPU, or as
// all-reduces of NCCL.
#include <memory>

#include "backends/cuda/enqueue.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

/// Members that share the stream of the first wait for its end; the others have their own, because NCCL wants a stream
/// of the GPU whose memory it reads. What members wait for comes before all of them, so the first stands for all.
void Enqueuer::collective(int index, InstructionId id) {
  const CollectiveCall& c = p_.collectives[index];
  if (id != c.first) return;
  const bool is_sum =
      p_.shape(c).kind == CollectiveKind::AllReduce && !session_->only_waits(c) && c.purpose != Purpose::Vocabulary;
  if (ranks_ && ranks_->sums() && is_sum) return all_reduce(index);
  std::vector<std::vector<InstructionId>> groups;
  for (int m = 0; m < c.members; ++m) {
    if (!here(p_.at(c.member(m)))) continue;
    (!groups.empty() && shares_stream(c, m) ? groups.front() : groups.emplace_back()).push_back(c.member(m));
  }
  for (const auto& group : groups) {
    const int queue = queue_of(p_.at(group.front()), DeviceId{});
    begin(queue, group);
    for (const InstructionId m : group) work_on(p_.at(m).device, queue);
  }
  compute_results(index);
  for (const auto& group : groups) {
    end(queue_of(p_.at(group.front()), DeviceId{}), group);
    for (const InstructionId m : group) {
      const int queue = queue_of(p_.at(m), DeviceId{});
      work_alone(p_.at(m).device);
      runtime_.queues().select(queue);
      runtime_.queues().wait(queue, ended_[m.value]);
    }
  }
}

/// Whether a member shares the stream of the first member, which must be here: that one does all of the work or all of
/// the exchanging, or is on the same GPU.
bool Enqueuer::shares_stream(const CollectiveCall& c, int rank) const {
  const Instruction &first = p_.at(c.first), &member = p_.at(c.member(rank));
  if (!here(first) || apart(c.first, c.member(rank))) return false;
  const bool same_gpu = runtime_.devices().gpu(device(first.device)) == runtime_.devices().gpu(device(member.device));
  return same_gpu || real::is_computed_once(p_.shape(c).kind) || first_reaches_all(c);
}

bool Enqueuer::first_reaches_all(const CollectiveCall& c) const {
  bool reaches_all = here(p_.at(c.first));
  for (int m = 1; m < c.members && reaches_all; ++m) reaches_all = reaches(c.first, c.member(m));
  return reaches_all;
}

/// Runs on a stream of each member, in place on its gradient.
void Enqueuer::all_reduce(int collective) {
  const CollectiveCall& c = p_.collectives[collective];
  std::vector<std::pair<InstructionId, int>> members;
  std::vector<Summand> summands;
  for (int m = 0; m < c.members; ++m) {
    const InstructionId member = c.member(m);
    const Instruction& i = p_.at(member);
    if (!here(i)) continue;
    const int queue = members.emplace_back(member, queue_of(i, DeviceId{})).second;
    begin(queue, {member});
    work_on(i.device, queue);
    const real::Tensor gradient = session_->arrays(member).output;
    summands.push_back(
        {i.device, gradient.data, static_cast<std::size_t>(gradient.size()), runtime_.queues().stream(queue)});
  }
  if (summands.empty()) return;
  std::vector<MessageEnd> ends;
  for (const Summand& s : summands)
    ends.push_back({s.here, s.here, s.data, s.numbers * runtime_.wide_width(), true, s.stream});
  call_nccl(ends, [=, this] { ranks_->sum(collective, runtime_.wide_width(), summands); });
  for (const auto& [member, queue] : members) {
    end(queue, {member});
    work_alone(p_.at(member).device);
  }
}

/// If one device reaches the arrays of all, it does everything. Otherwise each result is put together where it belongs,
/// rank by rank and in the same order in all processes.
void Enqueuer::compute_results(int index) {
  const CollectiveCall& c = p_.collectives[index];
  const CollectiveKind kind = p_.shape(c).kind;
  if (first_reaches_all(c) || session_->only_waits(c)) return session_->collective(index);
  if (c.purpose == Purpose::Vocabulary)
    throw InputError(
        "ranks that divide a vocabulary are on GPUs that do not read each other's memory, which the backend "
        "'cuda' joins no scores over",
        "one process whose GPUs have peer access, or parts of one GPU; or plan.vocabulary: ends");

  std::vector<real::MemberArrays> arrays(c.members);  // Null where a member is not here.
  std::vector<std::unique_ptr<real::ScratchCopy>> copies(c.members);
  for (int m = 0; m < c.members; ++m) {
    const Instruction& member = p_.at(c.member(m));
    if (!here(member)) continue;
    arrays[m] = session_->arrays(c.member(m));
    if (const real::Tensor early = real::overwritten_early(kind, m, arrays[m]))
      copies[m] = std::make_unique<real::ScratchCopy>(session_->kernels(member.device), early);
  }
  const std::int64_t numbers = session_->numbers(c);
  for (int rank = 0; rank < (real::is_computed_once(kind) ? 1 : c.members); ++rank)
    for (const real::ResultPart& part : real::result_parts(kind, c.members, rank, numbers))
      put_part(index, rank, real::safe_step(kind, rank, part, arrays[part.source].input, copies[part.source].get()),
               arrays[rank].output);
  if (!real::is_computed_once(kind)) return;
  for (int m = 1; m < c.members; ++m)
    hand(index, c.first, c.member(m), arrays[0].output.data, arrays[m].output.data,
         static_cast<std::size_t>(numbers) * runtime_.wide_width());
}

/// One step of the result of a rank: read from the other member's memory, or sent from there.
void Enqueuer::put_part(int index, int rank, const real::SafeStep& step, real::Tensor output) {
  const CollectiveCall& c = p_.collectives[index];
  const auto& [part, input] = step;
  const InstructionId from = c.member(part.source), to = c.member(rank);
  const bool puts = here(p_.at(to));
  if (part.count == 0) return;
  if (part.source == rank || (puts && reaches(to, from))) {
    if (!puts) return;
    take_turns(from, to);
    real::write_part(session_->kernels(p_.at(to).device), part, input, output);
    return take_turns(to, from);
  }
  const std::size_t width = runtime_.wide_width(), bytes = static_cast<std::size_t>(part.count) * width;
  void* const source = input ? static_cast<char*>(input.data) + part.from * width : nullptr;
  void* const target = output ? static_cast<char*>(output.data) + part.to * width : nullptr;
  if (!part.add) return hand(index, from, to, source, target, bytes);
  const auto release = [&](void* copy) { session_->kernels(p_.at(to).device).release(copy, bytes); };
  const std::unique_ptr<void, decltype(release)> copy(
      puts ? session_->kernels(p_.at(to).device).allocate(bytes) : nullptr, release);
  hand(index, from, to, source, copy.get(), bytes);
  if (puts) session_->kernels(p_.at(to).device).add({copy.get(), 1, part.count, true}, {target, 1, part.count, true});
}

/// Moves data from one member to another; one of them may be in another process.
void Enqueuer::hand(int collective, InstructionId from, InstructionId to, void* data, void* target, std::size_t bytes) {
  const DeviceId a = p_.at(from).device, b = p_.at(to).device;
  const auto stream = [&](DeviceId d) { return runtime_.queues().stream(runtime_.used(device(d))); };
  if (!apart(from, to)) {
    if (!data || !target) return;
    take_turns(to, from);
    runtime_.copy_between(runtime_.used(device(a)), device(a), device(b), data, target, bytes);
    return take_turns(from, to);
  }
  std::vector<MessageEnd> ends;
  if (data) ends.push_back({a, b, data, bytes, true, stream(a)});
  if (target) ends.push_back({b, a, target, bytes, false, stream(b)});
  if (!ends.empty()) call_nccl(ends, [this, collective, ends] { ranks_->share(collective, ends); });
}

/// Makes later work on the second member's stream wait for what is on the first member's stream.
void Enqueuer::take_turns(InstructionId first, InstructionId second) {
  const int before = runtime_.used(device(p_.at(first).device)), after = runtime_.used(device(p_.at(second).device));
  if (before == after) return;
  Queues& queues = runtime_.queues();
  const Point point = queues.end(before, nullptr);
  queues.select(after);
  queues.wait(after, point);
}

bool Enqueuer::apart(InstructionId a, InstructionId b) const {
  return ranks_ && ranks_->apart(p_.at(a).device, p_.at(b).device);
}

bool Enqueuer::reaches(InstructionId a, InstructionId b) const {
  return !apart(a, b) && runtime_.devices().reaches(device(p_.at(a).device), device(p_.at(b).device));
}

}  // namespace stagecraft::cuda
