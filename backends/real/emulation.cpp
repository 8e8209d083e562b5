// Emulated runs: ops sleep for their predicted time, and messages are copied as real bytes.

#include "backends/real/emulation.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/real/collectives.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {

Emulation::Emulation(const Program& program, const Cluster& cluster, double dilation)
    : p_(program),
      cluster_(cluster),
      conditions_(cluster),
      dilation_(dilation),
      buckets_(program),
      due_(program.size(), 0.0),
      late_(program.size(), -1.0) {
  std::uint64_t largest = 0;
  for (const Transfer& t : p_.transfers) largest = std::max(largest, p_.bytes(t));
  for (const CollectiveCall& c : p_.collectives) largest = std::max(largest, array_bytes(c));
  from_.resize(largest);
}

double Emulation::due_to_begin(InstructionId id) const {
  const double now = steady_seconds();
  double begin = -kInfinity;
  if (times_ == nullptr) return now;
  for (const InstructionId w : p_.waits_for(id)) {
    const bool is_of_device = p_.at(w).is_compute() && p_.at(w).device == p_.at(id).device;
    begin = std::max(begin, is_of_device ? due_[w] : times_->origin + times_->end[w]);
  }
  return begin == -kInfinity ? now : std::min(begin, now);
}

/// When a share of an op is due to be done, on the steady clock.
double Emulation::due_to_end(InstructionId id, double begin, double share) const {
  const Instruction& i = p_.at(id);
  const double seconds = share * i.duration.value;
  if (conditions_.as_rated() || times_ == nullptr) return begin + dilation_ * seconds;
  const double ready = std::max(begin - times_->origin, 0.0) / dilation_;
  const Span span = conditions_.compute(i.device, id.value, ready, seconds, p_.share_in_collectives(i));
  if (span.end == kForEver)
    throw BackendError(
        fmt::format("'{}' stands still and is never back for {}", cluster_.devices[i.device].name, to_text(p_, id)));
  return begin + dilation_ * (span.end - ready);
}

void Emulation::compute(InstructionId id) {
  const double begin = due_to_begin(id);
  due_[id] = due_to_end(id, begin, 1);
  for (const WaitingSum& sum : buckets_.waiting_for(id)) {
    if (sum.after >= 1 || !part_done_) continue;
    sleep_until(due_to_end(id, begin, sum.after));
    part_done_(id, sum.member);
  }
  sleep_until(due_[id]);
  if (p_.at(id).duration.value > 0) late_[id] = std::max(steady_seconds() - due_[id], 0.0);
}

/// Sleeps until this moment of the steady clock, or until interrupt(): an op may be due to take hours.
void Emulation::sleep_until(double seconds) {
  // Threads are woken up to 50 us late unless they ask for better.
  thread_local const bool punctual = prctl(PR_SET_TIMERSLACK, 1UL) == 0;
  (void)punctual;
  using Clock = std::chrono::steady_clock;
  const Clock::time_point moment(std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds)));
  std::unique_lock lock(mutex_);
  interruption_.wait_until(lock, moment, [this] { return interrupted_; });
}

void Emulation::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  interruption_.notify_all();
}

/// The arrays of all rounds.
std::uint64_t Emulation::array_bytes(const CollectiveCall& c) const {
  return static_cast<std::uint64_t>(c.repeats() * static_cast<double>(p_.shape(c).bytes) + 0.5);
}

void Emulation::collective(int index) {
  const CollectiveCall& c = p_.collectives[index];
  for (int m = 0; m < c.members; ++m) move(array_bytes(c));
}

void Emulation::pack(int transfer, void* into) { std::memcpy(into, from_.data(), bytes(transfer)); }

std::size_t Emulation::share_bytes(InstructionId member) {
  const CollectiveCall& c = p_.collective(p_.at(member));
  return static_cast<std::size_t>(input_numbers(p_.shape(c).kind, c.members,
                                                static_cast<int>(member.value - c.first.value),
                                                static_cast<std::int64_t>(array_bytes(c))));
}

void Emulation::pack_share(InstructionId member, void* into) { std::memcpy(into, from_.data(), share_bytes(member)); }

/// Copies each part, which costs about what adding it would.
void Emulation::add_up(int, std::span<const void* const> parts, std::size_t bytes, void* sum) {
  for (const void* part : parts) std::memcpy(sum, part, bytes);
}

void Emulation::move(std::uint64_t bytes) const {
  const std::vector<char> to(from_.begin(), from_.begin() + static_cast<std::ptrdiff_t>(bytes));
  sink_.store(to.empty() ? '\0' : to.back(), std::memory_order_relaxed);
}

std::vector<double> Emulation::lateness() const {
  std::vector<double> seconds;
  for (const double late : late_)
    if (late >= 0) seconds.push_back(late);
  return seconds;
}

}  // namespace stagecraft::real
