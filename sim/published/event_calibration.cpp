#include "sim/published/event_calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/core/activity.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/published/simulated_predictions.hpp"

namespace stagecraft {
namespace {

constexpr std::array<double, 5> kShareFactors = {0.8, 0.9, 1, 1.1, 1.25};
constexpr double kFactorStep = 0.002;

/// Logarithms of simulated over measured times, at each factor on the share.
using RunCurve = std::array<double, kShareFactors.size()>;

double error_at(const RunCurve& curve, double factor) {
  std::size_t k = 1;
  while (k + 1 < kShareFactors.size() && factor > kShareFactors[k]) ++k;
  const double low = std::log(kShareFactors[k - 1]), high = std::log(kShareFactors[k]);
  const double at = (std::log(factor) - low) / (high - low);
  return std::abs(std::exp(curve[k - 1] + at * (curve[k] - curve[k - 1])) - 1);
}

/// Index of no curve.
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

double mean_error(const std::vector<RunCurve>& curves, double factor, std::size_t left_out = kNone) {
  double sum = 0;
  for (std::size_t i = 0; i < curves.size(); ++i)
    if (i != left_out) sum += error_at(curves[i], factor);
  return sum / static_cast<double>(curves.size() - (left_out == kNone ? 0 : 1));
}

double best_factor_of(const std::vector<RunCurve>& curves, std::size_t left_out = kNone) {
  double best = 1, min_error = mean_error(curves, 1, left_out);
  for (double factor = kShareFactors.front(); factor <= kShareFactors.back(); factor += kFactorStep)
    if (const double error = mean_error(curves, factor, left_out); error < min_error) best = factor, min_error = error;
  return best;
}

struct RunGroup {
  std::vector<RunCurve> curves;
  double closed_form = 0;  ///< Sum of the errors of the closed form.
};

/// False where no scenario says the run.
bool simulate_shares(const MeasuredRun& m, RunCurve& curve) {
  std::string why;
  for (std::size_t k = 0; k < kShareFactors.size(); ++k) {
    const auto simulated = simulate(m, why, kShareFactors[k]);
    if (!simulated) return false;
    curve[k] = std::log(simulated->time / m.measured);
  }
  return true;
}

std::int64_t run_count(std::span<const PredictionSet> sets) {
  std::int64_t count = 0;
  for (const PredictionSet& set : sets) count += std::ssize(set.runs);
  return count;
}

}  // namespace

std::vector<EventFit> fit_with_events(std::span<const PredictionSet> sets, const AcceleratorsByName& devices) {
  Activity activity("simulating measured runs");
  activity.count(0, "runs", run_count(sets));
  std::map<std::pair<std::string, NumberFormat>, RunGroup> groups;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs) {
      activity.count_one();
      const ErrorClass kind = error_class(m);
      RunCurve curve{};
      if (kind.small || !simulate_shares(m, curve)) continue;
      RunGroup& group = groups[{kind.device, kind.format}];
      group.curves.push_back(curve);
      group.closed_form += std::abs(iteration_time(m.run, devices.find(m.device)->second).total() / m.measured - 1);
    }
  std::vector<EventFit> fits;
  for (const auto& [key, group] : groups) {
    const std::vector<RunCurve>& curves = group.curves;
    if (curves.size() < 2) continue;
    EventFit fit{.device = key.first, .format = key.second, .runs = static_cast<int>(curves.size())};
    const double factor = best_factor_of(curves), runs = static_cast<double>(curves.size());
    fit.share = devices.find(fit.device)->second.formats[fit.format].share;
    fit.fitted = factor * fit.share;
    fit.closed_form = group.closed_form / runs;
    fit.error_before = mean_error(curves, 1);
    fit.error_after = mean_error(curves, factor);
    for (std::size_t i = 0; i < curves.size(); ++i)
      fit.error_left_out += error_at(curves[i], best_factor_of(curves, i)) / runs;
    fits.push_back(std::move(fit));
  }
  return fits;
}

std::string to_text(const std::vector<EventFit>& fits) {
  std::string text = fmt::format(
      "One share for each device type and format, fitted to simulations of the runs. Mean absolute errors:\n"
      "closed form and simulations with the shipped share, simulations with the fitted one, and of each run with a "
      "share\n"
      "that was fitted to the others\n\n{:<14}{:<8}{:>6}{:>9}{:>9}{:>13}{:>10}{:>9}{:>10}\n",
      "device", "format", "runs", "share", "fitted", "closed form", "simulated", "fitted", "left out");
  const auto percent = [](double error) { return fmt::format("{:.1f} %", 100 * error); };
  for (const EventFit& f : fits)
    text += fmt::format("{:<14}{:<8}{:>6}{:>9.4g}{:>9.4g}{:>13}{:>10}{:>9}{:>10}\n", f.device, name(f.format), f.runs,
                        f.share, f.fitted, percent(f.closed_form), percent(f.error_before), percent(f.error_after),
                        percent(f.error_left_out));
  return text;
}

}  // namespace stagecraft
