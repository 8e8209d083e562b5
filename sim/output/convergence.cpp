// The tables of `stagecraft convergence` as text, convergence.csv and tta.csv, from the losses of training runs:
// updates and time to a target loss, and the cost relative to the first method with bootstrap intervals.

#include "sim/output/convergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/output/table.hpp"

namespace stagecraft {
namespace {

constexpr int kResamples = 2000;

/// Infinite where there is no run, because then the target is never reached.
double median_or_never(std::vector<double> values) { return values.empty() ? kInfinity : median(std::move(values)); }

std::vector<double> updates_of(const MethodRuns& method, double target) {
  std::vector<double> counts;
  for (const Curve& c : method.curves) {
    const auto updates = updates_to(c, target);
    counts.push_back(updates ? *updates : kInfinity);
  }
  return counts;
}

/// NaN where either is never reached.
double ratio(double a, double b) {
  return std::isinf(a) || std::isinf(b) ? std::numeric_limits<double>::quiet_NaN() : a / b;
}

double cost_of(double updates, double of_first) {
  return std::isinf(updates) && std::isfinite(of_first) ? kInfinity : ratio(updates, of_first);
}

/// 5 % and 95 % quantiles of the ratio of medians over bootstrap samples of seeds. Both methods use the same sample
/// where both have its seeds.
std::pair<double, double> bootstrap(const std::vector<double>& ours, const std::vector<double>& first) {
  Rng rng(1, "bootstrap");
  std::vector<double> ratios;
  for (int n = 0; n < kResamples; ++n) {
    std::vector<double> a, b;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const int pick = rng.integer(0, static_cast<int>(ours.size()) - 1);
      a.push_back(ours[pick]);
      b.push_back(first[pick % first.size()]);
    }
    const double mine = median_or_never(a), theirs = median_or_never(b);
    ratios.push_back(std::isinf(theirs) && std::isfinite(mine) ? 0 : std::isinf(mine) ? kInfinity : mine / theirs);
  }
  std::sort(ratios.begin(), ratios.end());
  return {ratios[kResamples / 20], ratios[kResamples - kResamples / 20]};
}

std::string number(double value, const char* format = "{:.0f}") {
  if (std::isnan(value)) return "-";
  return std::isinf(value) ? "never" : fmt::format(fmt::runtime(format), value);
}

std::string loss(double value) { return std::isfinite(value) ? fmt::format("{:.4g}", value) : "-"; }

std::string seconds(double value) { return std::isfinite(value) ? to_text(Seconds{value}) : "never"; }

/// Losses at the last evaluation; infinite for runs that diverged.
std::vector<double> last_losses(const MethodRuns& m) {
  std::vector<double> losses;
  for (const Curve& c : m.curves) {
    const bool there = !c.diverged && !c.evaluations.empty() && !std::isnan(c.evaluations.back().loss);
    losses.push_back(there ? c.evaluations.back().loss : kInfinity);
  }
  return losses;
}

std::string end_table(const Convergence& c) {
  using Row = MethodRuns;
  const auto range = [](const Row& m) {
    const auto losses = last_losses(m);
    return fmt::format("[{} - {}]", loss(*std::min_element(losses.begin(), losses.end())),
                       loss(*std::max_element(losses.begin(), losses.end())));
  };
  const auto diverged = [](const Row& m) {
    const auto runs = std::count_if(m.curves.begin(), m.curves.end(), [](const Curve& k) { return k.diverged; });
    return fmt::format("{}/{}", runs, m.curves.size());
  };
  return to_text(
      make_table<Row>({{{.heading = "method", .width = 24, .align = TextAlign::Left}, &Row::name},
                       {{.heading = "last loss", .width = 10, .gap = 1},
                        [](const Row& m) { return loss(median_or_never(last_losses(m))); }},
                       {{.heading = "[lowest - highest]", .width = 23}, range},
                       {{.heading = "diverged", .width = 10}, diverged},
                       {{.heading = "update, sim.", .width = 12}, &Row::update},
                       {{.heading = "pays below", .width = 10},
                        [&](const Row& m) { return fmt::format("{:.2f}", c.methods.front().update / m.update); }},
                       {{.heading = "update, meas.", .width = 12},
                        [](const Row& m) { return m.measured.value > 0 ? to_text(m.measured) : "-"; }},
                       {{.heading = "peak memory", .width = 11}, &Row::memory},
                       {{.heading = "an update is", .align = TextAlign::Left}, &Row::spelt}},
                      c.methods));
}

std::vector<Standing> standings(const Convergence& c, double target) {
  std::vector<Standing> rows;
  for (std::size_t i = 0; i < c.methods.size(); ++i) rows.push_back(standing(c, i, target));
  return rows;
}

std::string cost_text(const Standing& s) {
  return s.is_baseline ? "1"
                       : fmt::format("{} [{}-{}]", number(s.cost, "{:.2f}"), number(s.cost_low, "{:.2f}"),
                                     number(s.cost_high, "{:.2f}"));
}

/// A column of tta.csv.
FileColumn target_column(std::string_view name) {
  static const std::vector<FileColumn> columns{
      word_column("method", "Name of the method."),
      number_column("target", "", "Loss that is to be reached."),
      whole_column("reached", "Seeds that reach the target."),
      whole_column("seeds", "Seeds that ran."),
      number_column("updates", "updates", "Median over the seeds of the updates to the target; inf: never."),
      number_column("updates_low", "updates", "Fewest updates of a seed to the target; inf: never."),
      number_column("updates_high", "updates", "Most updates of a seed to the target; inf: never."),
      number_column(
          "cost", "",
          "Updates of this method over updates of the first method; nan: the first never reaches the target."),
      number_column("cost_low", "", "5 % quantile of the cost over bootstrap samples of the seeds."),
      number_column("cost_high", "", "95 % quantile of the cost over bootstrap samples of the seeds."),
      number_column("hardware_ratio", "",
                    "Simulated time of an update of the first method over that of this method; the method pays where "
                    "its cost is lower."),
      number_column("simulated_s", "s", "Simulated time to the target; inf: never."),
      number_column("measured_s", "s", "Measured time to the target; empty where it was not measured.")};
  for (const FileColumn& c : columns)
    if (c.name() == name) return c;
  throw InternalError(fmt::format("no column '{}'", name));
}

Table target_table(const std::vector<Standing>& rows, bool measured) {
  using Row = Standing;
  const auto six_digits = [](double Standing::*member) {
    return [member](const Row& m) { return fmt::format("{:.6g}", m.*member); };
  };
  TableColumns<Row> columns{
      {{.key = target_column("method"), .heading = "method", .width = 24, .align = TextAlign::Left}, &Row::method},
      {{.key = target_column("target")}, &Row::target},
      {{.key = target_column("reached"), .heading = "reached", .width = 7, .gap = 1},
       [](const Row& m) { return TableCell(m.reached, fmt::format("{}/{}", m.reached, m.total)); }},
      {{.key = target_column("seeds")}, [](const Row& m) { return m.total; }},
      {{.key = target_column("updates"), .heading = "updates [range]", .width = 20},
       [](const Row& m) {
         return TableCell(m.updates, fmt::format("{} [{}-{}]", number(m.updates), number(m.low), number(m.high)));
       }},
      {{.key = target_column("updates_low")}, [](const Row& m) { return m.low; }},
      {{.key = target_column("updates_high")}, [](const Row& m) { return m.high; }},
      {{.key = target_column("cost"), .heading = "cost [90 %]", .width = 22},
       [](const Row& m) { return TableCell(fmt::format("{:.6g}", m.cost), cost_text(m)); }},
      {{.key = target_column("cost_low")}, six_digits(&Standing::cost_low)},
      {{.key = target_column("cost_high")}, six_digits(&Standing::cost_high)},
      {{.key = target_column("hardware_ratio"), .heading = "pays below", .width = 10},
       [](const Row& m) { return TableCell(fmt::format("{:.6g}", m.hardware), fmt::format("{:.2f}", m.hardware)); }},
      {{.key = target_column("simulated_s"), .heading = "time, sim.", .width = 10},
       [](const Row& m) { return TableCell(fmt::format("{:.9g}", m.time), seconds(m.time)); }},
      {{.heading = "speed-up", .width = 8}, [](const Row& m) { return number(m.speed_up, "{:.2f}"); }},
      {{.key = target_column("measured_s")},
       [](const Row& m) { return m.measured_time > 0 ? fmt::format("{:.9g}", m.measured_time) : ""; }},
  };
  if (measured) {
    columns.push_back({{.heading = "time, meas.", .width = 11}, [](const Row& m) { return seconds(m.measured_time); }});
    columns.push_back(
        {{.heading = "speed-up", .width = 8}, [](const Row& m) { return number(m.measured_speed_up, "{:.2f}"); }});
  }
  return make_table<Row>(columns, rows);
}

}  // namespace

