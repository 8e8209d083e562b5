#include <algorithm>
#include <cmath>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/published/calibration.hpp"
#include "sim/published/cross_validation.hpp"

namespace stagecraft {
namespace {

using Runs = MeasuredRuns;
using Numbers = std::vector<JointFit::Number>;

constexpr int kSweeps = 3;                // Passes over all numbers, each with the others as they are.
constexpr double kProbe = 1.25;           // Change of a number that has to show in some run,
constexpr double kSmallestEffect = 0.01;  // by this share of its time.

Accelerator with_numbers(const Numbers& numbers, Accelerator device) {
  for (const JointFit::Number& n : numbers) {
    if (n.kind == FreeNumber::Share) device.formats[n.format].share *= n.factor;
    if (n.kind == FreeNumber::Launch) device.launch = n.factor * device.launch;
  }
  return device;
}

double predicted(const MeasuredRun& m, const Numbers& numbers, const Accelerator& fitted) {
  TrainingRun run = m.run;
  for (const JointFit::Number& n : numbers)
    if (n.kind == FreeNumber::Card) run.card = n.factor * run.card;
  return iteration_time(run, fitted).total().value;
}

double mean_error(const Runs& runs, const Numbers& numbers, const Accelerator& device) {
  const Accelerator fitted = with_numbers(numbers, device);
  double sum = 0;
  for (const MeasuredRun* m : runs) sum += std::abs(predicted(*m, numbers, fitted) / m->measured.value - 1);
  return sum / static_cast<double>(runs.size());
}

bool is_possible(const JointFit::Number& n, double factor, const Accelerator& device) {
  return n.kind != FreeNumber::Share || device.formats[n.format].share * factor <= 1;
}

/// The factor of one number with the smallest mean error, between 1/8 and 8 times the given value: the best of a grid,
/// then of finer grids around it.
void improve(Numbers& numbers, std::size_t i, double width, const Runs& runs, const Accelerator& device) {
  for (; width > 1e-3; width /= 4) {
    const double center = numbers[i].factor;
    double best = center, min_error = mean_error(runs, numbers, device);
    for (int step = -8; step <= 8; ++step) {
      const double factor = center * std::exp(width * step / 8);
      if (!is_possible(numbers[i], factor, device)) continue;
      numbers[i].factor = factor;
      if (const double error = mean_error(runs, numbers, device); error < min_error) best = factor, min_error = error;
    }
    numbers[i].factor = best;
  }
}

Numbers fitted_to(const Runs& runs, Numbers numbers, const Accelerator& device) {
  for (int sweep = 0; sweep < kSweeps; ++sweep)
    for (std::size_t i = 0; i < numbers.size(); ++i)
      improve(numbers, i, sweep == 0 ? std::log(8) : std::log(1.5), runs, device);
  return numbers;
}

std::string words_of(const JointFit::Number& n) {
  if (n.kind == FreeNumber::Launch) return "the time of a launch";
  if (n.kind == FreeNumber::Card) return "the rate of the cards";
  return fmt::format("the share in {}", name(n.format));
}

/// The free numbers; a share for each number format of the runs.
Numbers free_numbers(const Runs& runs, const std::vector<FreeNumber>& kinds, const Accelerator& device) {
  std::set<NumberFormat> formats;
  for (const MeasuredRun* m : runs) formats.insert(m->run.format);
  Numbers numbers;
  for (const FreeNumber kind : std::set<FreeNumber>(kinds.begin(), kinds.end())) {
    if (kind != FreeNumber::Share) numbers.push_back({.kind = kind});
    if (kind == FreeNumber::Share)
      for (const NumberFormat format : formats) {
        if (!device.has(format))
          throw InputError(fmt::format("{} has no figures for products in {}", device.name, name(format)),
                           "a format of its file in topologies/devices");
        numbers.push_back({.kind = kind, .format = format});
      }
  }
  return numbers;
}

void check_that_runs_say_something(const Runs& runs, const Numbers& numbers, const Accelerator& device) {
  if (runs.size() < 2 * numbers.size())
    throw InputError(fmt::format("{} cannot be fitted to {}, because nothing would tell how good the fit is",
                                 pluralize(static_cast<long long>(numbers.size()), "number"),
                                 pluralize(static_cast<long long>(runs.size()), "run")),
                     "at least two runs for each number, or fewer numbers in --fit");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    Numbers changed = numbers;
    changed[i].factor = kProbe;
    const Accelerator probed = with_numbers(changed, device);
    double effect = 0;
    for (const MeasuredRun* m : runs)
      effect = std::max(effect, std::abs(predicted(*m, changed, probed) / predicted(*m, numbers, device) - 1));
    if (effect < kSmallestEffect)
      throw InputError(
          fmt::format("these runs say nothing about {}: a quarter more changes no time by more than {:.1f} %",
                      words_of(numbers[i]), 100 * effect),
          "leave it out of --fit, or add runs that depend on it");
  }
}

}  // namespace

Accelerator JointFit::applied(Accelerator device) const { return with_numbers(numbers, std::move(device)); }

JointFit fit_together(const PredictionSet& set, const Accelerator& device, const std::vector<FreeNumber>& kinds) {
  Runs runs;
  for (const MeasuredRun& m : set.runs) runs.push_back(&m);
  const Numbers given = free_numbers(runs, kinds, device);
  check_that_runs_say_something(runs, given, device);
  JointFit fit{.numbers = fitted_to(runs, given, device), .runs = static_cast<int>(runs.size())};
  fit.error_before = mean_error(runs, given, device);
  fit.error_after = mean_error(runs, fit.numbers, device);
  std::vector<double> low, high;
  for (const JointFit::Number& n : fit.numbers) low.push_back(n.factor), high.push_back(n.factor);
  for (const Fold& fold : folds_of(runs)) {
    const Numbers without = fitted_to(fold.others, fit.numbers, device);
    fit.error_left_out += mean_error(fold.left_out, without, device) * static_cast<double>(fold.left_out.size()) /
                          static_cast<double>(runs.size());
    for (std::size_t i = 0; i < without.size(); ++i) {
      low[i] = std::min(low[i], without[i].factor);
      high[i] = std::max(high[i], without[i].factor);
    }
  }
  for (std::size_t i = 0; i < fit.numbers.size(); ++i)
    fit.numbers[i].spread = (high[i] - low[i]) / 2 / fit.numbers[i].factor;
  return fit;
}

}  // namespace stagecraft
