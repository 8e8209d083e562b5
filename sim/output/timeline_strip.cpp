// Collects what a timeline picture shows, from a program and its timeline or from the files of an earlier run, and lets
// one row stand for devices whose ops are equal.

#include "sim/output/timeline_strip.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <tuple>
#include <utility>

#include "sim/core/json.hpp"
#include "sim/output/html_data.hpp"
#include "sim/output/json_files.hpp"

namespace stagecraft {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr int kFirstIteration = 0;

/// Kind, name, start and end of each op of a row, times in millionths of the whole.
using RowSignature = std::vector<std::tuple<InstructionKind, std::string, long, long>>;

RowSignature signature(const TimelineRow& row, double length) {
  const auto part = [&](double time) { return length > 0 ? std::lround(1e6 * time / length) : 0; };
  RowSignature list;
  for (const TimelineSpan& s : row.spans)
    if (!s.is_message) list.emplace_back(s.kind, s.text, part(s.start), part(s.end));
  return list;
}

/// Drops rows without ops, and lets one row stand for all whose ops are equal.
void fold_rows(TimelineStrip& strip) {
  std::map<RowSignature, std::size_t> first;
  std::vector<TimelineRow> rows;
  for (TimelineRow& row : strip.rows) {
    RowSignature ops = signature(row, strip.length);
    if (ops.empty()) continue;
    const auto [at, fresh] = first.try_emplace(std::move(ops), rows.size());
    if (fresh)
      rows.push_back(std::move(row));
    else
      ++rows[at->second].count;
  }
  strip.rows = std::move(rows);
}

double last_op(const TimelineStrip& strip) {
  double end = 0;
  for (const TimelineRow& row : strip.rows)
    for (const TimelineSpan& s : row.spans)
      if (!s.is_message) end = std::max(end, s.end);
  return end;
}

/// The kind in which an instruction of spans.csv is drawn; nothing where it is not.
std::optional<InstructionKind> drawn_kind(const HtmlOp& op) {
  if (op.kind == "send") return op.text.ends_with('F') ? InstructionKind::Forward : InstructionKind::Backward;
  for (InstructionKind kind{}; kind < InstructionKind::Send; kind = next_kind(kind))
    if (op.kind == label(kind).key) return kind;
  return std::nullopt;
}

}  // namespace

TimelineStrip timeline_strip(const Program& program, const Timeline& timeline, const Cluster& cluster,
                             const std::string& title, std::optional<int> iteration) {
  TimelineStrip strip{title, std::vector<TimelineRow>(program.devices)};
  for (std::size_t d = 0; d < strip.rows.size(); ++d) strip.rows[d].device = cluster.devices[DeviceId{d}].name;
  for (const InstructionId n : program.instructions.ids()) {
    const Instruction& i = program.at(n);
    if ((!i.is_compute() && i.kind != InstructionKind::Send) || (iteration && program.iteration_of(i) != *iteration))
      continue;
    const InstructionKind kind = i.is_compute()              ? i.kind
                                 : program.moves_gradient(i) ? InstructionKind::Backward
                                                             : InstructionKind::Forward;
    strip.rows[i.device.value].spans.push_back(
        {kind, !i.is_compute(), i.number, timeline.start[n], timeline.end[n], to_text(program, n)});
  }
  strip.length = iteration ? last_op(strip) : timeline.last_end().value;
  fold_rows(strip);
  return strip;
}

TimelineStrip timeline_strip(const KeptRun& run, const std::string& title) {
  const Json results = read_results(run.results, run.name + "/results.json");
  TimelineStrip strip{.title = title, .rows = {}};
  std::map<std::string, std::int64_t> devices;
  for (const Json& d : results.at("devices").items()) {
    devices.emplace(d.at("name").text(), std::ssize(strip.rows));
    strip.rows.push_back({.device = d.at("name").text(), .spans = {}});
  }
  const HtmlSpans spans = read_spans(run.spans, run.name + "/spans.csv", devices);
  std::size_t n = 0;
  for (const HtmlLane& lane : spans.lanes) {
    std::int64_t now = 0;
    for (std::int64_t k = 0; k < lane.spans; ++k, ++n) {
      const std::int64_t start = now + spans.gap[n];
      now = start + spans.length[n];
      const HtmlOp& op = spans.ops[spans.op[n]];
      const std::optional<InstructionKind> kind = drawn_kind(op);
      if (!kind || spans.iteration[n] != kFirstIteration) continue;
      strip.rows[lane.device].spans.push_back(
          {*kind, op.kind == "send", static_cast<int>(spans.micro[n]), kPicosecond * static_cast<double>(start),
           kPicosecond * static_cast<double>(now), op.text + std::to_string(spans.micro[n]) + op.after});
    }
  }
  strip.length = last_op(strip);
  fold_rows(strip);
  return strip;
}

}  // namespace stagecraft
