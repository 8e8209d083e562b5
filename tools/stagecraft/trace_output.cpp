// Writes traces of `run`: to the file of --trace, and into the run folder; compressed where they are large, and with
// the micro-batches that --micro-batches names.

#include "tools/stagecraft/run_folder.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "tools/stagecraft/gzip.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostPlain = 100'000;     ///< Instructions of a trace of about 40 MB.
constexpr std::size_t kMostTraced = 1'000'000;  ///< Viewers open no larger trace.

/// "0..7" or "5", counted from 0 over the whole run.
std::optional<MicroBatchRange> asked_range(const Arguments& a) {
  if (!a.has("micro-batches")) return {};
  const std::string given = a.text("micro-batches");
  std::string_view text = given;
  const std::optional<int> first = read_number(text);
  std::optional<int> last = first;
  if (first && text.starts_with("..")) {
    text.remove_prefix(2);
    last = read_number(text);
  }
  if (!first || !last || !text.empty() || *last < *first)
    throw InputError(fmt::format("--micro-batches '{}' is not a range of micro-batches", given),
                     "write 0..7, counted from 0 over the whole run");
  return MicroBatchRange{*first, *last};
}

/// The first micro-batches of a run, as many as a viewer opens.
MicroBatchRange first_range(const Program& program) {
  int count = 0;
  for (const int of_stage : program.micro_batches) count = std::max(count, of_stage * program.iterations);
  const double share = static_cast<double>(kMostTraced) / static_cast<double>(program.size());
  return {0, std::max(1, static_cast<int>(share * count)) - 1};
}

std::string trace_of(const CompiledExperiment& p, const Outcome& o, const std::optional<MicroBatchRange>& range) {
  return chrome_trace(p.program, o.timeline, p.cluster(), {.plan = &p.plan, .report = &o.report, .range = range});
}

/// Viewers open compressed traces, too, and these are about a tenth as large.
void suggest_compression(const std::string& trace) {
  constexpr double kLarge = 10e6;
  if (static_cast<double>(trace.size()) > kLarge)
    print_error(
        "hint: the trace has {:.0f} MB; --trace NAME.json.gz writes it compressed, which ui.perfetto.dev opens, and "
        "--micro-batches 0..7 a part of it\n",
        static_cast<double>(trace.size()) / 1e6);
}

}  // namespace

Argument trace_range_argument() {
  return {"--micro-batches", Argument::Kind::Text,
          "Which micro-batches a trace has, such as 0..7, counted from 0 over the whole run (default: all that viewers "
          "open)"};
}

void check_trace_options(const Arguments& a) {
  if (asked_range(a) && !a.has("trace") && !a.has("out"))
    throw InputError("--micro-batches chooses what a trace has, and none is written",
                     "--trace FILE or --out FOLDER; the scenario has its micro-batches by --set run.micro_batches=N");
  if (a.has("trace")) check_output_of(a, "trace");
  if (a.text("trace").ends_with(".gz")) check_gzip();
}

void write_trace(const Arguments& a, const CompiledExperiment& p, const Outcome& o) {
  const bool compressed = a.text("trace").ends_with(".gz");
  if (!o.timeline.instruction_times) {
    print_error("{} is not written: instructions were not timed (run.gpu.timing: off)\n", a.text("trace"));
    return;
  }
  const std::string text = trace_of(p, o, asked_range(a));
  write_output_of(a, "trace", compressed ? gzip(text) : text, CommentStyle::None);
  print_error("wrote {}\n", a.text("trace"));
  if (!compressed) suggest_compression(text);
}

RunFile trace_file(const Arguments& a, const CompiledExperiment& p, const Outcome& o) {
  std::optional<MicroBatchRange> range = asked_range(a);
  if (!range && p.program.size() > kMostTraced) {
    range = first_range(p.program);
    print_error(
        "note: the trace has micro-batches {}..{}, because viewers open no {} instructions; --micro-batches chooses "
        "others\n",
        range->first, range->last, p.program.size());
  }
  if (p.program.size() <= kMostPlain || !has_gzip())
    return {"trace.json", [&p, &o, range] { return trace_of(p, o, range); }};
  return {"trace.json.gz", [&p, &o, range] { return gzip(trace_of(p, o, range)); }};
}

}  // namespace stagecraft
