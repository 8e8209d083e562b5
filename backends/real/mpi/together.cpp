#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include <fmt/core.h>

#include "backends/real/byte_text.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/transport.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/real/multi_process_run.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

constexpr int kClockRounds = 32;
constexpr int kClockTag = 2;  // An ending, which has tag 0, is never taken for a clock.

using Patience = std::chrono::duration<double>;

[[noreturn]] void refuse_silence(int process, Patience patience) {
  throw BackendError(
      fmt::format("process {} of {} has not answered for {:.3g} s", process, world().size, patience.count()));
}

/// What all processes do at the same time, after they have met, ends soon unless one of them is lost or stopped.
Deadline deadline_after(Patience patience) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
}

/// Text from a process that has met this one.
std::string expect_text(int process, Patience patience) {
  std::optional<std::string> text = receive_text(process, deadline_after(patience));
  if (!text) refuse_silence(process, patience);
  return std::move(*text);
}

/// Waits without a pause: the time of an answer is what is measured.
void wait_for_clock(MPI_Request& request, int process, Patience patience) {
  const double begin = steady_seconds();
  int done = 0;
  while (true) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return;
    int has_failed = 0;  // Instead of asking it tells how it ends.
    if (world().rank == 0) check(MPI_Iprobe(process, 0, wires().words, &has_failed, MPI_STATUS_IGNORE));
    if (!has_failed && steady_seconds() - begin < patience.count()) {
      std::this_thread::yield();
      continue;
    }
    MPI_Cancel(&request);
    MPI_Request_free(&request);
    if (has_failed) throw FailedElsewhere();
    refuse_silence(process, patience);
  }
}

void send_clock(int process) {
  const double now = steady_seconds();
  check(MPI_Send(&now, 1, MPI_DOUBLE, process, kClockTag, wires().words));
}

double receive_clock(Patience patience) {
  double there = 0;
  MPI_Request request;
  check(MPI_Irecv(&there, 1, MPI_DOUBLE, 0, kClockTag, wires().words, &request));
  wait_for_clock(request, 0, patience);
  return there;
}

void answer(int process, Patience patience) {
  send_clock(process);  // It is the turn of this process.
  for (int round = 0; round < kClockRounds; ++round) {
    MPI_Request request;
    check(MPI_Irecv(nullptr, 0, MPI_BYTE, process, kClockTag, wires().words, &request));
    wait_for_clock(request, process, patience);
    send_clock(process);
  }
}

ClockReading ask(Patience patience) {
  receive_clock(patience);
  ClockReading best;
  for (int round = 0; round < kClockRounds; ++round) {
    const double asked = steady_seconds();
    check(MPI_Send(nullptr, 0, MPI_BYTE, 0, kClockTag, wires().words));
    const double there = receive_clock(patience);
    const ClockReading reading = clock_reading(asked, there, steady_seconds());
    if (round == 0 || reading.uncertainty < best.uncertainty) best = reading;
  }
  return best;
}

/// All processes read at the same time. Of many questions the one that was answered fastest counts. The others have
/// more patience, so that the first says who is silent.
ClockReading read_clock(Patience patience) {
  if (world().rank > 0) return ask(2 * patience);
  for (int process = 1; process < world().size; ++process) answer(process, patience);
  return {};
}

/// FNV-1a over all that decides what a program does, in pieces of eight bytes.
std::uint64_t fingerprint(const Program& p) {
  std::uint64_t hash = 14695981039346656037U;
  const auto add = [&](std::int64_t n) { hash = (hash ^ static_cast<std::uint64_t>(n)) * 1099511628211U; };
  for (const Instruction& i : p.instructions) {
    for (const int n : {i.stream.value, i.device.value, i.stage.value, i.number, i.payload}) add(n);
    add(static_cast<int>(i.kind) * 1000 + static_cast<int>(i.weights));
  }
  for (const InstructionId w : p.waits) add(w.value);
  for (const Prediction& prediction : p.predictions)
    add(prediction.version), add(prediction.horizon), add(prediction.for_backward);
  for (const Transfer& t : p.transfers) add(t.shape);
  for (const TransferShape& s : p.transfer_shapes) {
    add(static_cast<std::int64_t>(s.bytes)), add(s.edge), add(static_cast<int>(s.role));
    add(s.rows.first), add(s.rows.count);
  }
  add(p.iterations), add(p.mini_batch), add(p.rendezvous);
  return hash;
}

