#include "sim/cost/profile.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace stagecraft {
namespace {

/// The value at x on the line through the two nearest points; in proportion where there is one, and below all of them.
template <class Point, class X, class Y>
double interpolate(const std::vector<const Point*>& sorted, double x, X x_of, Y y_of) {
  const Point &first = *sorted.front(), &last = *sorted.back();
  if (x <= x_of(first)) return y_of(first) * x / x_of(first);
  if (sorted.size() == 1) return y_of(last) * x / x_of(last);
  std::size_t i = 1;
  while (i + 1 < sorted.size() && x_of(*sorted[i]) < x) ++i;
  const Point &a = *sorted[i - 1], &b = *sorted[i];
  const double share = (x - x_of(a)) / (x_of(b) - x_of(a));
  return y_of(a) + share * (y_of(b) - y_of(a));
}

}  // namespace

std::optional<MeasuredLayer> Profile::find(const std::string& layer, double samples) const {
  std::vector<const MeasuredLayer*> found;
  for (const MeasuredLayer& m : layers)
    if (m.layer == layer) found.push_back(&m);
  if (found.empty() || layer.empty() || samples <= 0) return std::nullopt;
  std::sort(found.begin(), found.end(),
            [](const MeasuredLayer* a, const MeasuredLayer* b) { return a->samples < b->samples; });
  const auto at = [&](Seconds MeasuredLayer::*member) {
    return Seconds{interpolate(
        found, samples, [](const MeasuredLayer& m) { return static_cast<double>(m.samples); },
        [&](const MeasuredLayer& m) { return (m.*member).value; })};
  };
  MeasuredLayer result = *found.front();
  result.samples = static_cast<int>(samples);
  result.forward = at(&MeasuredLayer::forward);
  result.input_gradient = at(&MeasuredLayer::input_gradient);
  result.weight_gradient = at(&MeasuredLayer::weight_gradient);
  return result;
}

std::optional<Seconds> Profile::update(double parameters) const {
  return of_updates(parameters, &MeasuredUpdate::time);
}

std::optional<Seconds> Profile::predict(double parameters) const {
  return of_updates(parameters, &MeasuredUpdate::predict);
}

std::optional<Seconds> Profile::of_updates(double parameters, Seconds MeasuredUpdate::*member) const {
  if (updates.empty() || parameters <= 0) return std::nullopt;
  std::vector<const MeasuredUpdate*> sorted;
  for (const MeasuredUpdate& u : updates) sorted.push_back(&u);
  std::sort(sorted.begin(), sorted.end(),
            [](const MeasuredUpdate* a, const MeasuredUpdate* b) { return a->parameters < b->parameters; });
  return Seconds{interpolate(
      sorted, parameters, [](const MeasuredUpdate& u) { return u.parameters; },
      [&](const MeasuredUpdate& u) { return (u.*member).value; })};
}

std::string signature(const std::vector<Operation>& of_layer, const Precision& precision) {
  if (of_layer.empty()) return {};
  std::string text = fmt::format("fp{:.0f}:", 8 * precision.activation);
  for (std::size_t i = 0; i < of_layer.size(); ++i) text += (i == 0 ? " " : "; ") + to_text(of_layer[i]);
  return text;
}

}  // namespace stagecraft
