#include "sim/report/files.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/report/memory.hpp"

namespace stagecraft {
namespace {

constexpr const char* kKinds[] = {"forward", "backward", "input_gradient", "weight_gradient", "recompute",
                                  "update",  "predict",  "send",           "receive"};

std::uint64_t bytes_of(const Program& program, const Instruction& i) {
  if (i.kind == InstructionKind::Collective) return program.shape(program.collective(i)).bytes;
  return i.is_compute() ? 0 : program.shape(i).bytes;
}

const char* kind_of(const Program& program, const Instruction& i) {
  if (i.kind != InstructionKind::Collective) return kKinds[static_cast<int>(i.kind)];
  return name(program.shape(program.collective(i)).kind);
}

}  // namespace

std::string spans_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  IdVector<InstructionId, bool> critical(program.size(), false);
  for (const InstructionId i : report.critical_path) critical[i] = true;
  std::string text =
      "id,instruction,kind,device,stream,stage,micro_batch,iteration,version,bytes,start_ns,end_ns,critical\n";
  auto out = std::back_inserter(text);
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.instructions[n];
    fmt::format_to(out, "{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:d}\n", n.value, to_text(program, n),
                   kind_of(program, i), csv_cell(cluster.devices[i.device].name), i.stream.value, i.stage.value,
                   i.number, program.iteration_of(i), program.version_of(i), bytes_of(program, i),
                   timeline.start[n] * 1e9, timeline.end[n] * 1e9, static_cast<bool>(critical[n]));
  }
  return text;
}

std::string memory_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  const MemoryHistory history(program, timeline);
  std::string text = "device,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\n";
  for (const DeviceId d : report.devices.ids()) {
    if (!report.devices[d].used) continue;
    const std::string device = csv_cell(cluster.devices[d].name);
    const std::string resident = shortest(program.memory[d].total().value);
    MemoryCurve curve = history.curve(d);
    if (curve.empty() || curve.front().time > 0) curve.insert(curve.begin(), MemorySample{});
    for (const MemorySample& s : curve)
      fmt::format_to(std::back_inserter(text), "{},{:.3f},{},{},{},{}\n", device, s.time * 1e9, resident,
                     shortest(s.stash.value), shortest(s.received.value), shortest(s.outgoing.value));
  }
  return text;
}

std::string losses_csv(const Learnt& learnt) {
  std::string text = "iteration,loss\n";
  for (std::size_t i = 0; i < learnt.losses.size(); ++i) text += fmt::format("{},{:.17g}\n", i, learnt.losses[i]);
  return text;
}

namespace {

constexpr const char* kColors[] = {"thread_state_running",
                                   "rail_animation",
                                   "rail_response",
                                   "rail_load",
                                   "thread_state_iowait",
                                   "good",
                                   "rail_idle",
                                   "grey",
                                   "grey",
                                   "terrible"};

/// A JSON string without its quotes.
std::string stream_title(const Stream& stream, const Cluster& cluster) {
  const std::string peer = stream.peer.valid() ? cluster.devices[stream.peer].name : "";
  switch (stream.kind) {
    case StreamKind::Compute:
      return "compute";
    case StreamKind::Communication:
      return peer.empty() ? "communication" : "communication with " + peer;
    case StreamKind::Send:
      return "send to " + peer;
    case StreamKind::Receive:
      return "receive from " + peer;
    case StreamKind::Collective:
      return "collective";
  }
  return {};
}

class TraceWriter {
 public:
  TraceWriter(const Program& program, const Timeline& timeline, const Cluster& cluster)
      : p_(program), t_(timeline), cluster_(cluster) {}

  std::string run() {
    text_ = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
    for (int d = 0; d < p_.devices; ++d)
      event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":{}}})", d,
            Json(cluster_.devices[DeviceId{d}].name).dump());
    assign_tracks();
    for (std::size_t n = 0; n < p_.size(); ++n) slice(n);
    for (std::size_t t = 0; t < p_.transfers.size(); ++t) arrow(t);
    memory();
    if (!cluster_.changes.empty()) changes();
    text_ += "\n]}\n";
    return std::move(text_);
  }

 private:
  template <class... Args>
  void event(fmt::format_string<Args...> format, Args&&... args) {
    text_ += first_ ? "{" : ",\n{";
    first_ = false;
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '}';
  }
  /// Microseconds in whole picoseconds, so that a slice ends exactly where the next begins.
  static double us(double seconds) { return std::round(seconds * 1e12) / 1e6; }

