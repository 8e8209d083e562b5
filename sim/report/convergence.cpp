#include "sim/report/convergence.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"

namespace stagecraft {
namespace {

constexpr int kResamples = 2000;

/// Without any run the target is never reached.
double median_or_never(std::vector<double> values) { return values.empty() ? kInfinity : median(std::move(values)); }

std::vector<double> updates_of(const MethodRuns& method, double target) {
  std::vector<double> all;
  for (const Curve& c : method.curves) {
    const auto updates = updates_to(c, target);
    all.push_back(updates ? *updates : kInfinity);
  }
  return all;
}

/// Not a number where either is never reached.
double ratio(double a, double b) {
  return std::isinf(a) || std::isinf(b) ? std::numeric_limits<double>::quiet_NaN() : a / b;
}

double cost_of(double updates, double of_first) {
  return std::isinf(updates) && std::isfinite(of_first) ? kInfinity : ratio(updates, of_first);
}

/// 5 % and 95 % of the ratios of medians when seeds are drawn again, the same ones for both methods
/// where both have them.
std::pair<double, double> bootstrap(const std::vector<double>& ours, const std::vector<double>& first) {
  Rng rng(1, "bootstrap");
  std::vector<double> ratios;
  for (int n = 0; n < kResamples; ++n) {
    std::vector<double> a, b;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const auto pick = static_cast<std::size_t>(rng.integer(0, static_cast<int>(ours.size()) - 1));
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

/// Losses at the last evaluation, runs that diverged as infinite.
std::vector<double> last_losses(const MethodRuns& m) {
  std::vector<double> all;
  for (const Curve& c : m.curves) {
    const bool there = !c.diverged && !c.evaluations.empty() && !std::isnan(c.evaluations.back().loss);
    all.push_back(there ? c.evaluations.back().loss : kInfinity);
  }
  return all;
}

std::string end_table(const Convergence& c) {
  std::string text = fmt::format("  {:<24} {:>10}  {:>23}  {:>10}  {:>12}  {:>10}  {:>12}  {:>11}  {}\n", "method",
                                 "last loss", "[lowest - highest]", "diverged", "update, sim.", "pays below",
                                 "update, meas.", "peak memory", "an update is");
  for (const MethodRuns& m : c.methods) {
    const auto losses = last_losses(m);
    const auto diverged = std::count_if(m.curves.begin(), m.curves.end(), [](const Curve& k) { return k.diverged; });
    text += fmt::format("  {:<24} {:>10}  {:>23}  {:>10}  {:>12}  {:>10.2f}  {:>12}  {:>11}  {}\n", m.name,
                        loss(median_or_never(losses)),
                        fmt::format("[{} - {}]", loss(*std::min_element(losses.begin(), losses.end())),
                                    loss(*std::max_element(losses.begin(), losses.end()))),
                        fmt::format("{}/{}", diverged, m.curves.size()), to_text(m.update),
                        c.methods.front().update / m.update, m.measured.value > 0 ? to_text(m.measured) : "-",
                        to_text(m.memory), m.spelt);
  }
  return text;
}

std::string target_table(const Convergence& c, double target) {
  const bool measured = c.methods.front().measured.value > 0;
  std::string text = fmt::format("\n  target {:.4g}\n  {:<24} {:>7}  {:>20}  {:>22}  {:>10}  {:>10}  {:>8}{}\n", target,
                                 "method", "reached", "updates [range]", "cost [90 %]", "pays below", "time, sim.",
                                 "speed-up", measured ? "  time, meas.  speed-up" : "");
  const Standing first = standing(c, 0, target);
  for (std::size_t i = 0; i < c.methods.size(); ++i) {
    const Standing s = standing(c, i, target);
    text += fmt::format("  {:<24} {:>7}  {:>20}  {:>22}  {:>10.2f}  {:>10}  {:>8}", c.methods[i].name,
                        fmt::format("{}/{}", s.reached, s.total),
                        fmt::format("{} [{}-{}]", number(s.updates), number(s.low), number(s.high)),
                        i == 0 ? "1"
                               : fmt::format("{} [{}-{}]", number(s.cost, "{:.2f}"), number(s.cost_low, "{:.2f}"),
                                             number(s.cost_high, "{:.2f}")),
                        s.hardware, seconds(s.time), number(ratio(first.time, s.time), "{:.2f}"));
    if (measured)
      text += fmt::format("  {:>11}  {:>8}", seconds(s.measured_time),
                          number(ratio(first.measured_time, s.measured_time), "{:.2f}"));
    text += "\n";
  }
  return text;
}

}  // namespace

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
  Standing s;
  s.total = static_cast<int>(updates.size());
  s.reached = static_cast<int>(std::count_if(updates.begin(), updates.end(), [](double u) { return u < kInfinity; }));
  s.updates = median_or_never(updates);
  s.low = *std::min_element(updates.begin(), updates.end());
  s.high = *std::max_element(updates.begin(), updates.end());
  s.cost = cost_of(s.updates, median_or_never(of_first));
  std::tie(s.cost_low, s.cost_high) = bootstrap(updates, of_first);
  s.hardware = first.update / m.update;
  s.time = s.updates * m.update.value + m.fill.value;
  s.measured_time = m.measured.value > 0 ? s.updates * m.measured.value : 0;
  return s;
}

std::string to_text(const Convergence& c, const std::vector<double>& targets) {
  std::string text = end_table(c);
  for (const double target : targets) text += target_table(c, target);
  if (!targets.empty())
    text += fmt::format(
        "\n  cost: updates over those of {0}. A method pays where its cost is below \"pays below\", the time of an "
        "update\n"
        "  of {0} over its own; speed-up = pays below / cost, but for the time to fill.\n",
        c.methods.front().name);
  return text;
}

std::string convergence_csv(const Convergence& c) {
  std::string text = "method,seed,update,samples,simulated_s,measured_s,training_loss,evaluation_loss\n";
  for (const MethodRuns& m : c.methods)
    for (const Curve& curve : m.curves)
      for (const Evaluation& e : curve.evaluations) {
        const auto at = static_cast<std::size_t>(e.updates);
        text +=
            fmt::format("{},{},{},{},{:.9g},{},{},{:.9g}\n", m.name, curve.seed, e.updates,
                        static_cast<std::int64_t>(e.updates) * c.samples_per_update,
                        e.updates == 0 ? 0 : e.updates * m.update.value + m.fill.value,
                        m.measured.value > 0 ? fmt::format("{:.9g}", e.updates * m.measured.value) : "",
                        at > 0 && at <= curve.losses.size() ? fmt::format("{:.9g}", curve.losses[at - 1]) : "", e.loss);
      }
  return text;
}

std::string tta_csv(const Convergence& c, const std::vector<double>& targets) {
  std::string text =
      "method,target,reached,seeds,updates,updates_low,updates_high,cost,cost_low,cost_high,hardware_ratio,simulated_s,"
      "measured_s\n";
  for (const double target : targets)
    for (std::size_t i = 0; i < c.methods.size(); ++i) {
      const Standing s = standing(c, i, target);
      text += fmt::format("{},{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.9g},{}\n", c.methods[i].name, target,
                          s.reached, s.total, s.updates, s.low, s.high, s.cost, s.cost_low, s.cost_high, s.hardware,
                          s.time, s.measured_time > 0 ? fmt::format("{:.9g}", s.measured_time) : "");
    }
  return text;
}

}  // namespace stagecraft
