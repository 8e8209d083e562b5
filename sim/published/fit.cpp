// Fits shares of the peak, launch times and card rates of a device type to measured runs, which it simulates.

#include "sim/published/fit.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/cores.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft {
namespace {

using Numbers = std::vector<Fit::Number>;
using Logs = std::vector<double>;  ///< The logarithm of the factor of each number.

constexpr int kMostSteps = 4;         // Simulated values on each side of the center,
constexpr double kFinestStep = 0.12;  // which need not be closer, as logarithms.
constexpr int kSweeps = 3;            // Passes over all numbers, each with the others as they are.
constexpr double kPrecision = 1e-4;   // The fit of a number ends with steps so small, as logarithms.

/// Simulated values on each side of the center.
int steps_in(double range) { return std::min(kMostSteps, static_cast<int>(std::ceil(std::log(range) / kFinestStep))); }

void scale_attention(Accelerator& device, double factor) {
  for (AttentionKernelFacts& facts : device.attention)
    for (AttentionFacts* pass : {&facts.forward, &facts.backward}) pass->share = std::min(1.0, factor * pass->share);
  for (AttentionFacts* pass : {&device.attention_forward, &device.attention_backward})
    pass->share = std::min(1.0, factor * pass->share);
}

Accelerator with_numbers(const Numbers& numbers, const Logs& logs, Accelerator device) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double factor = std::exp(logs[i]);
    for (const NumberFormat format : numbers[i].formats) device.formats[format].share *= factor;
    if (numbers[i].kind == FreeNumber::Launch) device.launch = factor * device.launch;
    if (numbers[i].kind == FreeNumber::Attention) scale_attention(device, factor);
  }
  return device;
}

double card_factor(const Numbers& numbers, const Logs& logs) {
  double factor = 1;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i].kind == FreeNumber::Card) factor *= std::exp(logs[i]);
  return factor;
}

/// The overlap of passes with these numbers; nothing where it is as the stack has it.
std::optional<double> pass_overlap(const Numbers& numbers, const Logs& logs, double shown) {
  for (std::size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i].kind == FreeNumber::FsdpOverlap && logs[i] != 0) return 1 - std::min(1.0, shown * std::exp(logs[i]));
  return {};
}

/// The largest logarithm with which no share is above 1.
double largest_log(const Fit::Number& number, const Accelerator& device) {
  double largest = kInfinity;
  for (const NumberFormat format : number.formats) largest = std::min(largest, -std::log(device.formats[format].share));
  return largest;
}

