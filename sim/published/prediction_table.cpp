#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/text.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/published/prediction_errors.hpp"
#include "sim/published/simulated_predictions.hpp"

namespace stagecraft {
namespace {

constexpr int kNameWidth = 24;  // So that rows of one summary fit in 80 columns.

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

std::string pair_table(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  std::string text = fmt::format(
      "Which of two divisions is faster: pairs of runs with one network, number of devices and batch, whose measured\n"
      "times differ by more than 2 %; then those whose predicted times do, too. Rank correlation: of all runs\n\n"
      "{:<{}}{:>7}{:>8}{:>9}{:>8}{:>18}\n",
      "runs", kNameWidth, "pairs", "right", "clear", "right", "rank correlation");
  for (const PredictionSet& set : sets) {
    const std::vector<double> errors = time_errors(set, devices);
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
  std::string sources = fmt::format("The same, MAPE in % of each publication\n\n{:<{}} |", "", kNameWidth);
  for (const PredictionSet& set : sets)
    if (set.ablation == Group::Large) sources += fmt::format("{:>16}", set.name);
  sources += "\n";
  const auto line = [&](const std::string& name, const AcceleratorsByName& types, const CostTerms& terms) {
    const ErrorSummary small = summarize(errors_of_group(sets, Group::Small, types, terms));
    text += fmt::format("{:<{}}{} |{:9}{:8.1f}\n", name, kNameWidth,
                        summary_cells(summarize(errors_of_group(sets, Group::Large, types, terms))), small.count,
                        100 * small.mape);
    sources += fmt::format("{:<{}} |", name, kNameWidth);
    for (const PredictionSet& set : sets)
      if (set.ablation == Group::Large)
        sources += fmt::format("{:16.1f}", 100 * summarize(time_errors(set, types, terms)).mape);
    sources += "\n";
  };
  for (const Ablation& ablation : ablations()) {
    line(ablation.name, devices, ablation.terms);
    line("  ... share fitted again", with_shares_fitted(sets, Group::Large, devices, ablation.terms), ablation.terms);
  }
  return text + "\n" + sources;
}

}  // namespace

namespace {

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
  const AcceleratorsByName devices = accelerators_of(sets);
  std::string text = time_table(sets, devices) + "\n" + calibration_list(sets) + "\n" + kPeers;
  text += "\n" + coverage_text(sets, devices) + "\n" + pair_table(sets, devices) + "\n" + memory_table(sets);
  const bool has_ablation = std::any_of(sets.begin(), sets.end(), [](const PredictionSet& set) {
    return set.ablation == PredictionSet::AblationGroup::Large;
  });
  if (has_ablation) text += "\n" + ablation_table(sets, devices);
  return fitted(text, layout);
}

namespace {

/// Simulated runs of a set, or of all.
struct SimulatedErrors {
  std::vector<double> events, closed_form;  ///< Errors of times.
  std::vector<double> apart;                ///< Simulated over closed form, less 1.
  std::vector<double> memory;               ///< Errors of memory, where it was published.
  int in_interval = 0, with_interval = 0;   ///< Runs whose measured time is within the interval of their class.
  int not_simulated = 0;

  SimulatedErrors& operator+=(const SimulatedErrors& e) {
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    append(events, e.events), append(closed_form, e.closed_form), append(apart, e.apart), append(memory, e.memory);
    in_interval += e.in_interval, with_interval += e.with_interval, not_simulated += e.not_simulated;
    return *this;
  }
};

SimulatedErrors simulate_set(const PredictionSet& set, const AcceleratorsByName& devices,
                             const ErrorDistribution& distribution, std::map<std::string, int>& reasons) {
  SimulatedErrors errors;
  for (const MeasuredRun& m : set.runs) {
    std::string why;
    const auto simulated = simulate(m, why);
    if (!simulated) {
      ++errors.not_simulated, ++reasons[why];
      continue;
    }
    const Seconds formula = iteration_time(m.run, devices.find(m.device)->second).total();
    errors.events.push_back(simulated->time / m.measured - 1);
    errors.closed_form.push_back(formula / m.measured - 1);
    errors.apart.push_back(simulated->time / formula - 1);
    if (m.memory.value > 0) errors.memory.push_back((simulated->memory + m.process_memory()) / m.memory - 1);
    const auto interval = distribution.interval_without(error_class(m), m);
    if (!interval) continue;
    ++errors.with_interval;
    errors.in_interval += std::abs(m.measured / simulated->time - 1) <= interval->half_width;
  }
  return errors;
}

std::string simulated_line(const std::string& name, const SimulatedErrors& e) {
  const ErrorSummary formula = summarize(e.closed_form);
  const std::string covered =
      e.with_interval > 0 ? fmt::format("{:.0f} %", 100.0 * e.in_interval / e.with_interval) : "-";
  return fmt::format("{:<{}}{} |{:9.1f}{:8.1f}{:8.1f}{:>8}{:6}\n", name, kNameWidth, summary_cells(summarize(e.events)),
                     100 * formula.median, 100 * formula.mape, 100 * summarize(e.apart).mape, covered, e.not_simulated);
}

}  // namespace

std::string simulated_text(std::span<const PredictionSet> sets, const TextLayout& layout) {
  const AcceleratorsByName devices = accelerators_of(sets);
  const ErrorDistribution distribution(sets, devices);
  std::string text = fmt::format(
      "Predicted iterations, errors in %: simulated event by event on `ideal`; on the right the closed form for the "
      "same\n"
      "runs, how far both are apart in the mean, how many measured times are within {:.0f} % intervals around the "
      "simulated\n"
      "ones, made without the run itself, and runs that no scenario says\n\n"
      "{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8} |{:>9}{:>8}{:>8}{:>8}{:>6}\n",
      100 * kIntervalCoverage, "runs", kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %", "median",
      "MAPE", "apart", "within", "not");
  std::string memory = fmt::format(
      "\nMemory of the fullest device, simulated, errors in %\n\n{:<{}}{:>5}{:>9}{:>8}{:>8}{:>8}{:>8}{:>8}\n", "runs",
      kNameWidth, "n", "median", "p90", "worst", "MAPE", "mean", "<=10 %");
  SimulatedErrors total;
  std::map<std::string, int> reasons;
  Activity activity("simulating measured runs");
  activity.count(0, "sets", std::ssize(sets));
  for (const PredictionSet& set : sets) {
    const SimulatedErrors errors = simulate_set(set, devices, distribution, reasons);
    text += simulated_line(set.name, errors);
    if (!errors.memory.empty())
      memory += fmt::format("{:<{}}{}\n", set.name, kNameWidth, summary_cells(summarize(errors.memory)));
    total += errors;
    activity.count_one();
  }
  text += simulated_line("all", total);
  for (const auto& [why, count] : reasons) text += fmt::format("not simulated, {:>4}: {}\n", count, why);
  return fitted(text + memory, layout);
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
      part_column("optimizer_s", "updates of the weights.",
                  [](Text& t, const Row& r) { append_time(t, r.time.spent.optimizer); }),
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
