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

FileColumn whole_bytes(std::string name, std::string doc) {
  FileColumn column = whole_column(std::move(name), std::move(doc));
  column.unit = "bytes";
  return column;
}

struct SpanRow {
  const Program& program;
  const Timeline& timeline;
  const Cluster& cluster;
  InstructionId id;
  bool critical;

  const Instruction& instruction() const { return program.instructions[id]; }
};

template <class Number>
void append(std::string& text, Number number) {
  fmt::format_to(std::back_inserter(text), "{}", number);
}
/// Three decimals of a nanosecond, which is whole picoseconds.
void append_ns(std::string& text, double seconds) { fmt::format_to(std::back_inserter(text), "{:.3f}", seconds * 1e9); }

const CsvColumns<SpanRow>& span_columns() {
  using Row = SpanRow;
  using Text = std::string;
  static const CsvColumns<Row> columns{
      {whole_column("id", "Number of the instruction; what it waits for has smaller numbers."),
       [](Text& t, const Row& r) { append(t, r.id.value); }},
      {word_column("instruction", "The instruction, such as 0F3; stagecraft explain 0F3 explains the notation."),
       [](Text& t, const Row& r) { t += to_text(r.program, r.id); }},
      {word_column("kind",
                   "forward, backward, input_gradient, weight_gradient, recompute, update, predict, send, receive, or "
                   "the kind of a collective."),
       [](Text& t, const Row& r) { t += kind_of(r.program, r.instruction()); }},
      {word_column("device", "Name of the device."),
       [](Text& t, const Row& r) { t += csv_cell(r.cluster.devices[r.instruction().device].name); }},
      {whole_column("stream", "Number of the stream; -1: in no stream, so bound by its dependencies alone."),
       [](Text& t, const Row& r) { append(t, r.instruction().stream.value); }},
      {whole_column("stage", "Stage, counted from 0; of communication the stage that makes the data."),
       [](Text& t, const Row& r) { append(t, r.instruction().stage.value); }},
      {whole_column("micro_batch",
                    "Micro-batch of the stage, counted from 0 through all iterations; of an update or a collective the "
                    "number of the update."),
       [](Text& t, const Row& r) { append(t, r.instruction().number); }},
      {whole_column("iteration", "Iteration, counted from 0."),
       [](Text& t, const Row& r) { append(t, r.program.iteration_of(r.instruction())); }},
      {whole_column("version",
                    "Version of the weights that the instruction reads, makes or predicts from; 0 for communication."),
       [](Text& t, const Row& r) { append(t, r.program.version_of(r.instruction())); }},
      {whole_bytes("bytes", "Size of a message or collective; 0 for computation."),
       [](Text& t, const Row& r) { append(t, bytes_of(r.program, r.instruction())); }},
      {number_column("start_ns", "ns", "Start, from the start of the run."),
       [](Text& t, const Row& r) { append_ns(t, r.timeline.start[r.id]); }},
      {number_column("end_ns", "ns", "End, from the start of the run."),
       [](Text& t, const Row& r) { append_ns(t, r.timeline.end[r.id]); }},
      {yes_column("critical", "Whether it is on the critical path."),
       [](Text& t, const Row& r) { t += r.critical ? '1' : '0'; }}};
  return columns;
}

/// A memory sample with the texts of its device.
struct MemoryRow {
  const std::string &device, &resident;
  const MemorySample& sample;
};

const CsvColumns<MemoryRow>& memory_columns() {
  using Row = MemoryRow;
  using Text = std::string;
  static const CsvColumns<Row> columns{
      {word_column("device", "Name of the device."), [](Text& t, const Row& r) { t += r.device; }},
      {number_column("time_ns", "ns", "From this time on, counted from the start of the run."),
       [](Text& t, const Row& r) { append_ns(t, r.sample.time); }},
      {number_column("resident_bytes", "bytes", "Weights, gradients and optimizer state."),
       [](Text& t, const Row& r) { t += r.resident; }},
      {number_column("stash_bytes", "bytes", "Activations kept for backward."),
       [](Text& t, const Row& r) { t += shortest(r.sample.stash.value); }},
      {number_column("received_bytes", "bytes", "Received messages that are not consumed yet."),
       [](Text& t, const Row& r) { t += shortest(r.sample.received.value); }},
      {number_column("outgoing_bytes", "bytes", "Messages that are not sent yet."),
       [](Text& t, const Row& r) { t += shortest(r.sample.outgoing.value); }}};
  return columns;
}

struct LossRow {
  std::size_t iteration;
  double loss;
};

const CsvColumns<LossRow>& loss_columns() {
  static const CsvColumns<LossRow> columns{
      {whole_column("iteration", "Iteration, counted from 0."),
       [](std::string& t, const LossRow& r) { append(t, r.iteration); }},
      {number_column("loss", "", "Loss of the iteration, as the pipeline computes it, with all digits."),
       [](std::string& t, const LossRow& r) { fmt::format_to(std::back_inserter(t), "{:.17g}", r.loss); }}};
  return columns;
}

}  // namespace

std::vector<FileColumn> spans_columns() { return file_columns(span_columns()); }
std::vector<FileColumn> memory_csv_columns() { return file_columns(memory_columns()); }
std::vector<FileColumn> losses_columns() { return file_columns(loss_columns()); }

std::string spans_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  IdVector<InstructionId, bool> critical(program.size(), false);
  for (const InstructionId i : report.critical_path) critical[i] = true;
  std::string text = csv_header(spans_columns());
  for (const InstructionId n : program.instructions.ids())
    append_csv_row(text, span_columns(), {program, timeline, cluster, n, static_cast<bool>(critical[n])});
  return text;
}

std::string memory_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  const MemoryHistory history(program, timeline);
  std::string text = csv_header(memory_csv_columns());
  for (const DeviceId d : report.devices.ids()) {
    if (!report.devices[d].used) continue;
    const std::string device = csv_cell(cluster.devices[d].name);
    const std::string resident = shortest(program.memory[d].total().value);
    MemoryCurve curve = history.curve(d);
    if (curve.empty() || curve.front().time > 0) curve.insert(curve.begin(), MemorySample{});
    for (const MemorySample& s : curve) append_csv_row(text, memory_columns(), {device, resident, s});
  }
  return text;
}

std::string losses_csv(const Learnt& learnt) {
  std::string text = csv_header(losses_columns());
  for (std::size_t i = 0; i < learnt.losses.size(); ++i) append_csv_row(text, loss_columns(), {i, learnt.losses[i]});
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
