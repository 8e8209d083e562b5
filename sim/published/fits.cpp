// Chooses which runs and numbers are fitted together, for `calibrate` and `reproduce predictions --refit`, and refuses
// fits that take too long; fit.cpp does each fit.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/device_figures.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/published/fit.hpp"

namespace stagecraft {
namespace {

constexpr double kUserRanges[] = {8, 1.5};
constexpr double kMostWork = 15e6;             // Steps of all simulations of a fit; see simulation_steps().
constexpr double kPublishedRanges[] = {1.25};  // The shipped shares are near; each simulation takes long.

void check_format(const Accelerator& device, NumberFormat format) {
  if (!device.has(format))
    throw InputError(fmt::format("{} has no figures for products in {}", device.name, name(format)),
                     "a format of its file in topologies/devices");
}

/// InputError where a fit of `numbers` numbers to the runs takes too long.
void check_work(const PredictionSet& set, std::size_t numbers) {
  MeasuredRuns runs, different;
  for (const MeasuredRun& m : set.runs) runs.push_back(&m);
  equal_rows(runs, different);
  double steps = 0;
  for (const double range : kUserRanges)
    for (const MeasuredRun* m : different)
      steps += simulation_steps(*m) * static_cast<double>(simulations_of_each(numbers, range));
  if (steps > kMostWork)
    throw InputError(fmt::format("a fit to these runs simulates {:.3g} million steps, and no more than {:.3g} million "
                                 "are simulated",
                                 steps / 1e6, kMostWork / 1e6),
                     "fewer, smaller or more alike runs, or fewer numbers in --fit");
}

std::map<NumberFormat, MeasuredRuns> runs_by_format(const PredictionSet& set, const Accelerator& device) {
  std::map<NumberFormat, MeasuredRuns> by_format;
  for (const MeasuredRun& m : set.runs) by_format[m.format].push_back(&m);
  for (const auto& [format, runs] : by_format) check_format(device, format);
  return by_format;
}

}  // namespace

std::vector<Fit> fit_shares(const PredictionSet& set, const Accelerator& device) {
  check_work(set, 1);
  std::vector<Fit> fits;
  for (const auto& [format, runs] : runs_by_format(set, device)) {
    if (runs.size() < 2)
      throw InputError(fmt::format("there is one run in {}, and a fit to it would hide its error", name(format)),
                       "at least two runs of each number format");
    fits.push_back(fit_numbers(runs, device, {{.formats = {format}}}, kUserRanges));
  }
  return fits;
}

Accelerator with_launch_of(const PredictionSet& set, Accelerator device) {
  if (device.has_launch) return device;
  std::optional<Seconds> launch;
  for (const MeasuredRun& m : set.runs) {
    const Seconds one = launch_time(device, software_of(m));
    if (launch && *launch != one)
      throw InputError(
          "launches take longer in some of these runs than in others by their software, so no one number "
          "fits them",
          "runs of one framework, or launch left out of --fit");
    launch = one;
  }
  if (!launch || launch->value <= 0)
    throw InputError("CUDA graphs launch these runs, so that they say nothing about a launch",
                     "leave launch out of --fit");
  device.launch = *launch, device.has_launch = true;
  return device;
}

Fit fit_together(const PredictionSet& set, const Accelerator& type, const std::vector<FreeNumber>& kinds) {
  const bool fits_launch = std::find(kinds.begin(), kinds.end(), FreeNumber::Launch) != kinds.end();
  const Accelerator device = fits_launch ? with_launch_of(set, type) : type;
  MeasuredRuns runs;
  for (const MeasuredRun& m : set.runs) runs.push_back(&m);
  std::vector<Fit::Number> numbers;
  for (const FreeNumber kind : std::set<FreeNumber>(kinds.begin(), kinds.end())) {
    if (kind != FreeNumber::Share) numbers.push_back({.kind = kind});
    if (kind == FreeNumber::Share)
      for (const auto& [format, of_format] : runs_by_format(set, device)) numbers.push_back({.formats = {format}});
  }
  if (runs.size() < 2 * numbers.size())
    throw InputError(fmt::format("{} cannot be fitted to {}, because nothing would tell how good the fit is",
                                 pluralize(std::ssize(numbers), "number"), pluralize(std::ssize(runs), "run")),
                     "at least two runs for each number, or fewer numbers in --fit");
  check_work(set, numbers.size());
  return fit_numbers(runs, device, std::move(numbers), kUserRanges);
}

std::vector<PublishedFit> fit_published(std::span<const PredictionSet> sets) {
  std::map<std::pair<std::string, NumberFormat>, MeasuredRuns> groups;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs)
      if (const ErrorClass kind = error_class(m); !kind.small) groups[{kind.device, kind.format}].push_back(&m);
  const AcceleratorsByName devices = accelerators_of(sets);
  std::vector<PublishedFit> fits;
  for (const auto& [key, runs] : groups) {
    const auto& [device_name, format] = key;
    if (runs.size() < 2) continue;
    const Accelerator& device = devices.find(device_name)->second;
    Fit::Number share{.formats = {format}};
    if (format == NumberFormat::Bf16 && device.has(NumberFormat::Fp16)) share.formats.push_back(NumberFormat::Fp16);
    fits.push_back({device_name, format, device.formats[format].share,
                    fit_numbers(runs, device, {std::move(share)}, kPublishedRanges)});
  }
  return fits;
}

std::string to_text(const std::vector<PublishedFit>& fits) {
  std::string text = fmt::format(
      "One share for each device type and format, fitted to the runs. Mean absolute errors: with the shipped share,\n"
      "with the fitted one, and of each run with a share that was fitted to others\n\n"
      "{:<14}{:<8}{:>6}{:>9}{:>9}{:>10}{:>9}{:>10}\n",
      "device", "format", "runs", "share", "fitted", "shipped", "fitted", "left out");
  const auto percent = [](double error) { return fmt::format("{:.1f} %", 100 * error); };
  for (const PublishedFit& f : fits)
    text += fmt::format("{:<14}{:<8}{:>6}{:>9.4g}{:>9.4g}{:>10}{:>9}{:>10}\n", f.device, name(f.format), f.fit.runs,
                        f.share, f.fit.numbers.front().factor * f.share, percent(f.fit.error_before),
                        percent(f.fit.error_after), percent(f.fit.error_left_out));
  return text;
}

}  // namespace stagecraft