int runs_of(const Convergence& c) {
  std::size_t runs = 0;
  for (const MethodRuns& m : c.methods) runs += m.curves.size();
  return static_cast<int>(runs);
}

std::optional<int> updates_to(const Curve& curve, double target) {
  const auto& e = curve.evaluations;
  for (std::size_t i = 0; i < e.size(); ++i) {
    const std::size_t from = i == 0 ? 0 : i - 1, to = std::min(i + 1, e.size() - 1);
    double sum = 0;
    for (std::size_t j = from; j <= to; ++j) sum += e[j].loss;
    if (sum / static_cast<double>(to - from + 1) <= target) return e[i].updates;
  }
  return std::nullopt;
}

Standing standing(const Convergence& c, std::size_t method, double target) {
  const MethodRuns &m = c.methods[method], &first = c.methods.front();
  const auto updates = updates_of(m, target), of_first = updates_of(first, target);
  Standing s{.method = m.name, .is_baseline = method == 0, .target = target};
  s.total = static_cast<int>(updates.size());
  s.reached = static_cast<int>(std::count_if(updates.begin(), updates.end(), [](double u) { return u < kInfinity; }));
  s.updates = median_or_never(updates);
  s.low = *std::min_element(updates.begin(), updates.end());
  s.high = *std::max_element(updates.begin(), updates.end());
  const double first_updates = median_or_never(of_first);
  s.cost = cost_of(s.updates, first_updates);
  std::tie(s.cost_low, s.cost_high) = bootstrap(updates, of_first);
  s.hardware = first.update / m.update;
  s.time = s.updates * m.update.value + m.fill.value;
  s.measured_time = m.measured.value > 0 ? s.updates * m.measured.value : 0;
  s.speed_up = ratio(first_updates * first.update.value + first.fill.value, s.time);
  s.measured_speed_up = ratio(first.measured.value > 0 ? first_updates * first.measured.value : 0, s.measured_time);
  return s;
}

