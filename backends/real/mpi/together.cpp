#include <algorithm>

#include "backends/real/byte_text.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/transport.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/real/together.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

constexpr int kClockRounds = 32;

void answer(int process) {
  send_text(process, "your turn");
  for (int round = 0; round < kClockRounds; ++round) {
    check(MPI_Recv(nullptr, 0, MPI_BYTE, process, 0, wires().words, MPI_STATUS_IGNORE));
    const double now = steady_seconds();
    check(MPI_Send(&now, 1, MPI_DOUBLE, process, 0, wires().words));
  }
}

ClockReading ask() {
  receive_text(0);
  ClockReading best;
  for (int round = 0; round < kClockRounds; ++round) {
    double there = 0;
    const double asked = steady_seconds();
    check(MPI_Send(nullptr, 0, MPI_BYTE, 0, 0, wires().words));
    check(MPI_Recv(&there, 1, MPI_DOUBLE, 0, 0, wires().words, MPI_STATUS_IGNORE));
    const ClockReading reading = clock_reading(asked, there, steady_seconds());
    if (round == 0 || reading.uncertainty < best.uncertainty) best = reading;
  }
  return best;
}

/// All processes read at the same time. Of many questions the one that was answered fastest counts.
ClockReading read_clock() {
  if (world().rank > 0) return ask();
  for (int process = 1; process < world().size; ++process) answer(process);
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

void require_same_program(const Program& program) {
  const std::uint64_t local = fingerprint(program);
  std::vector<std::uint64_t> fingerprints(world().size);
  check(MPI_Allgather(&local, 1, MPI_UINT64_T, fingerprints.data(), 1, MPI_UINT64_T, wires().words));
  if (std::count(fingerprints.begin(), fingerprints.end(), fingerprints.front()) != world().size)
    throw BackendError("the processes have read different scenarios, or are different versions of this program");
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

Joint put_together(const Program& p, const DevicePlacement& placement, const std::vector<std::string>& texts) {
  Joint joint;
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
  for (const Collective& c : p.collectives) level(c.first, c.members);
  if (p.rendezvous)
    for (const Transfer& t : p.transfers) level(t.send, 2);
}

}  // namespace

Joint run_together(const Program& program, const DevicePlacement& placement, const std::function<Times()>& run,
                   const std::function<std::string()>& report) {
  meet();
  require_same_program(program);
  Clocks clocks;
  clocks.before = read_clock();
  const Times times = run();
  clocks.after = read_clock();
  const std::string text = times_message(program, placement, times, clocks, report());
  meet();
  if (world().rank > 0) {
    send_text(0, text);
    part();
    return {};
  }
  std::vector<std::string> texts{text};
  for (int r = 1; r < world().size; ++r) texts.push_back(receive_text(r).value());
  part();
  Joint joint = put_together(program, placement, texts);
  start_together(program, placement, joint.times);
  return joint;
}

Joint run_program_together(const Program& program, const DevicePlacement& placement, Actions& actions,
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
  return run_together(program, placement, run, report);
}

namespace {

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::string> exchange(const std::string& local) {
  meet();
  if (world().rank > 0) {
    send_text(0, local);
    const std::string joined = receive_text(0).value();
    ByteReader in(joined);
    std::vector<std::string> texts;
    for (int r = 0; r < world().size; ++r) {
      const std::vector<char> text = in.get_list<char>();
      texts.emplace_back(text.begin(), text.end());
    }
    return texts;
  }
  std::vector<std::string> texts{local};
  for (int r = 1; r < world().size; ++r) texts.push_back(receive_text(r).value());
  ByteWriter out;
  for (const std::string& text : texts) out.put(bytes_of(text));
  const std::string joined = out.take();
  for (int r = 1; r < world().size; ++r) send_text(r, joined);
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
