#include <algorithm>
#include <map>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/published/simulated_predictions.hpp"

namespace stagecraft {
namespace {

constexpr int kNameWidth = 30;

std::string summary_cells(const ErrorSummary& s) {
  return fmt::format("{:5}{:9.1f}{:8.1f}{:8.1f}{:8.1f}{:+8.1f}{:8}", s.count, 100 * s.median, 100 * s.p90,
                     100 * s.worst, 100 * s.mape, 100 * s.mean, s.within_tenth);
}

std::string time_table(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  const OneConstantFormula one_constant(sets, devices);
  std::string text = fmt::format(
      "Predicted iterations, errors in %: closed form from shapes; on the right one rate for each device type and\n"
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
    const std::vector<double> ours = time_errors(set, devices), theirs = one_constant.errors(set);
    line(set.name, ours, theirs);
    errors.insert(errors.end(), ours.begin(), ours.end());
    all_of_one.insert(all_of_one.end(), theirs.begin(), theirs.end());
  }
  line("all", errors, all_of_one);
  return text;
}

std::string calibration_list(std::span<const PredictionSet> sets) {
  std::string text;
  for (const PredictionSet& set : sets)
    text += fmt::format("{:<{}}{}\n{:<{}}{}\n", set.name, kNameWidth, set.calibration, "", kNameWidth, set.source);
  return text;
}

std::string pair_table(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  std::string text = fmt::format(
      "Which of two divisions of one network, with as many devices and the same batch, is faster\n\n{:<{}}{:>7}{:>8}\n",
      "runs", kNameWidth, "pairs", "right");
  for (const PredictionSet& set : sets) {
    const PairRanking ranking = rank_pairs(set, time_errors(set, devices));
    if (ranking.pairs > 0)
      text += fmt::format("{:<{}}{:>7}{:>6.0f} %\n", set.name, kNameWidth, ranking.pairs, 100 * ranking.share());
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

std::vector<double> errors_of_group(std::span<const PredictionSet> sets, PredictionSet::AblationGroup group,
                                    const AcceleratorsByName& devices, const CostTerms& terms) {
  std::vector<double> group_errors;
  for (const PredictionSet& set : sets)
    if (set.ablation == group) {
      const std::vector<double> errors = time_errors(set, devices, terms);
      group_errors.insert(group_errors.end(), errors.begin(), errors.end());
    }
  return group_errors;
}

std::string ablation_table(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  using Group = PredictionSet::AblationGroup;
  std::string text = fmt::format(
      "What each term is worth, errors in %: large dense networks, and small ones. Fitted again: one factor on the "
      "share\n"
      "of each device type, with the least MAPE of the large networks\n\n"
      "{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8} |{:>9}{:>8}\n",
      "", kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %", "small n", "MAPE");
  const auto line = [&](const std::string& name, const AcceleratorsByName& types, const CostTerms& terms) {
    const ErrorSummary small = summarize(errors_of_group(sets, Group::Small, types, terms));
    text += fmt::format("{:<{}}{} |{:9}{:8.1f}\n", name, kNameWidth,
                        summary_cells(summarize(errors_of_group(sets, Group::Large, types, terms))), small.count,
                        100 * small.mape);
  };
  for (const Ablation& ablation : ablations()) {
    line(ablation.name, devices, ablation.terms);
    line("  ... share fitted again", with_shares_fitted(sets, Group::Large, devices, ablation.terms), ablation.terms);
  }
  return text;
}

}  // namespace

std::string prediction_text(std::span<const PredictionSet> sets) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::string text = time_table(sets, devices) + "\n" + calibration_list(sets);
  text += "\n" + pair_table(sets, devices) + "\n" + memory_table(sets);
  const bool has_ablation = std::any_of(sets.begin(), sets.end(), [](const PredictionSet& set) {
    return set.ablation == PredictionSet::AblationGroup::Large;
  });
  if (has_ablation) text += "\n" + ablation_table(sets, devices);
  return text;
}

std::string simulated_text(std::span<const PredictionSet> sets) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::string text = fmt::format(
      "Predicted iterations, errors in %: simulated event by event on `ideal`; on the right the closed form for the "
      "same\n"
      "runs, how far both are apart in the mean, and runs that no scenario says\n\n"
      "{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8} |{:>9}{:>8}{:>8}{:>6}\n",
      "runs", kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %", "median", "MAPE", "apart", "not");
  std::vector<double> all_events, all_closed, all_apart;
  std::map<std::string, int> reasons;
  int all_left_out = 0;
  const auto line = [&](const std::string& name, const std::vector<double>& events, const std::vector<double>& closed,
                        const std::vector<double>& apart, int left_out) {
    const ErrorSummary formula = summarize(closed);
    text += fmt::format("{:<{}}{} |{:9.1f}{:8.1f}{:8.1f}{:6}\n", name, kNameWidth, summary_cells(summarize(events)),
                        100 * formula.median, 100 * formula.mape, 100 * summarize(apart).mape, left_out);
  };
  for (const PredictionSet& set : sets) {
    std::vector<double> events, closed, apart;
    int left_out = 0;
    for (const MeasuredRun& m : set.runs) {
      std::string why;
      const auto simulated = simulate(m, why);
      if (!simulated) {
        ++left_out, ++reasons[why];
        continue;
      }
      const Seconds formula = iteration_time(m.run, devices.find(m.device)->second).total();
      events.push_back(simulated->time / m.measured - 1);
      closed.push_back(formula / m.measured - 1);
      apart.push_back(simulated->time / formula - 1);
    }
    line(set.name, events, closed, apart, left_out);
    all_events.insert(all_events.end(), events.begin(), events.end());
    all_closed.insert(all_closed.end(), closed.begin(), closed.end());
    all_apart.insert(all_apart.end(), apart.begin(), apart.end());
    all_left_out += left_out;
  }
  line("all", all_events, all_closed, all_apart, all_left_out);
  for (const auto& [why, count] : reasons) text += fmt::format("not simulated, {:>4}: {}\n", count, why);
  return text;
}

namespace {

struct PredictionRow {
  const PredictionSet& set;
  const MeasuredRun& run;
  const IterationTime& time;
};

void append_time(std::string& text, Seconds time) { text += fmt::format("{:.6g}", time.value); }

/// A column of a part of the predicted time. `part` has no captures.
CsvColumn<PredictionRow> part_column(const char* name, const char* doc,
                                     void (*part)(std::string&, const PredictionRow&)) {
  return {number_column(name, "s", std::string("Part of the predicted time on the slowest stage: ") + doc), part};
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
      {number_column("predicted_s", "s", "Time of an iteration by the closed form from shapes."),
       [](Text& t, const Row& r) { t += shortest(r.time.total().value); }},
      {number_column("error", "", "predicted_s / measured_s - 1."),
       [](Text& t, const Row& r) { t += shortest(r.time.total() / r.run.measured - 1); }},
      part_column("products_s", "matrix products.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.products); }),
      part_column("attention_s", "attention.", [](Text& t, const Row& r) { append_time(t, r.time.spent.attention); }),
      part_column("memory_bound_s", "kernels that are bound by memory.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.memory_bound); }),
      part_column("launches_s", "launches of kernels.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.launches); }),
      part_column("tensor_s", "collectives of tensor parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.tensor); }),
      part_column("context_s", "messages of context parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.context); }),
      part_column("expert_s", "collectives of expert parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.expert); }),
      part_column("data_s", "collectives of data parallelism.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.data); }),
      part_column("messages_s", "messages between stages.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.messages); }),
      part_column("idle_s", "idle time.", [](Text& t, const Row& r) { append_time(t, r.time.idle()); })};
  return columns;
}

}  // namespace

std::vector<FileColumn> prediction_columns() { return file_columns(prediction_row_columns()); }

std::string prediction_csv(std::span<const PredictionSet> sets) {
  const AcceleratorsByName devices = accelerators_of(sets);
  std::string text = csv_header(prediction_columns());
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs)
      append_csv_row(text, prediction_row_columns(), {set, m, iteration_time(m.run, devices.find(m.device)->second)});
  return text;
}

}  // namespace stagecraft