std::string to_text(const Convergence& c, const std::vector<double>& targets) {
  std::string text = end_table(c);
  const bool measured = c.methods.front().measured.value > 0;
  for (const double target : targets)
    text += fmt::format("\n  target {:.4g}\n", target) + to_text(target_table(standings(c, target), measured));
  if (!targets.empty())
    text += fmt::format(
        "\n  cost: updates of the method / updates of {0}. A method pays where its cost is below \"pays below\", the "
        "time of an\n"
        "  update of {0} over its own; speed-up = pays below / cost, but for the time to fill.\n",
        c.methods.front().name);
  for (const std::string& note : c.notes) text += fmt::format("\n  note: {}\n", note);
  return text;
}

namespace {

struct EvaluationRow {
  const Convergence& c;
  const MethodRuns& method;
  const Curve& curve;
  const Evaluation& e;
};

void append_number(std::string& text, double value) { text += fmt::format("{:.9g}", value); }

const CsvColumns<EvaluationRow>& evaluation_columns() {
  using Row = EvaluationRow;
  using Text = std::string;
  static const CsvColumns<Row> columns{
      {word_column("method", "Name of the method."), [](Text& t, const Row& r) { t += r.method.name; }},
      {whole_column("seed", "Seed of the run."), [](Text& t, const Row& r) { t += std::to_string(r.curve.seed); }},
      {whole_column("update", "Updates before the evaluation."),
       [](Text& t, const Row& r) { t += std::to_string(r.e.updates); }},
      {whole_column("samples", "Samples before the evaluation."),
       [](Text& t, const Row& r) { t += std::to_string(std::int64_t{r.e.updates} * r.c.samples_per_update); }},
      {number_column("simulated_s", "s", "Simulated time of these updates, with the time to fill the pipeline."),
       [](Text& t, const Row& r) {
         append_number(t, r.e.updates == 0 ? 0 : r.e.updates * r.method.update.value + r.method.fill.value);
       }},
      {number_column("measured_s", "s", "Measured time of these updates; empty where it was not measured."),
       [](Text& t, const Row& r) {
         if (r.method.measured.value > 0) append_number(t, r.e.updates * r.method.measured.value);
       }},
      {number_column("training_loss", "", "Loss of the last of these updates, as the pipeline computes it."),
       [](Text& t, const Row& r) {
         const std::size_t at = r.e.updates;
         if (at > 0 && at <= r.curve.losses.size()) append_number(t, r.curve.losses[at - 1]);
       }},
      {number_column("evaluation_loss", "", "Loss of the weights themselves on samples that are not trained on."),
       [](Text& t, const Row& r) { append_number(t, r.e.loss); }}};
  return columns;
}

}  // namespace

std::vector<FileColumn> convergence_columns() { return file_columns(evaluation_columns()); }

std::vector<FileColumn> tta_columns() { return csv_columns(target_table({}, false)); }

std::string convergence_csv(const Convergence& c) {
  std::string text = csv_header(convergence_columns());
  for (const MethodRuns& m : c.methods)
    for (const Curve& curve : m.curves)
      for (const Evaluation& e : curve.evaluations) append_csv_row(text, evaluation_columns(), {c, m, curve, e});
  return text;
}

std::string tta_csv(const Convergence& c, const std::vector<double>& targets) {
  std::vector<Standing> rows;
  for (const double target : targets)
    for (Standing& row : standings(c, target)) rows.push_back(std::move(row));
  return to_csv(target_table(rows, false));
}

}  // namespace stagecraft
