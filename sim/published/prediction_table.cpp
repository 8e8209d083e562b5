// Errors of predicted times and memory, ranking of pairs and intervals as text for `reproduce predictions`, and each
// run with its predicted time as CSV.

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/published/prediction_errors.hpp"

namespace stagecraft {
namespace {

constexpr int kNameWidth = 24;  // So that rows of one summary fit in 80 columns.

std::string summary_cells(const ErrorSummary& s) {
  return fmt::format("{:5}{:9.1f}{:8.1f}{:8.1f}{:8.1f}{:+8.1f}{:8}", s.count, 100 * s.median, 100 * s.p90,
                     100 * s.worst, 100 * s.mape, 100 * s.mean, s.within_tenth);
}

std::string time_table(std::span<const PredictionSet> sets) {
  const OneConstantFormula one_constant(sets);
  std::string text = fmt::format(
      "Predicted iterations, errors in %: simulated on `ideal`; on the right one rate for each device type and\n"
      "number format with the bubble of equal stages, fitted to these runs\n\n"
      "{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8} |{:>9}{:>8}{:>8}\n",
      "runs", kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %", "median", "MAPE", "<=10 %");
  std::vector<double> errors, all_of_one;
  const auto line = [&](const std::string& name, const std::vector<double>& ours, const std::vector<double>& theirs) {
    const ErrorSummary one = summarize(theirs);
    text += fmt::format("{:<{}}{} |{:9.1f}{:8.1f}{:8}\n", name, kNameWidth, summary_cells(summarize(ours)),
                        100 * one.median, 100 * one.mape, one.within_tenth);
  };
  for (const PredictionSet& set : sets) {
    const std::vector<double> ours = time_errors(set), theirs = one_constant.errors(set);
    line(set.name, ours, theirs);
    errors.insert(errors.end(), ours.begin(), ours.end());
    all_of_one.insert(all_of_one.end(), theirs.begin(), theirs.end());
  }
  line("all", errors, all_of_one);
  std::map<std::string, int> reasons;
  for (const PredictionSet& set : sets)
    for (const auto& [why, count] : set.not_predicted) reasons[why] += count;
  for (const auto& [why, count] : reasons) text += fmt::format("not simulated, {:>4}: {}\n", count, why);
  return text;
}

std::string calibration_list(std::span<const PredictionSet> sets) {
  std::string text;
  for (const PredictionSet& set : sets) {
    text += fmt::format("{:<{}}{}\n{:<{}}{}\n", set.name, kNameWidth, set.calibration, "", kNameWidth, set.source);
    if (!set.peers.empty()) text += fmt::format("{:<{}}{}\n", "", kNameWidth, set.peers);
  }
  return text;
}

/// Claims of the authors, on other runs than these.
constexpr const char* kPeers =
    "Errors that other simulators publish for their own runs, whose inputs are not published: Proteus 3.0 % in the\n"
    "mean (arXiv 2306.02267); Lumos 3.3 % from traces of the same runs (MLSys 2025); DistSim below 4 % (CF 2023); "
    "Echo\n"
    "8 % on 96 H800 (arXiv 2412.12487); SimAI 1.9 % (NSDI 2025); Multiverse below 3.0 % (NSDI 2025)\n";

std::string pair_table(std::span<const PredictionSet> sets) {
  std::string text = fmt::format(
      "Which of two divisions is faster: pairs of runs with one network, number of devices and batch, whose measured\n"
      "times differ by more than 2 %; then those whose predicted times do, too. Rank correlation: of all runs\n\n"
      "{:<{}}{:>7}{:>8}{:>9}{:>8}{:>18}\n",
      "runs", kNameWidth, "pairs", "right", "clear", "right", "rank correlation");
  for (const PredictionSet& set : sets) {
    const std::vector<double> errors = time_errors(set);
    const PairRanking ranking = rank_pairs(set, errors), clear = rank_pairs(set, errors, kSmallestDifference);
    if (ranking.pairs == 0) continue;
    const std::string share = clear.pairs > 0 ? fmt::format("{:.0f} %", 100 * clear.share()) : "-";
    text += fmt::format("{:<{}}{:>7}{:>6.0f} %{:>9}{:>8}{:>18.3f}\n", set.name, kNameWidth, ranking.pairs,
                        100 * ranking.share(), clear.pairs, share, rank_correlation(set, errors));
  }
  return text;
}

std::string memory_table(std::span<const PredictionSet> sets) {
  std::string text =
      fmt::format("Memory of the fullest device, errors in %\n\n{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}\n", "runs",
                  kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %");
  for (const PredictionSet& set : sets)
    if (const std::vector<double> errors = memory_errors(set); !errors.empty())
      text += fmt::format("{:<{}}{}\n", set.name, kNameWidth, summary_cells(summarize(errors)));
  return text;
}

/// Where lines would be too long, the part of a row after its bar is left out, and sentences are wrapped.
std::string fitted(const std::string& text, const TextLayout& layout) {
  if (layout.width <= 0) return text;
  bool left_out = false;
  std::string shown;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t bar = line.find(" |");
    const bool is_long = display_width(line) > static_cast<std::size_t>(layout.width) && bar != std::string::npos;
    left_out |= is_long;
    shown += (is_long ? line.substr(0, bar) : line) + "\n";
  }
  shown.pop_back();  // split() ends with an empty line.
  if (left_out) shown += "\nnot shown: the columns on the right, for which there is no room (--wide)\n";
  return wrap_lines(shown, layout.width);
}

}  // namespace

std::string prediction_text(std::span<const PredictionSet> sets, const TextLayout& layout) {
  return fitted(time_table(sets) + "\n" + calibration_list(sets) + "\n" + kPeers + "\n" + coverage_text(sets) + "\n" +
                    pair_table(sets) + "\n" + memory_table(sets),
                layout);
}

namespace {

struct PredictionRow {
  const PredictionSet& set;
  const MeasuredRun& run;
};

void append_time(std::string& text, Seconds time) { text += fmt::format("{:.6g}", time.value); }

/// A column of a part of the predicted time. `part` has no captures.
CsvColumn<PredictionRow> part_column(const char* name, const char* doc,
                                     void (*part)(std::string&, const PredictionRow&)) {
  return {number_column(name, "s", std::string("Part of the predicted time, mean over the devices: ") + doc), part};
}

const CsvColumns<PredictionRow>& prediction_row_columns() {
  using Row = PredictionRow;
  using Text = std::string;
  static const CsvColumns<Row> columns{
      {word_column("runs", "Name of the set of measured runs: a file of scenarios/predictions."),
       [](Text& t, const Row& r) { t += csv_cell(r.set.name); }},
      {word_column("name", "Name of the run."), [](Text& t, const Row& r) { t += csv_cell(r.run.name); }},
      {number_column("measured_s", "s", "Published time of an iteration."),
       [](Text& t, const Row& r) { t += shortest(r.run.measured.value); }},
      {number_column("predicted_s", "s", "Time of an iteration, simulated on `ideal`."),
       [](Text& t, const Row& r) { t += shortest(r.run.predicted.time.value); }},
      {number_column("error", "", "predicted_s / measured_s - 1."),
       [](Text& t, const Row& r) { t += shortest(r.run.predicted.time / r.run.measured - 1); }},
      part_column("products_s", "matrix products.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.products); }),
      part_column("attention_s", "attention.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.attention); }),
      part_column("memory_bound_s", "kernels that are bound by memory.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.memory_bound); }),
      part_column("launches_s", "launches of kernels.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.launches); }),
      part_column("tensor_s", "collectives of tensor parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.tensor); }),
      part_column("context_s", "messages of context parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.context); }),
      part_column("expert_s", "collectives of expert parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.expert); }),
      part_column("data_s", "collectives of data parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.data); }),
      part_column("messages_s", "messages between stages.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.messages); }),
      part_column("optimizer_s", "updates of the weights.",
                  [](Text& t, const Row& r) { append_time(t, r.run.predicted.spent.optimizer); }),
      part_column("idle_s", "idle time.", [](Text& t, const Row& r) { append_time(t, r.run.predicted.idle); }),
      {number_column("memory_bytes", "bytes", "Published memory of the fullest device; 0 where it was not published."),
       [](Text& t, const Row& r) { t += shortest(r.run.memory.value); }},
      {number_column(
           "predicted_memory_bytes", "bytes",
           "Simulated memory of the fullest device, with what the process has in addition where the published "
           "memory counts that."),
       [](Text& t, const Row& r) { t += shortest((r.run.predicted.memory + r.run.process_memory()).value); }}};
  return columns;
}

}  // namespace

std::vector<FileColumn> prediction_columns() { return file_columns(prediction_row_columns()); }

std::string prediction_csv(std::span<const PredictionSet> sets) {
  std::string text = csv_header(prediction_columns());
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) append_csv_row(text, prediction_row_columns(), {set, m});
  return text;
}

}  // namespace stagecraft
