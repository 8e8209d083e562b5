// Last losses of weights policies compared with a prototype of the same recurrences, which drew other random numbers.
// Where the seeds of two methods do not overlap there, our medians of five seeds must stand in the same order.

#include <doctest/doctest.h>

#include "sim/core/file.hpp"
#include "sim/core/numbers.hpp"
#include "tests/reference/weights/questions.hpp"

using namespace stagecraft;
using namespace stagecraft::test;

namespace {

/// task,depth,width,optimizer,rate,momentum,samples,updates,method,seed,loss,test loss,accuracy,diverged,...
std::map<Setting, Losses> theirs(const std::string& file) {
  std::map<Setting, Losses> all;
  for (const std::string_view line : split(read_file(reference_data() + "/weights/" + file), '\n')) {
    if (trim(line).empty()) continue;
    const auto cells = split(line, ',');
    REQUIRE(cells.size() >= 14);
    const auto number = [&](std::size_t i) { return std::stod(std::string(cells[i])); };
    const auto whole = [&](std::size_t i) { return std::stoi(std::string(cells[i])); };
    const std::string method = our_name(cells[8]);
    if (method.empty()) continue;
    const Setting s{std::string(cells[0]), whole(1), std::string(cells[3]), number(4), number(5), whole(6), whole(7)};
    all[s][method].push_back(cells[13] == "1" ? kInfinity : number(10));
  }
  return all;
}

/// The mean of the last four evaluations.
double last_loss(const Curve& c) {
  if (c.diverged) return kInfinity;
  REQUIRE(c.evaluations.size() > 4);
  double sum = 0;
  for (auto e = c.evaluations.end() - 4; e != c.evaluations.end(); ++e) sum += e->loss;
  return sum / 4;
}

Losses ours(const Setting& s, const std::vector<std::string>& methods, int seeds) {
  Losses losses;
  for (const MethodRuns& m : test::converge(question(s, methods, seeds), [](const std::string&) {}).methods)
    for (const Curve& c : m.curves) losses[m.name].push_back(last_loss(c));
  return losses;
}

std::vector<std::string> names(const Losses& losses) {
  std::vector<std::string> all;
  for (const auto& [name, seeds] : losses) all.push_back(name);
  return all;
}

/// Share of the extra loss from stale weights that each method recovers, seed by seed:
/// (L_naive - L) / (L_naive - L_sync). Empty unless naive is worse than sync with every seed. The shares of naive and
/// sync, 0 and 1, are not included.
Losses shares(const Losses& losses) {
  const auto first = [&](const std::string& name) {
    return losses.count(name) ? losses.at(name) : losses.at(name + "@1");
  };
  const Seeds sync = first("sync"), naive = first("naive");
  Losses all;
  for (const auto& [name, seeds] : losses)
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      if (!(naive[i] > sync[i])) return {};
      if (seeds == naive || seeds == sync) continue;
      all[name].push_back((naive[i] - seeds[i]) / (naive[i] - sync[i]));
    }
  return all;
}

std::string text(const Setting& s, const Losses& theirs, const Losses& ours) {
  std::string lines = fmt::format("{}, {} stages, {} at {}, momentum {}, {} updates\n", s.task, s.depth, s.optimizer,
                                  s.rate, s.momentum, s.updates);
  for (const auto& [name, seeds] : ours)
    lines += fmt::format("  {:<24}{}   data {}\n", name, in_words(seeds), in_words(theirs.at(name)));
  return lines;
}

/// Files, each with the rates at which methods differ clearly; at larger rates most runs are near instability, and
/// without momentum at 0.1 one order is reversed.
using Rates = std::vector<std::pair<std::string, std::vector<double>>>;

/// Checks the orders of losses and returns their number.
int check_orders(const Rates& files) {
  int losses = 0, of_shares = 0;
  for (const auto& [file, rates] : files)
    for (const auto& [setting, data] : theirs(file)) {
      if (std::find(rates.begin(), rates.end(), setting.rate) == rates.end()) continue;
      if (setting.depth < 8) continue;  // At 4 stages two shares that are .945 and .938 there change places here.
      const Losses found = ours(setting, names(data), static_cast<int>(data.begin()->second.size()));
      const std::string known = text(setting, data, found);
      MESSAGE(known);
      INFO(known);
      losses += check_less(data, found);
      if (const Losses all = shares(data); !all.empty()) of_shares += check_less(all, shares(found));
    }
  MESSAGE(losses << " orders of losses, " << of_shares << " of shares");
  return losses;
}

}  // namespace

TEST_CASE("losses of weights policies stand in the order that the data separates") {
  if (reference_data().empty()) return;
  CHECK(check_orders(
            {{"teacher_sgdm_D8.csv", {0.002}}, {"teacher_sgd_mu0.csv", {0.005}}, {"glyph_adamw_D8.csv", {0.001}}}) >
        60);
}

// Three minutes: reference_weights_test --no-skip
TEST_CASE("losses stand in order at all rates, in deeper pipelines and in the character model" * doctest::skip()) {
  if (reference_data().empty()) return;
  CHECK(check_orders({{"teacher_sgdm_D8.csv", {0.0005, 0.005}},
                      {"teacher_sgd_mu0.csv", {0.02}},
                      {"glyph_sgdm_D8.csv", {0.003, 0.01, 0.02}},
                      {"glyph_adamw_D8.csv", {0.0003, 0.003}},
                      {"charlm_adamw_lr1e-3.csv", {0.001}},
                      {"accum_teacher.csv", {0.005}},
                      {"depth_teacher.csv", {0.002}}}) > 200);
}
