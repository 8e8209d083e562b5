// Measures messages between two threads, for the links in a profile.

#include "backends/real/measure.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "backends/real/clocks.hpp"
#include "backends/real/program_executor.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

constexpr int kRounds = 100, kFewestRounds = 20;

/// Computes for a while, so that the other thread sleeps when its message comes, as a stage that has waited for one
/// does; a thread that still spins would take it ten times as fast. A message is copied from memory to other memory,
/// both of which were touched some messages before, and are no more in the caches next to a core.
class PingPong : public Actions {
 public:
  explicit PingPong(std::size_t bytes, double seconds) : seconds_(seconds) {
    for (std::size_t n = 0; n < kPlaces; ++n) places_.emplace_back(bytes, 'x');
  }
  void compute(InstructionId) override {
    for (const double begin = steady_seconds(); steady_seconds() - begin < seconds_;) continue;
  }
  void carry(int) override {
    const std::vector<char>& from = places_[next_++ % kPlaces];
    std::memcpy(places_[next_++ % kPlaces].data(), from.data(), from.size());
  }
  void collective(int) override {}

 private:
  static constexpr std::size_t kPlaces = 8;
  double seconds_;
  std::vector<std::vector<char>> places_;
  std::size_t next_ = 0;
};

/// Device 0 computes and sends, device 1 computes and sends back, round after round.
Program back_and_forth(int rounds) {
  Program p;
  p.devices = 2;
  p.micro_batches = {rounds, rounds};
  p.streams = {{DeviceId{0}, StreamKind::Compute, {}}, {DeviceId{1}, StreamKind::Compute, {}}};
  p.routes = {{DeviceId{0}, DeviceId{1}}, {DeviceId{1}, DeviceId{0}}};
  p.transfer_shapes = {{.route = 0}, {.route = 1}};
  p.memory.resize(2);
  p.first_wait.push_back(0);
  const auto add = [&](Instruction i, std::vector<InstructionId> waits) {
    const InstructionId id = p.instructions.push_back(i);
    for (const InstructionId w : waits)
      if (w.valid()) p.waits.push_back(w);
    p.first_wait.push_back(static_cast<std::uint32_t>(p.waits.size()));
    return id;
  };
  InstructionId received, last[2];
  for (int round = 0; round < 2 * rounds; ++round) {
    const int d = round % 2;
    Instruction compute;
    compute.stream = StreamId{d};
    compute.device = DeviceId{d};
    compute.stage = StageId{d};
    compute.number = round / 2;
    const InstructionId op = last[d] = add(compute, {last[d], received});
    Instruction send = compute;
    send.kind = InstructionKind::Send;
    send.stream = {};
    send.payload = static_cast<std::int32_t>(p.transfers.size());
    Instruction receive = send;
    receive.kind = InstructionKind::Receive;
    receive.device = DeviceId{1 - d};
    const InstructionId s = add(send, {op});
    received = add(receive, {});
    p.transfers.push_back({s, received, {}, {}, d});
  }
  return p;
}

double median_gap(const Program& p, const Times& t) {
  std::vector<double> gaps;
  for (int n = 3; n < std::ssize(p.instructions); n += 3)
    gaps.push_back(t.start[InstructionId{n}] - t.end[InstructionId{n - 3}]);
  return median(std::move(gaps));
}

double message_seconds(std::size_t bytes, double wait, int rounds) {
  PingPong actions(bytes, wait);
  const Program p = back_and_forth(rounds);
  return median_gap(p, run_program(p, actions, nullptr, {}));
}

/// The fastest of several copies in memory.
double copy_seconds(std::size_t bytes) {
  constexpr int kCopies = 5;
  const std::vector<char> from(bytes, 'x');
  std::vector<char> to(bytes);
  double fastest = kInfinity;
  for (int n = 0; n < kCopies; ++n) {
    const double begin = steady_seconds();
    std::copy(from.begin(), from.end(), to.begin());
    fastest = std::min(fastest, steady_seconds() - begin);
    STAGECRAFT_CHECK(to[static_cast<std::size_t>(n)] ==
                     'x');  // Its bytes are read, so no compiler leaves the copy out.
  }
  return std::max(fastest, 1e-9);
}

/// Runs ops of one device, one after the other.
double op_seconds() {
  Program p;
  p.devices = 1;
  p.micro_batches = {kRounds};
  p.streams = {{DeviceId{0}, StreamKind::Compute, {}}};
  p.memory.resize(1);
  p.first_wait.push_back(0);
  for (int n = 0; n < kRounds; ++n) {
    Instruction i;
    i.stream = StreamId{0};
    i.device = DeviceId{0};
    i.stage = StageId{0};
    i.number = n;
    p.instructions.push_back(i);
    if (n > 0) p.waits.emplace_back(n - 1);
    p.first_wait.push_back(static_cast<std::uint32_t>(p.waits.size()));
  }
  PingPong actions(1, 0);
  const Times t = run_program(p, actions, nullptr, {});
  return (t.end.back() - t.start.front()) / kRounds;
}

}  // namespace

MessageFigures measure_messages(double wait, double seconds) {
  constexpr std::size_t kFew = 64, kMany = std::size_t{4} << 20;
  const int rounds = static_cast<int>(std::clamp<double>(kRounds * seconds, kFewestRounds, kRounds));
  const double few = message_seconds(kFew, wait, rounds), many = message_seconds(kMany, wait, rounds);
  // Other load may delay the small message more than the large one. No message is faster than a copy of its bytes.
  const double carried = std::max(many - few, copy_seconds(kMany));
  return {Seconds{op_seconds()}, Seconds{few}, Bandwidth{(kMany - kFew) / carried}};
}

}  // namespace stagecraft::real
