#include "backends/real/execute.hpp"

#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <fmt/core.h>

#include "backends/real/multi_process_run.hpp"
#include "backends/real/remote_members.hpp"
#include "backends/real/session.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

/// Sleeps where it should compute, and moves as many bytes as the messages have.
class Emulation : public Actions, public RemoteBuffers {
 public:
  explicit Emulation(const Program& program) : p_(program), buckets_(program) {
    std::uint64_t largest = 0;
    for (const Transfer& t : p_.transfers) largest = std::max(largest, p_.bytes(t));
    for (const CollectiveShape& s : p_.collective_shapes) largest = std::max(largest, s.bytes);
    from_.resize(largest);
  }

  void compute(InstructionId id) override {
    double done = 0;
    for (const WaitingSum& sum : buckets_.waiting_for(id)) {
      if (sum.after >= 1 || !part_done_) continue;
      sleep(p_.at(id).duration.value * std::max(0.0, sum.after - done));
      done = std::max(done, sum.after);
      part_done_(id, sum.member);
    }
    sleep(p_.at(id).duration.value * (1 - done));
  }
  void when_part_done(PartDone call) override { part_done_ = std::move(call); }
  void carry(int transfer) override { move(p_.bytes(p_.transfers[transfer])); }
  void collective(int index) override {
    const CollectiveCall& c = p_.collectives[index];
    for (int m = 0; m < c.members; ++m) move(p_.shape(c).bytes);
  }

  std::size_t bytes(int transfer) const override { return p_.bytes(p_.transfers[transfer]); }
  void pack(int transfer, void* into) override { std::memcpy(into, from_.data(), bytes(transfer)); }
  void unpack(int, const void*) override {}
  std::size_t share_bytes(InstructionId member) override { return p_.shape(p_.collective(p_.at(member))).bytes; }
  void pack_share(InstructionId member, void* into) override { std::memcpy(into, from_.data(), share_bytes(member)); }
  void finish(int index, std::span<const void* const>) override { collective(index); }

 private:
  static void sleep(double seconds) {
    // Threads are woken up to 50 us late unless they ask for better.
    thread_local const bool punctual = prctl(PR_SET_TIMERSLACK, 1UL) == 0;
    (void)punctual;
    timespec t{};
    t.tv_sec = static_cast<time_t>(seconds);
    t.tv_nsec = static_cast<long>(std::fmod(seconds, 1.0) * 1e9);
    while (nanosleep(&t, &t) != 0) {
    }
  }
  void move(std::uint64_t bytes) const {
    const std::vector<char> to(from_.begin(), from_.begin() + static_cast<std::ptrdiff_t>(bytes));
    sink_.store(to.empty() ? '\0' : to.back(), std::memory_order_relaxed);
  }

  const Program& p_;
  GradientBuckets buckets_;
  PartDone part_done_;
  std::vector<char> from_;
  mutable std::atomic<char> sink_{0};
};

/// Time begins with the first instruction: threads take their time to start.
Timeline timeline_of(Times times) {
  if (!times.start.empty()) {
    const double first = *std::min_element(times.start.begin(), times.start.end());
    for (double& t : times.start) t -= first;
    for (double& t : times.end) t -= first;
  }
  Timeline timeline;
  timeline.clock = Clock::Host;
  timeline.start = std::move(times.start);
  timeline.end = std::move(times.end);
  return timeline;
}

Timeline timeline_of(CollectedRun joint) {
  Timeline timeline = timeline_of(std::move(joint.times));
  timeline.processes = world().size;
  timeline.elsewhere = world().rank > 0;
  timeline.clock_uncertainty = {joint.uncertainty};
  return timeline;
}

}  // namespace

Timeline execute(const Program& program, const KernelFactory& factory, const ExecutorOptions& options) {
  const DevicePlacement placement(program, world());
  const auto remote = [&](int group, const std::vector<DeviceId>& devices) {
    std::vector<int> owners;
    for (const DeviceId d : devices) owners.push_back(placement.owner(d));
    return remote_members(group * program.devices, std::move(owners));
  };
  Session session(
      program, factory, [&](DeviceId d) { return placement.here(d); }, false, remote);
  if (world().size == 1) {
    bool diverged = false;
    Times times;
    try {
      ExecutorOptions threads = options;
      threads.one_thread = options.one_thread && !session.has_groups();
      times = run_program(program, session, nullptr, threads);
    } catch (const Infeasible& e) {
      // Runs for their losses alone, on one thread, end there.
      diverged = options.one_thread && e.problem().code == "diverged";
      if (!diverged) throw;
    }
    Timeline timeline = timeline_of(std::move(times));
    timeline.learnt = session.learnt(session.records());
    timeline.learnt->diverged = diverged;
    return timeline;
  }
  CollectedRun joint =
      run_program_together(program, placement, session, session, options, [&] { return to_bytes(session.records()); });
  std::vector<Records> records;
  for (const std::string& bytes : joint.reports) records.push_back(records_from(bytes));
  Timeline timeline = timeline_of(std::move(joint));
  if (!timeline.elsewhere) timeline.learnt = session.learnt(merged(std::move(records)));
  return timeline;
}

Timeline emulate(const Program& program, const ExecutorOptions& options) {
  Emulation emulation(program);
  if (world().size == 1) return timeline_of(run_program(program, emulation, nullptr, options));
  const DevicePlacement placement(program, world());
  return timeline_of(
      run_program_together(program, placement, emulation, emulation, options, [] { return std::string(); }));
}

}  // namespace stagecraft::real
