// The verdict of `validate`: whether the iteration agrees within the tolerance, how sure that is, whether errors cancel
// out, and how much comes from costs and how much from order and messages.

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/validation.hpp"

namespace stagecraft {
namespace {

constexpr double kLargeError = 0.10;     // The relative error of a kind: two in opposite directions are worth a line.
constexpr double kRelevantShare = 0.01;  // A share of the time of all devices: less is not where an error comes from.

/// Whether the error of a kind of instruction is of any weight in the iteration.
bool matters(const Pair& total, const Validation& v) {
  const double time = v.iteration.measured * static_cast<double>(std::max<std::size_t>(1, v.devices.size()));
  return std::abs(total.simulated - total.measured) > kRelevantShare * time;
}

/// Kinds of instructions that are far off in opposite directions; empty where they all are off in one.
std::vector<Pair> cancelling(const Validation& v) {
  std::vector<Pair> far_off;
  const auto add = [&](const Pair& p) {
    if (std::abs(p.error()) > kLargeError && matters(p, v)) far_off.push_back(p);
  };
  for (const Pair& p : v.totals) add(p);
  add(v.messages);
  const auto is_longer = [](const Pair& p) { return p.error() > 0; };
  const bool one_way =
      std::all_of(far_off.begin(), far_off.end(), is_longer) || std::none_of(far_off.begin(), far_off.end(), is_longer);
  return one_way ? std::vector<Pair>() : far_off;
}

std::string cancelling_text(const Validation& v) {
  std::vector<std::string> errors;
  for (const Pair& p : cancelling(v)) errors.push_back(fmt::format("{} {}", p.name, signed_percent(p.error())));
  return errors.empty() ? "" : fmt::format("  errors cancel each other out: {}\n", join(errors));
}

/// ", because backward took 19 % less time in the run than in the simulation": the kind of computation that made most
/// of the error of the costs.
std::string cause_text(const Validation& v) {
  const bool longer = cost_error(v) > 0;
  const Pair* cause = nullptr;
  const auto difference = [&](const Pair& p) { return longer ? p.simulated - p.measured : p.measured - p.simulated; };
  for (const Pair& p : v.totals)
    if (!cause || difference(p) > difference(*cause)) cause = &p;
  if (!cause || difference(*cause) <= 0 || !matters(*cause, v) || cause->simulated <= 0) return {};
  return fmt::format(", because {} took {:.0f} % {} in the run than in the simulation", cause->name,
                     100 * std::abs(cause->measured / cause->simulated - 1), longer ? "less time" : "longer");
}

std::string parts_text(const Validation& v, double tolerance) {
  if (v.replayed.empty()) return {};
  const ModelError model = model_error(v);
  const std::string order = std::abs(model.worst) <= tolerance
                                ? fmt::format("within {:.1f} % on every iteration",
                                              std::max(0.0, std::ceil(std::abs(model.worst) * 1000 - 1e-6)) / 10)
                                : fmt::format("{} in the median iteration, {} in the worst",
                                              signed_percent(model.median), signed_percent(model.worst));
  return fmt::format("  order, overlap and messages: {}; costs: {}{}\n", order, signed_percent(cost_error(v)),
                     cause_text(v));
}

}  // namespace

ModelError model_error(const Validation& v) {
  STAGECRAFT_CHECK(!v.replayed.empty() && v.replayed.size() == v.iterations.size());
  std::vector<double> errors;
  for (std::size_t k = 0; k < v.replayed.size(); ++k)
    errors.push_back(Pair{"iteration", v.replayed[k], v.iterations[k]}.error());
  const auto closer = [](double a, double b) { return std::abs(a) < std::abs(b); };
  return {median(errors), *std::max_element(errors.begin(), errors.end(), closer)};
}

double cost_error(const Validation& v) { return Pair{"iteration", v.iteration.simulated, median(v.replayed)}.error(); }

bool within(const Validation& v, double tolerance) { return std::abs(v.iteration.error()) <= tolerance; }

bool is_sure(const Validation& v, double tolerance) {
  if (!v.doubts.empty()) return false;
  Validation lower = v, higher = v;
  lower.iteration.measured -= v.iteration.spread;
  higher.iteration.measured += v.iteration.spread;
  return within(lower, tolerance) == within(v, tolerance) && within(higher, tolerance) == within(v, tolerance);
}

std::string verdict_text(const Validation& v, double tolerance) {
  const Pair& i = v.iteration;
  const bool agrees = within(v, tolerance);
  std::string text = fmt::format(
      "\n  {} within {:.0f} %{}: the simulated iteration is {} off the measured median, readings spread by +-{:.1f} "
      "%\n",
      agrees ? "yes," : "no, not", 100 * tolerance,
      is_sure(v, tolerance) ? ""
      : v.doubts.empty()    ? ", but that is not sure on so noisy a machine"
                            : ", but that is not sure",
      signed_percent(i.error()), i.measured > 0 ? 100 * i.spread / i.measured : 0);
  for (const std::string& doubt : v.doubts) text += fmt::format("  not sure: {}\n", doubt);
  return text + (agrees ? cancelling_text(v) : "") + parts_text(v, tolerance);
}

}  // namespace stagecraft
