// Writes spans.csv, memory.csv and losses.csv of a run, from tables that have each column with its meaning, which
// `stagecraft schema` prints too.

#include "sim/output/files.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "sim/core/json.hpp"
#include "sim/core/text.hpp"
#include "sim/result/memory.hpp"

namespace stagecraft {
namespace {

std::uint64_t bytes_of(const Program& program, const Instruction& i) {
  if (i.kind == InstructionKind::Collective) return program.shape(program.collective(i)).bytes;
  return i.is_compute() ? 0 : program.shape(i).bytes;
}

std::string_view kind_of(const Program& program, const Instruction& i) {
  if (i.kind != InstructionKind::Collective) return label(i.kind).key;
  const CollectiveCall& call = program.collective(i);
  if (call.purpose == Purpose::LateForward) return "late";
  if (call.purpose == Purpose::Stash) return goes_up(program, call) ? "fetch" : "offload";
  return name(program.shape(program.collective(i)).kind);
}

/// "forward, backward, ..., receive": all kinds but collectives, which have names of their own.
std::string kinds_text() {
  std::vector<std::string> keys;
  for (InstructionKind kind{}; kind < InstructionKind::Collective; kind = next_kind(kind))
    keys.emplace_back(label(kind).key);
  return join(keys);
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
      {word_column("kind", kinds_text() + ", offload and fetch of a stash, late, or the kind of a collective."),
       [](Text& t, const Row& r) { t += kind_of(r.program, r.instruction()); }},
      {word_column("device", "Name of the device."),
       [](Text& t, const Row& r) { t += csv_cell(r.cluster.devices[r.instruction().device].name); }},
      {whole_column("stream", "Number of the stream; -1: in no stream, so bound by its dependencies alone."),
       [](Text& t, const Row& r) { append(t, r.instruction().stream.value); }},
      {whole_column("stage", "Stage, counted from 0; of communication the stage that makes the data."),
       [](Text& t, const Row& r) { append(t, r.instruction().stage.value); }},
      {whole_column(
           "micro_batch",
           "Micro-batch of the stage, counted from 0 through all iterations, also of a collective inside an op; "
           "of an update or a sum of gradients the number of the update."),
       [](Text& t, const Row& r) { append(t, r.program.shown_number(r.instruction())); }},
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
       [](Text& t, const Row& r) { t += shortest(r.sample.outgoing.value); }},
      {number_column("host_bytes", "bytes", "Activations in the memory of its host."),
       [](Text& t, const Row& r) { t += shortest(r.sample.host.value); }}};
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

}  // namespace stagecraft