void require_same_program(const Program& program, Patience patience) {
  struct Exchange {
    std::uint64_t local = 0;
    std::vector<std::uint64_t> joined;
  };
  const auto prints = std::make_shared<Exchange>();
  prints->local = fingerprint(program);
  prints->joined.resize(world().size);
  MPI_Request request;
  check(
      MPI_Iallgather(&prints->local, 1, MPI_UINT64_T, prints->joined.data(), 1, MPI_UINT64_T, wires().words, &request));
  if (!wait(request, deadline_after(patience))) {
    leave_behind(prints);  // MPI may still write to it.
    throw BackendError(fmt::format("another process has not answered for {:.3g} s", patience.count()));
  }
  if (std::count(prints->joined.begin(), prints->joined.end(), prints->joined.front()) != world().size)
    throw BackendError("the processes have read different scenarios");
}

struct Clocks {
  ClockReading before, after;
};

std::string times_message(const Program& p, const DevicePlacement& placement, const Times& times, const Clocks& clocks,
                          const std::string& more) {
  ByteWriter out;
  const double begin = times.origin;
  std::vector<double> seconds;
  for (const InstructionId n : p.instructions.ids())
    if (placement.here(p.at(n).device))
      for (const double t : {times.start[n], times.end[n]})
        seconds.push_back(on_first_clock(begin + t, clocks.before, clocks.after));
  out.put(std::max(clocks.before.uncertainty, clocks.after.uncertainty) + times.uncertainty);
  out.put(on_first_clock(begin, clocks.before, clocks.after));
  out.put(seconds);
  return out.take() + more;
}

CollectedRun put_together(const Program& p, const DevicePlacement& placement, const std::vector<std::string>& texts) {
  CollectedRun joint;
  Times& times = joint.times;
  times.start.resize(p.size());
  times.end.resize(p.size());
  times.origin = kInfinity;
  for (std::size_t r = 0; r < texts.size(); ++r) {
    ByteReader in(texts[r]);
    joint.uncertainty = std::max(joint.uncertainty, in.get<double>());
    times.origin = std::min(times.origin, in.get<double>());
    const auto seconds = in.get_list<double>();
    std::size_t next = 0;
    for (const InstructionId n : p.instructions.ids()) {
      if (placement.owner(p.at(n).device) != static_cast<int>(r)) continue;
      times.start[n] = seconds.at(next++);
      times.end[n] = seconds.at(next++);
    }
    joint.reports.emplace_back(in.rest());
  }
  for (auto* column : {&times.start, &times.end})
    for (double& t : *column) t -= times.origin;
  return joint;
}

/// An exchange of several processes starts when the last of them is ready, which none of them knew. No start is later
/// than its end, though clocks are not quite even.
void start_together(const Program& p, const DevicePlacement& placement, Times& times) {
  const auto level = [&](InstructionId first, std::int32_t count) {
    const int owner = placement.owner(p.at(first).device);
    const InstructionId end{first.value + count};
    bool alone = true;
    double ready = 0;
    for (InstructionId n = first; n < end; ++n.value) {
      alone = alone && placement.owner(p.at(n).device) == owner;
      ready = std::max(ready, times.start[n]);
    }
    for (InstructionId n = first; !alone && n < end; ++n.value) ready = std::min(ready, times.end[n]);
    for (InstructionId n = first; !alone && n < end; ++n.value) times.start[n] = ready;
  };
  for (const CollectiveCall& c : p.collectives) level(c.first, c.members);
  if (p.rendezvous)
    for (const Transfer& t : p.transfers) level(t.send, 2);
}

}  // namespace

