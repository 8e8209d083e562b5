// Carries the messages and collectives of a program between processes over MPI.

#include "backends/real/mpi/transport.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <limits>
#include <set>

#include "backends/real/clocks.hpp"
#include "backends/real/processes/meeting.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr std::size_t kMostReceives = 64;

void require_length(std::size_t bytes, const std::string& what) {
  if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw BackendError(
        fmt::format("{} has {} bytes, and MPI takes {} at once", what, bytes, std::numeric_limits<int>::max()));
}

}  // namespace

MpiTransport::MpiTransport(const Program& program, const DevicePlacement& placement, RemoteBuffers& buffers)
    : p_(program), placement_(placement), buffers_(buffers) {
  require_possible();
}

void MpiTransport::require_possible() const {
  require_tags(p_.size(), "instructions: run fewer iterations");
  for (std::size_t t = 0; t < p_.transfers.size(); ++t)
    if (const Transfer& transfer = p_.transfers[t];
        here(p_.at(transfer.send).device) != here(p_.at(transfer.receive).device))
      require_length(buffers_.bytes(static_cast<int>(t)), to_text(p_, transfer.send));
  for (const CollectiveCall& c : p_.collectives)
    for (int m = 0; m < c.members; ++m)
      if (const InstructionId member = c.member(m); here(p_.at(member).device))
        require_length(buffers_.share_bytes(member), to_text(p_, member));
}

MpiTransport::~MpiTransport() {
  for (std::size_t n = 0; n < requests_.size(); ++n) {
    const bool receives = under_way_[n].kind == Kind::Received || under_way_[n].kind == Kind::ShareReceived;
    if (receives) MPI_Cancel(&requests_[n]);
    MPI_Request_free(&requests_[n]);
    leave_behind(under_way_[n].block);
  }
}

void MpiTransport::add(MPI_Request request, UnderWay what) {
  requests_.push_back(request);
  under_way_.push_back(std::move(what));
}

void MpiTransport::send(int transfer) {
  const std::size_t bytes = buffers_.bytes(transfer);
  const Block block = pool_.take(bytes);
  buffers_.pack(transfer, block.get());
  const Transfer& t = p_.transfers[transfer];
  const int to = placement_.owner(p_.at(t.receive).device);
  const std::lock_guard lock(mpi_calls());
  MPI_Request request;
  check((p_.rendezvous ? MPI_Issend : MPI_Isend)(block.get(), static_cast<int>(bytes), MPI_BYTE, to, transfer,
                                                 communicators().messages, &request));
  add(request, {Kind::Sent, transfer, 0, block});
}

void MpiTransport::receive(int transfer) {
  const std::lock_guard lock(mpi_calls());
  waiting_.insert(transfer);
  post_receives();
}

/// Where no receive waits for anything, all of them may start at once, and each takes memory. No message waits for one
/// with a greater number, so a run can go on as long as the first is posted.
void MpiTransport::post_receives() {
  while (!waiting_.empty() && (posted_.size() < kMostReceives || *waiting_.begin() < *posted_.begin())) {
    const int transfer = waiting_.extract(waiting_.begin()).value();
    posted_.insert(transfer);
    const std::size_t bytes = buffers_.bytes(transfer);
    const Block block = pool_.take(bytes);
    const int from = placement_.owner(p_.at(p_.transfers[transfer].send).device);
    MPI_Request request;
    check(
        MPI_Irecv(block.get(), static_cast<int>(bytes), MPI_BYTE, from, transfer, communicators().messages, &request));
    add(request, {Kind::Received, transfer, 0, block});
  }
}

void MpiTransport::join(int collective, InstructionId member) {
  const CollectiveCall& c = p_.collectives[collective];
  const Block block = pool_.take(buffers_.share_bytes(member));
  buffers_.pack_share(member, block.get());
  const std::lock_guard lock(mpi_calls());
  exchange(c, collective, member.value - c.first.value, block);
}

