// Time until a loss is reached, with the best of some learning rates, compared with a prototype. An update of
// eight equal stages takes 5.625 with a flush, 3.875 in ZB-H1 and 3 without one, forwards 1 and backwards 2, eight
// micro-batches.

#include <array>
#include <optional>

#include "sim/core/numbers.hpp"

#include "tests/reference/weights/questions.hpp"

using namespace stagecraft;
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
Rates theirs() {
  Rates all;
  for (const ReferenceRow& row : reference_rows("weight_curves.csv")) {
    const auto rate =
        static_cast<std::size_t>(std::find(kRates.begin(), kRates.end(), row.number("rate")) - kRates.begin());
    REQUIRE(rate < kRates.size());
    auto& rates = all[row.text("method")];
    rates.resize(kRates.size());
    Curve& seed = rates[rate].curves.emplace_back();
    for (const double loss : numbers(row.text("losses")))
      seed.evaluations.push_back({20 * static_cast<int>(seed.evaluations.size()), loss});
  }
  return all;
}

Rates ours(const std::vector<std::string>& methods) {
  Rates all;
  for (const double rate : kRates)
    for (MethodRuns& m :
         test::converge(question({"glyph", 8, "adamw", rate, 0.9, 32, 600}, methods, 5), [](const std::string&) {
         }).methods)
      all[m.name].push_back(std::move(m));
  return all;
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
Losses times(const Rates& all, double target) {
  Losses found;
  for (const auto& [method, rates] : all) {
    const Seeds updates = best_updates(rates, target);
    if (method != "sync") found[method] = times(updates, kAsync);
    if (method == "sync") found["sync with a flush"] = times(updates, kFlush);
    if (method == "sync") found["sync in ZB-H1"] = times(updates, kZb);
  }
  return found;
}

}  // namespace

TEST_CASE("times to a loss stand in the order that the data separates") {
  Rates data = theirs();
  if (!all_trials())
    std::erase_if(data, [](const auto& method) { return method.first != "sync" && method.first != "pipeoptim"; });
  std::vector<std::string> methods;
  for (const auto& [name, rates] : data) methods.push_back(name);
  const Rates found = ours(methods);
  int pairs = 0;
  for (const double target : {1.0, 0.8}) {
    const Losses known = times(data, target), here = times(found, target);
    std::string text = fmt::format("glyph, adamw, time until {}\n", target);
    for (const auto& [name, seeds] : here)
      text += fmt::format("  {:<24}{}   data {}\n", name, in_words(seeds), in_words(known.at(name)));
    MESSAGE(text);
    INFO(text);
    pairs += check_less(known, here);
  }
  MESSAGE(pairs << " orders");
  CHECK(pairs > (all_trials() ? 50 : 2));
}
