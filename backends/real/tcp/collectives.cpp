// The collectives of a program over TCP: what each process sends to which other one, and in which order it sums.

#include "backends/real/tcp/collectives.hpp"

#include <algorithm>
#include <cstring>

#include "backends/real/collectives.hpp"

namespace stagecraft::real {

TcpCollectives::TcpCollectives(TcpWire& wire, const Program& program, const DevicePlacement& placement,
                               RemoteBuffers& buffers, const Lanes& lanes)
    : wire_(wire), p_(program), placement_(placement), buffers_(buffers), lanes_(lanes) {}

bool TcpCollectives::sums(int collective) const {
  return p_.shape(p_.collectives[collective]).kind == CollectiveKind::AllReduce;
}

void TcpCollectives::join(InstructionId member) {
  const std::size_t bytes = buffers_.share_bytes(member);
  Block share = pool_.take(bytes);
  if (bytes > 0) buffers_.pack_share(member, share.get());
  {
    const std::lock_guard lock(mutex_);
    joined_.emplace_back(member, std::move(share));
  }
  wire_.wake();
}

TcpCollectives::Call& TcpCollectives::call_of(int collective) {
  const auto [it, is_new] = calls_.try_emplace(collective);
  Call& call = it->second;
  if (!is_new) return call;
  const CollectiveCall& c = p_.collectives[collective];
  call.processes = processes_of(p_, placement_, c);
  const auto self = std::find(call.processes.begin(), call.processes.end(), placement_.world().rank);
  call.place = static_cast<int>(self - call.processes.begin());
  call.missing = c.members;
  call.shares.resize(c.members);
  for (int m = 0; m < c.members; ++m)
    if (placement_.here(p_.at(c.member(m)).device) && call.members_here++ == 0)
      call.lane = lanes_.lane(p_.at(c.member(m)));
  if (sums(collective)) call.result = pool_.take(buffers_.share_bytes(c.first));
  return call;
}

/// The part of the array that the process at a place sums.
TcpCollectives::Range TcpCollectives::part(int collective, const Call& call, int place) const {
  const std::size_t width = buffers_.number_bytes(collective);
  const std::size_t numbers = buffers_.share_bytes(p_.collectives[collective].first) / width;
  const std::size_t count = call.processes.size(), n = static_cast<std::size_t>(place);
  const std::size_t first = numbers * n / count;
  return {first * width, (numbers * (n + 1) / count - first) * width};
}

/// What the members of a process need of the share of a member: from the first number to the last.
TcpCollectives::Range TcpCollectives::needed(int collective, int member, int process) const {
  const CollectiveCall& c = p_.collectives[collective];
  const CollectiveKind kind = p_.shape(c).kind;
  const std::size_t whole = buffers_.share_bytes(c.member(member)), width = buffers_.number_bytes(collective);
  if (kind == CollectiveKind::AllGather || kind == CollectiveKind::Broadcast) return {0, whole};
  std::size_t low = whole, high = 0;
  for (int m = 0; m < c.members; ++m) {
    if (placement_.owner(p_.at(c.member(m)).device) != process) continue;
    for (const ResultPart& step : result_parts(kind, c.members, m, static_cast<std::int64_t>(whole / width)))
      if (step.source == member && step.count > 0) {
        low = std::min(low, static_cast<std::size_t>(step.from) * width);
        high = std::max(high, static_cast<std::size_t>(step.from + step.count) * width);
      }
  }
  return low < high ? Range{low, high - low} : Range{};
}

void TcpCollectives::send(Call& call, int to, const Frame& frame, const Block& array, std::size_t first) {
  wire_.send(to, call.lane, frame, Block(array, array.get() + first));
}

void TcpCollectives::use(Arrival&& arrival) {
  const Frame& frame = arrival.frame;
  Call& call = call_of(frame.number);
  if (frame.kind == FrameKind::SummedPart) {
    if (frame.bytes > 0)
      std::memcpy(call.result.get() + part(frame.number, call, frame.part).first, arrival.data.get(), frame.bytes);
    ++call.summed;
    return pass_on(frame.number, call, frame.part);
  }
  --call.missing;
  Block& share = call.shares[frame.member];
  if (frame.kind == FrameKind::PartToSum) {
    const auto from = std::find(call.processes.begin(), call.processes.end(), arrival.from);
    call.came.insert({static_cast<int>(from - call.processes.begin()), frame.member});
    share = std::move(arrival.data);
    return;
  }
  const InstructionId member = p_.collectives[frame.number].member(frame.member);
  const Range range = needed(frame.number, frame.member, placement_.world().rank);
  share = pool_.take(buffers_.share_bytes(member));
  if (range.bytes > 0) std::memcpy(share.get() + range.first, arrival.data.get(), range.bytes);
}

void TcpCollectives::advance(std::vector<InstructionId>& ended) {
  std::vector<std::pair<InstructionId, Block>> joined;
  {
    const std::lock_guard lock(mutex_);
    joined.swap(joined_);
  }
  for (auto& [member, share] : joined) {
    const int collective = p_.at(member).collective();
    Call& call = call_of(collective);
    const int rank = static_cast<int>(member.value - p_.collectives[collective].first.value);
    call.shares[rank] = std::move(share);
    ++call.joined;
    --call.missing;
    if (!sums(collective)) send_shares(collective, call, rank);
  }
  for (auto it = calls_.begin(); it != calls_.end();) {
    if (!advance(it->first, it->second)) {
      ++it;
      continue;
    }
    const CollectiveCall& c = p_.collectives[it->first];
    for (int m = 0; m < c.members; ++m)
      if (placement_.here(p_.at(c.member(m)).device)) ended.push_back(c.member(m));
    it = calls_.erase(it);
  }
}

/// True when it has ended.
bool TcpCollectives::advance(int collective, Call& call) {
  if (call.joined < call.members_here) return false;
  if (sums(collective)) {
    send_parts(collective, call);
    const auto count = static_cast<int>(call.processes.size());
    if (call.missing == 0 && !call.has_sum) sum(collective, call);
    if (call.summed < count || call.next_step < count) return false;
    buffers_.finish_sum(collective, call.result.get());
    return true;
  }
  if (call.missing > 0) return false;
  std::vector<const void*> shares;
  for (const Block& share : call.shares) shares.push_back(share.get());
  buffers_.finish(collective, shares);
  return true;
}

/// In step s each process sends to the one s places on. The next step begins when what the last one brings is here, as
/// in a ring: so no two processes send to the same one at a time.
void TcpCollectives::send_parts(int collective, Call& call) {
  const CollectiveCall& c = p_.collectives[collective];
  const auto count = static_cast<int>(call.processes.size());
  const auto has_come = [&](int place) {
    for (int m = 0; m < c.members; ++m)
      if (placement_.owner(p_.at(c.member(m)).device) == call.processes[place] && !call.came.contains({place, m}))
        return false;
    return true;
  };
  for (int& step = call.next_step; step < count; ++step) {
    if (step > 1 && !has_come((call.place - (step - 1) + count) % count)) return;
    const int to = (call.place + step) % count;
    const Range range = part(collective, call, to);
    for (int m = 0; m < c.members; ++m)
      if (placement_.here(p_.at(c.member(m)).device))
        send(call, call.processes[to], {FrameKind::PartToSum, collective, m, to, range.bytes}, call.shares[m],
             range.first);
  }
}

void TcpCollectives::sum(int collective, Call& call) {
  const CollectiveCall& c = p_.collectives[collective];
  const Range range = part(collective, call, call.place);
  std::vector<const void*> parts;
  for (int m = 0; m < c.members; ++m)
    parts.push_back(call.shares[m].get() + (placement_.here(p_.at(c.member(m)).device) ? range.first : 0));
  if (range.bytes > 0) buffers_.add_up(collective, parts, range.bytes, call.result.get() + range.first);
  call.has_sum = true;
  ++call.summed;
  pass_on(collective, call, call.place);
}

/// To the next process of the ring, unless that has summed it.
void TcpCollectives::pass_on(int collective, Call& call, int which) {
  const int next = (call.place + 1) % static_cast<int>(call.processes.size());
  if (next == which) return;
  const Range range = part(collective, call, which);
  send(call, call.processes[next], {FrameKind::SummedPart, collective, 0, which, range.bytes}, call.result,
       range.first);
}

void TcpCollectives::send_shares(int collective, Call& call, int member) {
  for (const int process : call.processes) {
    if (process == placement_.world().rank) continue;
    const Range range = needed(collective, member, process);
    send(call, process, {FrameKind::Share, collective, member, 0, range.bytes}, call.shares[member], range.first);
  }
}

}  // namespace stagecraft::real