/// A member's share goes to each process that has another member. Receives for the shares of those are posted with the
/// first member that is here.
void MpiTransport::exchange(const CollectiveCall& c, int collective, int member, const Block& block) {
  const auto count = [&](int m) { return static_cast<int>(buffers_.share_bytes(c.member(m))); };
  auto [it, fresh] = sums_.try_emplace(collective);
  Sum& sum = it->second;
  if (fresh) {
    sum.shares.resize(c.members);
    sum.missing = c.members;
  }
  std::set<int> others;
  for (int m = 0; m < c.members; ++m) {
    const InstructionId id = c.member(m);
    const int owner = placement_.owner(p_.at(id).device);
    if (owner == placement_.world().rank) continue;
    others.insert(owner);
    if (!fresh) continue;
    const Block theirs = sum.shares[m] = pool_.take(buffers_.share_bytes(id));
    MPI_Request request;
    check(MPI_Irecv(theirs.get(), count(m), MPI_BYTE, owner, id.value, communicators().shares, &request));
    add(request, {Kind::ShareReceived, collective, m, theirs});
  }
  sum.shares[member] = block;
  for (const int other : others) {
    MPI_Request request;
    check(MPI_Isend(block.get(), count(member), MPI_BYTE, other, c.first.value + member, communicators().shares,
                    &request));
    add(request, {Kind::ShareSent, collective, member, block});
  }
  note_share(collective);
}

void MpiTransport::note_share(int collective) {
  if (--sums_.at(collective).missing == 0) complete_.push_back(collective);
}

/// Takes out what MPI is through with.
std::vector<MpiTransport::UnderWay> MpiTransport::arrived() {
  const std::lock_guard lock(mpi_calls());
  std::vector<UnderWay> through;
  if (requests_.empty()) return through;
  int count = 0;
  std::vector<int> indices(requests_.size());
  check(
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices.data(), MPI_STATUSES_IGNORE));
  if (count <= 0) return through;
  std::sort(indices.begin(), indices.begin() + count);
  for (int n = 0; n < count; ++n) through.push_back(std::move(under_way_[indices[n]]));
  std::size_t remaining = 0;
  for (std::size_t n = 0; n < requests_.size(); ++n) {
    if (requests_[n] == MPI_REQUEST_NULL) continue;
    requests_[remaining] = requests_[n];
    under_way_[remaining++] = std::move(under_way_[n]);
  }
  requests_.resize(remaining);
  under_way_.resize(remaining);
  for (const UnderWay& u : through) {
    if (u.kind == Kind::ShareReceived) note_share(u.index);
    if (u.kind == Kind::Received) posted_.erase(u.index);
  }
  post_receives();
  return through;
}

void MpiTransport::poll(std::vector<InstructionId>& ended) {
  const std::unique_lock alone(polling_, std::try_to_lock);
  if (!alone.owns_lock()) return;
  for (const UnderWay& u : arrived()) end(u, ended);
  end_sums(ended);
}

void MpiTransport::end(const UnderWay& u, std::vector<InstructionId>& ended) {
  if (u.kind == Kind::Received) buffers_.unpack(u.index, u.block.get());
  if (u.kind == Kind::Received) ended.push_back(p_.transfers[u.index].receive);
  if (u.kind == Kind::Sent && p_.rendezvous) ended.push_back(p_.transfers[u.index].send);
}

void MpiTransport::end_sums(std::vector<InstructionId>& ended) {
  std::vector<std::pair<int, Sum>> sums;
  {
    const std::lock_guard lock(mpi_calls());
    for (const int collective : complete_) sums.emplace_back(collective, std::move(sums_.extract(collective).mapped()));
    complete_.clear();
  }
  for (const auto& [collective, sum] : sums) {
    std::vector<const void*> shares;
    for (const Block& b : sum.shares) shares.push_back(b.get());
    buffers_.finish(collective, shares);
    const CollectiveCall& c = p_.collectives[collective];
    for (int m = 0; m < c.members; ++m)
      if (const InstructionId member = c.member(m); here(p_.at(member).device)) ended.push_back(member);
  }
}

std::optional<Transport::Pulse> MpiTransport::pulse(const Pulse& local) { return reduce_pulse(pulses_, local); }

bool MpiTransport::stop_requested_by_launcher() const { return real::stop_requested_by_launcher(); }

void MpiTransport::finish(double seconds) {
  std::vector<InstructionId> ended;
  const auto all_left = [&] { return poll(ended), requests_.empty(); };
  if (!wait_for(all_left, deadline_after(Patience(seconds))))
    throw BackendError(fmt::format("messages have not left for {:.3g} s", seconds));
}

}  // namespace stagecraft::real
