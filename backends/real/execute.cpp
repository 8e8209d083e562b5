#include "backends/real/execute.hpp"

#include <time.h>

#include <cmath>

#include "backends/real/session.hpp"

namespace stagecraft::real {
namespace {

/// Sleeps where it should compute, and moves as many bytes as the messages have.
class Emulation : public Actions {
 public:
  explicit Emulation(const Program& program) : p_(program) {
    std::uint64_t most = 0;
    for (const Transfer& t : p_.transfers) most = std::max(most, t.bytes);
    for (const Collective& c : p_.collectives) most = std::max(most, c.bytes);
    from_.resize(most);
  }

  void compute(InstructionId id) override { sleep(p_.at(id).duration.value); }
  void carry(int transfer) override { move(p_.transfers[static_cast<std::size_t>(transfer)].bytes); }
  void reduce(int collective) override {
    const Collective& c = p_.collectives[static_cast<std::size_t>(collective)];
    for (int m = 0; m < c.members; ++m) move(c.bytes);
  }

 private:
  static void sleep(double seconds) {
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
  std::vector<char> from_;
  mutable std::atomic<char> sink_{0};
};

Timeline timeline_of(Times times) {
  Timeline timeline;
  timeline.clock = Clock::Host;
  timeline.start = std::move(times.start);
  timeline.end = std::move(times.end);
  return timeline;
}

}  // namespace

Timeline execute(const Program& program, const Work& work, const KernelFactory& factory, const WalkOptions& options) {
  Session session(program, work, factory, [](DeviceId) { return true; });
  Timeline timeline = timeline_of(walk(program, session, nullptr, options));
  timeline.learnt = session.learnt();
  return timeline;
}

Timeline emulate(const Program& program, const Work&, const WalkOptions& options) {
  Emulation emulation(program);
  return timeline_of(walk(program, emulation, nullptr, options));
}

}  // namespace stagecraft::real
