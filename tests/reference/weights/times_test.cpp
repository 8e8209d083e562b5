// Time until a loss is reached, with the best of some learning rates, compared with a prototype. An update of
// eight equal stages takes 5.625 with a flush, 3.875 in ZB-H1 and 3 without one, forwards 1 and backwards 2, eight
// micro-batches.

#include <array>
#include <optional>

#include "sim/core/numbers.hpp"

#include "tests/reference/weights/comparison.hpp"

namespace stagecraft::times_test {
using namespace stagecraft::test;

namespace {

constexpr double kFlush = 5.625, kZb = 3.875, kAsync = 3;

Seeds times(Seeds updates, double of_one) {
  for (double& number : updates) number *= of_one;
  return updates;
}

/// Runs of each method, by rate.
using Rates = std::map<std::string, std::vector<MethodRuns>>;

constexpr std::array<double, 3> kRates{0.001, 0.003, 0.006};

/// Losses before the first update and after each 20.
Rates reference_rates() {
  Rates rates_by_method;
  for (const ReferenceRow& row : reference_rows("weight_curves.csv")) {
    const auto rate =
        static_cast<std::size_t>(std::find(kRates.begin(), kRates.end(), row.number("rate")) - kRates.begin());
    REQUIRE(rate < kRates.size());
    auto& rates = rates_by_method[row.text("method")];
    rates.resize(kRates.size());
    Curve& seed = rates[rate].curves.emplace_back();
    for (const double loss : numbers(row.text("losses")))
      seed.evaluations.push_back({20 * static_cast<int>(seed.evaluations.size()), loss});
  }
  return rates_by_method;
}

Rates train_rates(const std::vector<std::string>& methods) {
  Rates rates_by_method;
  for (const double rate : kRates)
    for (MethodRuns& m :
         test::converge(convergence_question({"glyph", 8, "adamw", rate, 0.9, 32, 600}, methods, 5)).methods)
      rates_by_method[m.name].push_back(std::move(m));
  return rates_by_method;
}

/// The learning rate with the smallest median.
Seeds best_updates(const std::vector<MethodRuns>& rates, double target) {
  std::optional<Seeds> best;
  for (const MethodRuns& m : rates) {
    Seeds updates;
    for (const Curve& c : m.curves) {
      const auto there = updates_to(c, target);
      updates.push_back(there ? *there : kInfinity);
    }
    if (!best || median(updates) < median(*best)) best = updates;
  }
  return *best;
}

/// Training without stale weights takes the time of its schedule; all other methods take the time of a schedule without
/// a flush.
Losses times(const Rates& runs, double target) {
  Losses times_by_method;
  for (const auto& [method, rates] : runs) {
    const Seeds updates = best_updates(rates, target);
    if (method != "sync") times_by_method[method] = times(updates, kAsync);
    if (method == "sync") times_by_method["sync with a flush"] = times(updates, kFlush);
    if (method == "sync") times_by_method["sync in ZB-H1"] = times(updates, kZb);
  }
  return times_by_method;
}

}  // namespace

TEST_CASE("times to a loss stand in the order that the data separates") {
  Rates data = reference_rates();
  if (!all_trials())
    std::erase_if(data, [](const auto& method) { return method.first != "sync" && method.first != "pipeoptim"; });
  std::vector<std::string> methods;
  for (const auto& [name, rates] : data) methods.push_back(name);
  const Rates trained_rates = train_rates(methods);
  int pairs = 0;
  for (const double target : {1.0, 0.8}) {
    const Losses expected = times(data, target), actual = times(trained_rates, target);
    std::string text = fmt::format("glyph, adamw, time until {}\n", target);
    for (const auto& [name, seeds] : actual)
      text += fmt::format("  {:<24}{}   data {}\n", name, in_words(seeds), in_words(expected.at(name)));
    MESSAGE(text);
    INFO(text);
    pairs += check_less(expected, actual);
  }
  MESSAGE(pairs << " orders");
  CHECK(pairs > (all_trials() ? 50 : 2));
}

}  // namespace stagecraft::times_test