/// The errors of runs around a center: the logarithm of simulated over measured time is piecewise linear in the
/// logarithm of each number, and the changes of several numbers add up.
class ErrorsAroundCenter {
 public:
  ErrorsAroundCenter(const MeasuredRuns& runs, const Accelerator& device, const Numbers& numbers, Logs center,
                     double range, double shown)
      : center_(std::move(center)), shown_(shown) {
    const int steps = steps_in(range);
    std::vector<Logs> points{center_};
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      std::vector<Point>& axis = axes_.emplace_back();
      for (int k = -steps; k <= steps; ++k) {
        const double log = center_[i] + std::log(range) * k / steps;
        if (k != 0 && log > largest_log(numbers[i], device)) continue;
        axis.push_back({log, k == 0 ? 0 : points.size()});
        if (k == 0) continue;
        points.push_back(center_);
        points.back()[i] = log;
      }
    }
    simulate_all(runs, device, numbers, points);
  }

  double lowest(std::size_t number) const { return axes_[number].front().log; }
  double highest(std::size_t number) const { return axes_[number].back().log; }

  /// |simulated / measured - 1| of a run.
  double error(std::size_t run, const Logs& at) const { return std::abs(std::exp(log_ratio(run, at)) - 1); }
  /// Logarithms of simulated over measured times.
  double residual(std::size_t run, const Logs& at) const { return log_ratio(run, at); }
  const TimeByClass& spent(std::size_t run) const { return spent_[row_[run]]; }
  /// By how much a number alone changes the time of a run: the factor, less 1.
  double effect(std::size_t run, std::size_t number, double log) const {
    return std::abs(std::exp(change(run, number, log)) - 1);
  }

 private:
  struct Point {
    double log;
    std::size_t index;  ///< Into the times of each run.
  };

  double change(std::size_t run, std::size_t number, double log) const {
    const std::vector<Point>& axis = axes_[number];
    const Logs& times = times_[row_[run]];
    if (axis.size() < 2) return 0;
    std::size_t k = 1;
    while (k + 1 < axis.size() && log > axis[k].log) ++k;
    const double at = (log - axis[k - 1].log) / (axis[k].log - axis[k - 1].log);
    return std::lerp(times[axis[k - 1].index], times[axis[k].index], at) - times.front();
  }

  double log_ratio(std::size_t run, const Logs& at) const {
    double sum = times_[row_[run]].front() - measured_[run];
    for (std::size_t i = 0; i < at.size(); ++i) sum += change(run, i, at[i]);
    return sum;
  }

  /// Runs with equal rows are simulated once.
  void simulate_all(const MeasuredRuns& runs, const Accelerator& device, const Numbers& numbers,
                    const std::vector<Logs>& points) {
    for (const MeasuredRun* m : runs) measured_.push_back(std::log(m->measured.value));
    MeasuredRuns different;
    row_ = equal_rows(runs, different);
    times_.assign(different.size(), Logs(points.size()));
    spent_.resize(different.size());
    Activity activity("simulating measured runs");
    activity.count(0, "simulations", std::ssize(different) * std::ssize(points));
    run_tasks(static_cast<int>(different.size()), usable_cores().count(), [&](int row) {
      RepeatedRun run(*different[row]);
      for (std::size_t point = 0; point < points.size(); ++point) {
        std::string why;
        const auto simulated =
            run.simulate(with_numbers(numbers, points[point], device), card_factor(numbers, points[point]),
                         pass_overlap(numbers, points[point], shown_), why);
        if (!simulated)
          throw InputError(fmt::format("the run '{}' cannot be simulated: {}", different[row]->name, why),
                           "correct its row, or remove it");
        times_[row][point] = std::log(simulated->time.value);
        if (point == 0) spent_[row] = simulated->spent;
        activity.count_one();
      }
    });
  }

  Logs center_;
  double shown_;
  std::vector<TimeByClass> spent_;        ///< What each different run spends, at the center.
  std::vector<std::vector<Point>> axes_;  ///< Simulated values of each number, ascending.
  std::vector<Logs> times_;               ///< Logarithms of the times of each different run; the first at the center.
  std::vector<std::size_t> row_;          ///< The different run that a run is equal to.
  Logs measured_;
};

std::vector<std::size_t> all_of(std::size_t count) {
  std::vector<std::size_t> indices(count);
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  return indices;
}

double mean_error(const ErrorsAroundCenter& errors, const std::vector<std::size_t>& runs, const Logs& at) {
  double sum = 0;
  for (const std::size_t run : runs) sum += errors.error(run, at);
  return sum / static_cast<double>(runs.size());
}

/// The value of one number with the smallest mean error: the best of a grid, then of finer grids around it.
void improve(Logs& at, std::size_t number, const ErrorsAroundCenter& errors, const std::vector<std::size_t>& runs) {
  constexpr int kGrid = 10;
  const double lowest = errors.lowest(number), highest = errors.highest(number);
  double best = at[number], min_error = mean_error(errors, runs, at), center = (lowest + highest) / 2;
  for (double width = (highest - lowest) / 2; width > kPrecision; width /= kGrid / 2) {
    for (int step = -kGrid; step <= kGrid; ++step) {
      at[number] = std::clamp(center + width * step / kGrid, lowest, highest);
      if (const double error = mean_error(errors, runs, at); error < min_error) best = at[number], min_error = error;
    }
    center = best;
  }
  at[number] = best;
}