  /// Every slice goes to a track of its stream that is free at its start; a stream in strict order needs one.
  void assign_tracks() {
    struct Track {
      int id;
      double free_at;
    };
    std::vector<std::vector<Track>> tracks(p_.streams.size() + p_.devices);
    std::vector<std::uint32_t> order(p_.size());
    for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<std::uint32_t>(n);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return t_.start[InstructionId{a}] < t_.start[InstructionId{b}];
    });
    track_.resize(p_.size());
    int next = 0;
    for (const std::uint32_t n : order) {
      const Instruction& i = p_.at(InstructionId{n});
      const bool ordered = i.stream.valid();
      auto& lanes = tracks[ordered ? i.stream.value : p_.streams.size() + i.device.value];
      auto free = std::find_if(lanes.begin(), lanes.end(),
                               [&](const Track& t) { return t.free_at <= t_.start[InstructionId{n}]; });
      if (free == lanes.end()) {
        const std::string title = ordered ? stream_title(p_.streams[i.stream], cluster_) : "messages";
        event(R"("ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":{}}})", i.device.value, next,
              Json(title).dump());
        event(R"("ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}})", i.device.value,
              next, ordered ? i.stream.value : static_cast<int>(p_.streams.size()));
        lanes.push_back({next++, 0});
        free = lanes.end() - 1;
      }
      free->free_at = t_.end[InstructionId{n}];
      track_[n] = free->id;
    }
  }

  void slice(std::size_t n) {
    const Instruction& i = p_.at(InstructionId{n});
    event(
        R"("ph":"X","name":"{}","cat":"{}","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f},"cname":"{}","args":{{"id":{},"iteration":{},"version":{}}})",
        to_text(p_, InstructionId{n}), i.is_compute() ? "compute" : "communication", i.device.value, track_[n],
        us(t_.start[InstructionId{n}]), us(t_.end[InstructionId{n}]) - us(t_.start[InstructionId{n}]),
        kColors[static_cast<std::size_t>(i.kind)], n, p_.iteration_of(i), p_.version_of(i));
  }

  void arrow(std::size_t t) {
    const Transfer& transfer = p_.transfers[t];
    const std::size_t s = transfer.send.value, r = transfer.receive.value;
    event(R"("ph":"s","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{:.6f})", t,
          p_.at(InstructionId{s}).device.value, track_[s], us(t_.start[InstructionId{s}]));
    event(R"("ph":"f","bp":"e","name":"message","cat":"message","id":{},"pid":{},"tid":{},"ts":{:.6f})", t,
          p_.at(InstructionId{r}).device.value, track_[r], us(t_.end[InstructionId{r}]));
  }

  void memory() {
    const MemoryHistory history(p_, t_);
    for (int d = 0; d < p_.devices; ++d) {
      const Bytes resident = p_.memory[DeviceId{d}].total();
      const auto counter = [&](double time, const MemorySample& s) {
        event(
            R"("ph":"C","name":"memory MB","pid":{},"ts":{:.6f},"args":{{"model":{:.3f},"activations":{:.3f},"messages":{:.3f}}})",
            d, us(time), resident.value / 1e6, s.stash.value / 1e6, (s.received + s.outgoing).value / 1e6);
      };
      counter(0, {});
      for (const MemorySample& s : history.curve(DeviceId{d})) counter(s.time, s);
    }
  }

  /// Writes a process after the processes of the devices, with a track for each change. A periodic change shows its
  /// first times only.
  void changes() {
    constexpr int kMostTimes = 1000;
    const double end = t_.last_end().value;
    event(R"("ph":"M","name":"process_name","pid":{},"args":{{"name":"changes"}})", p_.devices);
    for (std::size_t c = 0; c < cluster_.changes.size(); ++c) {
      const Change& change = cluster_.changes[c];
      const double until = std::min(end, change.until.value), every = change.every.value;
      double from = change.from.value;
      for (int time = 0; time < kMostTimes && from < until; ++time) {
        const double over = every > 0 ? std::min(until, from + change.lasts.value) : until;
        event(R"("ph":"X","name":{},"cat":"change","pid":{},"tid":{},"ts":{:.6f},"dur":{:.6f})",
              Json(to_text(change, cluster_)).dump(), p_.devices, c, us(from), us(over) - us(from));
        from = every > 0 ? change.from.value + (time + 1) * every : until;
      }
    }
  }

  const Program& p_;
  const Timeline& t_;
  const Cluster& cluster_;
  std::vector<int> track_;
  bool first_ = true;
  std::string text_;
};

}  // namespace

std::string chrome_trace(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  return TraceWriter(program, timeline, cluster).run();
}

}  // namespace stagecraft
