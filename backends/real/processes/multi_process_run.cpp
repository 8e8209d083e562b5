// A run of several processes: they check that all have the same program, run their parts, and send the first their
// times.

#include "backends/real/multi_process_run.hpp"

#include <algorithm>
#include <bit>
#include <memory>

#include <fmt/core.h>

#include "backends/real/byte_text.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/processes/first_clock.hpp"
#include "backends/real/processes/meeting.hpp"
#include "backends/real/processes/reduction.hpp"
#include "backends/real/processes/wire.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::real {
namespace {

[[noreturn]] void refuse_silence(int process, Patience patience) {
  const std::string loss = wire().loss(process);
  throw BackendError(
      loss.empty() ? fmt::format("{} has not answered for {:.3g} s", process_name(process), patience.count()) : loss);
}

/// Text from a process that has met this one.
std::string expect_text(int process, Patience patience) {
  std::optional<std::string> text = receive_large_text(process, WordKind::Report, patience);
  if (!text) refuse_silence(process, patience);
  return std::move(*text);
}

/// A text that may be so large that it leaves while another process receives it.
void send_text(int process, std::string text, Patience patience) {
  wire().post(process, WordKind::Report, std::move(text));
  if (!wait_while_moving([&] { return wire().all_left() || !wire().loss(process).empty(); }, patience))
    refuse_silence(process, patience);
}

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

/// What each process sends, by process. The others have more patience, so that the first says who is silent.
std::vector<std::string> exchange_texts(const std::string& local, Patience patience) {
  if (world().rank > 0) {
    send_text(0, local, longer(patience));
    const std::string joined = expect_text(0, longer(patience));
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
  for (int r = 1; r < world().size; ++r) send_text(r, joined, patience);
  return texts;
}

/// FNV-1a, in pieces of eight bytes, over what decides which work and which messages a program has. Durations and the
/// workload follow from the scenario as these do.
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
  for (const CollectiveCall& c : p.collectives) {
    for (const int n : {c.first.value, c.members, c.shape, c.rounds, c.tie, c.bucket}) add(n);
    add(static_cast<int>(c.purpose)), add(std::bit_cast<std::int64_t>(c.share)),
        add(std::bit_cast<std::int64_t>(c.after));
  }
  for (const CollectiveShape& s : p.collective_shapes)
    add(static_cast<int>(s.kind)), add(static_cast<std::int64_t>(s.bytes));
  for (const TransferShape& s : p.transfer_shapes) {
    add(static_cast<std::int64_t>(s.bytes)), add(s.edge), add(static_cast<int>(s.role));
    add(s.rows.first), add(s.rows.count);
  }
  add(p.iterations), add(p.mini_batch), add(p.rendezvous);
  return hash;
}

void require_same_program(const Program& program, Patience patience) {
  const std::string local = fmt::format("{}", fingerprint(program));
  const std::vector<std::string> prints = exchange_texts(local, patience);
  if (std::count(prints.begin(), prints.end(), local) != world().size)
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
  barrier(patience_for_equals());
  set_run_patience(patience);
  require_same_program(program, patience);
  Clocks clocks;
  clocks.before = read_first_clock(patience);
  const Times times = run();
  clocks.after = read_first_clock(patience);
  const std::string text = times_message(program, placement, times, clocks, report());
  barrier(patience);
  if (world().rank > 0) {
    send_text(0, text, longer(patience));
    set_separated();
    return {};
  }
  std::vector<std::string> texts{text};
  for (int r = 1; r < world().size; ++r) texts.push_back(expect_text(r, patience));
  set_separated();
  CollectedRun joint = put_together(program, placement, texts);
  start_together(program, placement, joint.times);
  return joint;
}

CollectedRun run_program_together(const Program& program, const DevicePlacement& placement, Actions& actions,
                                  RemoteBuffers& buffers, const ExecutorOptions& options,
                                  const std::function<std::string()>& report) {
  const std::unique_ptr<MessageTransport> transport = wire().transport(program, placement, buffers);
  const auto run = [&] {
    transport->connect(options.timeout);
    barrier(Patience(options.timeout));  // Changes of the cluster count from one begin.
    if (world().rank == 0) tell_network();
    Times times;
    {
      const StopSignal signal;
      times = run_program(program, actions, transport.get(), options);
    }
    transport->finish(options.timeout);
    return times;
  };
  return run_together(program, placement, options.timeout, run, report);
}

std::vector<std::string> all_gather_texts(const std::string& local) {
  const Patience patience = patience_for_equals();
  barrier(patience);
  return exchange_texts(local, patience);
}

struct ProcessGroup::Hidden {
  StopSignal signal;
  Reduction pulses = pulse_reduction();
  Reduction common_bits{WordKind::Decision, [](std::uint64_t a, std::uint64_t b) { return a & b; }};
};

ProcessGroup::ProcessGroup() : hidden_(std::make_unique<Hidden>()) {}
ProcessGroup::~ProcessGroup() = default;

std::optional<Transport::Pulse> ProcessGroup::pulse(const Transport::Pulse& local) {
  return reduce_pulse(hidden_->pulses, local);
}
std::optional<std::uint64_t> ProcessGroup::common_bits(std::uint64_t local) {
  const auto bits = hidden_->common_bits.reduce({local});
  return bits ? std::optional(bits->front()) : std::nullopt;
}
bool ProcessGroup::stop_requested_by_launcher() const { return real::stop_requested_by_launcher(); }

}  // namespace stagecraft::real