Logs best_of(const ErrorsAroundCenter& errors, const std::vector<std::size_t>& runs, Logs at) {
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t i = 0; i < at.size(); ++i) improve(at, i, errors, runs);
  return at;
}

/// Fits to a part of the runs, around the fit to all of them.
void leave_out(Fit& fit, const ErrorsAroundCenter& errors, const Logs& fitted) {
  Logs low = fitted, high = fitted;
  for (const Fold& fold : folds_of(fit.runs)) {
    const Logs without = best_of(errors, fold.others, fitted);
    fit.error_left_out +=
        mean_error(errors, fold.left_out, without) * static_cast<double>(fold.left_out.size()) / fit.runs;
    for (std::size_t i = 0; i < without.size(); ++i) {
      low[i] = std::min(low[i], without[i]);
      high[i] = std::max(high[i], without[i]);
    }
  }
  for (std::size_t i = 0; i < fitted.size(); ++i)
    fit.numbers[i].spread = (std::exp(high[i]) - std::exp(low[i])) / 2 / std::exp(fitted[i]);
}

std::string words_of(const Fit::Number& n) {
  if (n.kind == FreeNumber::Launch) return "the time of a launch";
  if (n.kind == FreeNumber::Card) return "the rate of the cards";
  if (n.kind == FreeNumber::Attention) return "attention";
  if (n.kind == FreeNumber::FsdpOverlap) return "the overlap of exchanges with passes";
  return fmt::format("the share in {}", name(n.formats.front()));
}

constexpr std::size_t kFewestCorrelated = 8;
constexpr double kStrongCorrelation = 0.6;

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double n = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / n,
               mean_y = std::accumulate(y.begin(), y.end(), 0.0) / n;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean_x) * (y[i] - mean_y);
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

/// The terms that a fit could change, with whose part of the time the errors change.
std::vector<CorrelatedTerm> correlated_terms(const ErrorsAroundCenter& errors, const Logs& at, std::size_t runs) {
  if (runs < kFewestCorrelated) return {};
  constexpr std::pair<Seconds TimeByClass::*, FreeNumber> kTerms[] = {{&TimeByClass::attention, FreeNumber::Attention},
                                                                      {&TimeByClass::launches, FreeNumber::Launch},
                                                                      {&TimeByClass::data, FreeNumber::FsdpOverlap}};
  constexpr const char* kNames[] = {"attention", "launches", "gathers and sums of divided weights"};
  std::vector<double> residuals;
  for (std::size_t run = 0; run < runs; ++run) residuals.push_back(errors.residual(run, at));
  std::vector<CorrelatedTerm> terms;
  for (std::size_t t = 0; t < std::size(kTerms); ++t) {
    std::vector<double> parts;
    for (std::size_t run = 0; run < runs; ++run)
      parts.push_back(errors.spent(run).*(kTerms[t].first) / errors.spent(run).total());
    const double r = correlation(residuals, parts);
    if (std::abs(r) >= kStrongCorrelation) terms.push_back({kNames[t], kTerms[t].second, r});
  }
  return terms;
}

double disagreement_of(const MeasuredRuns& runs) {
  MeasuredRuns different;
  const std::vector<std::size_t> equal_to = equal_rows(runs, different);
  std::vector<Seconds> shortest;
  for (const MeasuredRun* m : different) shortest.push_back(m->measured);
  for (std::size_t i = 0; i < runs.size(); ++i)
    shortest[equal_to[i]] = std::min(shortest[equal_to[i]], runs[i]->measured);
  double largest = 0;
  for (std::size_t i = 0; i < runs.size(); ++i)
    largest = std::max(largest, runs[i]->measured / shortest[equal_to[i]] - 1);
  return largest;
}

double largest_share(const Fit& fit, const Accelerator& device) {
  double largest = 0;
  for (const Fit::Number& n : fit.numbers)
    for (const NumberFormat format : n.formats) largest = std::max(largest, n.factor * device.formats[format].share);
  return largest;
}

constexpr double kProbe = 1.25;           // Change of a number that has to show in some run,
constexpr double kSmallestEffect = 0.01;  // by this share of its time.

