// Last losses of weights policies compared with a prototype of the same recurrences, which drew other random numbers.
// Where the seeds of two methods do not overlap there, our medians of five seeds must stand in the same order.

#include <doctest/doctest.h>

#include <set>

#include "sim/core/file.hpp"
#include "sim/core/numbers.hpp"
#include "tests/reference/weights/comparison.hpp"

namespace stagecraft::losses_test {
using namespace stagecraft::test;

namespace {

std::map<Setting, Losses> reference_losses() {
  std::map<Setting, Losses> settings;
  for (const ReferenceRow& row : reference_rows("weight_losses.csv")) {
    const Setting s{row.text("task"),       row.integer("depth"),   row.text("optimizer"), row.number("rate"),
                    row.number("momentum"), row.integer("samples"), row.integer("updates")};
    settings[s][row.text("method")] = numbers(row.text("losses"));
  }
  return settings;
}

/// The mean of the last four evaluations.
double last_loss(const Curve& c) {
  if (c.diverged) return kInfinity;
  REQUIRE(c.evaluations.size() > 4);
  double sum = 0;
  for (auto e = c.evaluations.end() - 4; e != c.evaluations.end(); ++e) sum += e->loss;
  return sum / 4;
}

Losses train_losses(const Setting& s, const std::vector<std::string>& methods, int seeds) {
  Losses losses;
  for (const MethodRuns& m : test::converge(convergence_question(s, methods, seeds)).methods)
    for (const Curve& c : m.curves) losses[m.name].push_back(last_loss(c));
  return losses;
}

std::vector<std::string> names_of(const Losses& losses) {
  std::vector<std::string> method_names;
  for (const auto& [name, seeds] : losses) method_names.push_back(name);
  return method_names;
}

/// Share of the extra loss from stale weights that each method recovers, seed by seed:
/// (L_naive - L) / (L_naive - L_sync). Empty unless naive is worse than sync with every seed. The shares of naive and
/// sync, 0 and 1, are not included.
Losses shares(const Losses& losses) {
  const auto first = [&](const std::string& name) {
    return losses.count(name) ? losses.at(name) : losses.at(name + "@1");
  };
  const Seeds sync = first("sync"), naive = first("naive");
  Losses shares_by_method;
  for (const auto& [name, seeds] : losses)
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      if (!(naive[i] > sync[i])) return {};
      if (seeds == naive || seeds == sync) continue;
      shares_by_method[name].push_back((naive[i] - seeds[i]) / (naive[i] - sync[i]));
    }
  return shares_by_method;
}

std::string text(const Setting& s, const Losses& reference, const Losses& actual) {
  std::string lines = fmt::format("{}, {} stages, {} at {}, momentum {}, {} updates\n", s.task, s.depth, s.optimizer,
                                  s.rate, s.momentum, s.updates);
  for (const auto& [name, seeds] : actual)
    lines += fmt::format("  {:<24}{}   data {}\n", name, in_words(seeds), in_words(reference.at(name)));
  return lines;
}

/// One setting is tested in every run, with some of its methods.
const Setting kInEveryRun{"teacher", 8, "sgdm", 0.002, 0.9, 32, 1000};
const std::set<std::string> kMethods{"sync", "naive", "stash", "pipeoptim"};

}  // namespace

TEST_CASE("losses of weights policies stand in the order that the data separates") {
  int settings = 0, orders = 0, of_shares = 0;
  for (auto [setting, data] : reference_losses()) {
    if (!all_trials() && setting != kInEveryRun) continue;
    if (!all_trials()) std::erase_if(data, [](const auto& method) { return !kMethods.contains(method.first); });
    const Losses losses = train_losses(setting, names_of(data), static_cast<int>(data.begin()->second.size()));
    const std::string lines = text(setting, data, losses);
    MESSAGE(lines);
    INFO(lines);
    orders += check_less(data, losses);
    if (const Losses data_shares = shares(data); !data_shares.empty())
      of_shares += check_less(data_shares, shares(losses));
    ++settings;
  }
  MESSAGE(settings << " settings, " << orders << " orders of losses, " << of_shares << " of shares");
  CHECK(settings == (all_trials() ? 15 : 1));
  CHECK(orders >= (all_trials() ? 454 : 4));
}

}  // namespace stagecraft::losses_test