CollectedRun run_together(const Program& program, const DevicePlacement& placement, double timeout,
                          const std::function<Times()>& run, const std::function<std::string()>& report) {
  const Patience patience(timeout);
  meet(patience_for_equals());
  require_same_program(program, patience);
  Clocks clocks;
  clocks.before = read_clock(patience);
  const Times times = run();
  clocks.after = read_clock(patience);
  const std::string text = times_message(program, placement, times, clocks, report());
  meet(patience);
  if (world().rank > 0) {
    if (!send_text(0, text, deadline_after(2 * patience))) refuse_silence(0, 2 * patience);
    part();
    return {};
  }
  std::vector<std::string> texts{text};
  for (int r = 1; r < world().size; ++r) texts.push_back(expect_text(r, patience));
  part();
  CollectedRun joint = put_together(program, placement, texts);
  start_together(program, placement, joint.times);
  return joint;
}

CollectedRun run_program_together(const Program& program, const DevicePlacement& placement, Actions& actions,
                                  RemoteBuffers& buffers, const ExecutorOptions& options,
                                  const std::function<std::string()>& report) {
  MpiTransport transport(program, placement, buffers);
  const auto run = [&] {
    Times times;
    {
      const StopSignal signal;
      times = run_program(program, actions, &transport, options);
    }
    transport.finish();
    return times;
  };
  return run_together(program, placement, options.timeout, run, report);
}

namespace {

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::string> exchange(const std::string& local) {
  const Patience patience = patience_for_equals();
  meet(patience);
  if (world().rank > 0) {
    if (!send_text(0, local, deadline_after(2 * patience))) refuse_silence(0, 2 * patience);
    const std::string joined = expect_text(0, 2 * patience);
    ByteReader in(joined);
    std::vector<std::string> texts;
    for (int r = 0; r < world().size; ++r) {
      const std::vector<char> text = in.get_list<char>();
      texts.emplace_back(text.begin(), text.end());
    }
    return texts;
  }
  std::vector<std::string> texts{local};
  for (int r = 1; r < world().size; ++r) texts.push_back(expect_text(r, patience));
  ByteWriter out;
  for (const std::string& text : texts) out.put(bytes_of(text));
  const std::string joined = out.take();
  for (int r = 1; r < world().size; ++r)
    if (!send_text(r, joined, deadline_after(patience))) refuse_silence(r, patience);
  return texts;
}

namespace {

class CommonBits {
 public:
  CommonBits() = default;
  CommonBits(const CommonBits&) = delete;
  CommonBits& operator=(const CommonBits&) = delete;
  ~CommonBits() {
    if (request_ != MPI_REQUEST_NULL) leave_behind(bits_);
  }

  std::optional<std::uint64_t> of_all(std::uint64_t local) {
    if (request_ == MPI_REQUEST_NULL) {
      bits_->local = local;
      check(MPI_Iallreduce(&bits_->local, &bits_->common, 1, MPI_UINT64_T, MPI_BAND, wires().decisions, &request_));
    }
    int done = 0;
    check(MPI_Test(&request_, &done, MPI_STATUS_IGNORE));
    return done ? std::optional(bits_->common) : std::nullopt;
  }

 private:
  struct Bits {
    std::uint64_t local = 0, common = 0;
  };
  std::shared_ptr<Bits> bits_ = std::make_shared<Bits>();
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace

struct ProcessGroup::Hidden {
  StopSignal signal;
  Pulses pulses;
  CommonBits common_bits;
};

ProcessGroup::ProcessGroup() : hidden_(std::make_unique<Hidden>()) {}
ProcessGroup::~ProcessGroup() = default;

std::optional<Transport::Pulse> ProcessGroup::pulse(const Transport::Pulse& local) {
  return hidden_->pulses.pulse(local);
}
std::optional<std::uint64_t> ProcessGroup::common_bits(std::uint64_t local) {
  return hidden_->common_bits.of_all(local);
}
bool ProcessGroup::stop_requested_by_launcher() const { return real::stop_requested_by_launcher(); }

}  // namespace stagecraft::real