constexpr double kSmallestShown = 0.125;  // A factor needs something to multiply; the first step reaches all of it.

/// What passes show of exchanges of divided weights in the stack of the runs.
double shown_by_passes(const MeasuredRuns& runs) {
  return runs.empty() ? kSmallestShown : std::max(kSmallestShown, 1 - software_of(*runs.front()).pass_overlap);
}

void check_that_runs_say_something(const ErrorsAroundCenter& errors, const Numbers& numbers, std::size_t runs) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    double effect = 0;
    for (std::size_t run = 0; run < runs; ++run) effect = std::max(effect, errors.effect(run, i, std::log(kProbe)));
    if (effect < kSmallestEffect)
      throw InputError(
          fmt::format("these runs say nothing about {}: a quarter more changes no time by more than {:.1f} %",
                      words_of(numbers[i]), 100 * effect),
          "leave it out of --fit, or add runs that depend on it");
  }
}

}  // namespace

Accelerator Fit::applied(Accelerator device) const {
  Logs logs;
  for (const Number& n : numbers) logs.push_back(std::log(n.factor));
  return with_numbers(numbers, logs, std::move(device));
}

bool Fit::is_doubtful() const {
  const auto is_free = [&](FreeNumber kind) {
    return std::any_of(numbers.begin(), numbers.end(), [&](const Number& n) { return n.kind == kind; });
  };
  return error_left_out >= error_before || has_contradictions() || has_impossible_share() ||
         std::any_of(correlated.begin(), correlated.end(), [&](const CorrelatedTerm& t) { return !is_free(t.kind); });
}

std::vector<Fold> folds_of(std::size_t runs) {
  constexpr std::size_t kAlone = 64, kFewest = 4;
  const std::size_t count = runs <= kAlone ? runs : std::max(kFewest, kAlone * kAlone / runs);
  std::vector<Fold> folds(count);
  for (std::size_t f = 0; f < count; ++f)
    for (std::size_t i = 0; i < runs; ++i) (i % count == f ? folds[f].left_out : folds[f].others).push_back(i);
  return folds;
}

std::vector<std::size_t> equal_rows(const MeasuredRuns& runs, MeasuredRuns& different) {
  std::map<std::string, std::size_t> rows;
  std::vector<std::size_t> equal_to;
  for (const MeasuredRun* m : runs) {
    const auto [at, is_new] = rows.emplace(config::to_yaml(m->row, false), different.size());
    if (is_new) different.push_back(m);
    equal_to.push_back(at->second);
  }
  return equal_to;
}

std::size_t simulations_of_each(std::size_t numbers, double range) {
  return 1 + numbers * 2 * static_cast<std::size_t>(steps_in(range));
}

Fit fit_numbers(const MeasuredRuns& runs, const Accelerator& device, std::vector<Fit::Number> numbers,
                std::span<const double> ranges) {
  Fit fit{.numbers = std::move(numbers), .runs = static_cast<int>(runs.size())};
  fit.shown = shown_by_passes(runs);
  const std::vector<std::size_t> indices = all_of(runs.size());
  Logs at(fit.numbers.size(), 0);
  for (std::size_t step = 0; step < ranges.size(); ++step) {
    const ErrorsAroundCenter errors(runs, device, fit.numbers, at, ranges[step], fit.shown);
    if (step == 0) {
      check_that_runs_say_something(errors, fit.numbers, runs.size());
      fit.error_before = mean_error(errors, indices, at);
    }
    at = best_of(errors, indices, at);
    fit.error_after = mean_error(errors, indices, at);
    if (step + 1 < ranges.size()) continue;
    leave_out(fit, errors, at);
    fit.correlated = correlated_terms(errors, at, runs.size());
  }
  for (std::size_t i = 0; i < at.size(); ++i) fit.numbers[i].factor = std::exp(at[i]);
  fit.disagreement = disagreement_of(runs);
  fit.largest_share = largest_share(fit, device);
  return fit;
}

}  // namespace stagecraft
