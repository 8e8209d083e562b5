// Efficiencies of groups of GPUs that share a layer, reckoned again as scenarios/papers/megatron/README.md says.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/run/published/published.hpp"
#include "sim/run/references.hpp"
#include "sim/run/scenario.hpp"

using namespace stagecraft;

namespace {

constexpr double kPeak = 312e12, kMemory = 2.039e12, kAllReduce = 200e9;  // Of an A100 with 80 GB, by the second.

/// A layer of a GPT on a group of GPUs; `share` of the peak is what matrix products reach.
struct Group {
  double share = 0, width = 0, heads = 0, sequence = 0, gpus = 0;
  bool selective = false;

  double efficiency() const {
    const double forward = 24 * width * width + 4 * sequence * width, whole = gpus * kPeak;
    const double reduces = 2 * 2 * (gpus - 1) / gpus * 2 * width / kAllReduce;
    const double scores = heads * sequence, alone = 22 * width;
    const double shared = 16 * width + 9 * scores, shared_backward = 24 * width + 11 * scores;
    const double passes = selective ? 3 : 4;
    double time = passes * forward / (whole * share);
    if (selective)
      time += 4 * sequence * width / (whole * share) + 2 * reduces +
              (2 * alone + shared + shared_backward + 9 * scores) / gpus / kMemory;
    else
      time += 3 * reduces + (3 * alone + (2 * shared + shared_backward) / gpus) / kMemory;
    return passes * forward / whole / time;
  }
};

Setting on_top(std::initializer_list<const Setting*> settings) {
  Setting all;
  for (const Setting* s : settings) {
    if (!s->scenario.empty()) all.scenario = s->scenario;
    all.set.insert(all.set.end(), s->set.begin(), s->set.end());
  }
  return all;
}

/// Looks at every cell; how many there are.
int check_table(const PublishedTable& t, double share) {
  int cells = 0;
  for (const PublishedTable::Row& row : t.rows)
    for (std::size_t c = 0; c < t.columns.size(); ++c) {
      if (!row.values[c]) continue;
      CAPTURE(row.name);
      CAPTURE(t.columns[c].name);
      const Setting setting = on_top({&t.setting, &row.setting, &t.columns[c].setting, &row.only[c]});
      config::Problems problems;
      config::Value tree = scenario_tree(setting.scenario, problems);
      tree = checked_scenario(std::move(tree), setting.set, problems);
      problems.throw_if_any();
      const config::Value& model = tree.at("model");
      const config::Value& type = tree.at("cluster").at("types").at("dgx");
      const Group group{share,
                        config::as_real(model.at("hidden")),
                        config::as_real(model.at("heads")),
                        config::as_real(model.at("sequence")),
                        config::as_flop_rate(type.at("peak")).value / kPeak,
                        config::as_bool(model.at("flash_attention"))};
      // Four decimals in the file; the share that was calibrated has four too.
      CHECK(std::abs(config::as_real(type.at("efficiency")) - group.efficiency()) < 1e-4);
      ++cells;
    }
  return cells;
}

}  // namespace

TEST_CASE("published: the efficiency of groups of GPUs is reckoned from one share of the peak each") {
  const Published megatron = load_published("megatron"), vtrain = load_published("vtrain");
  CHECK(check_table(megatron.tables.front(), 0.7276) == 8);
  CHECK(check_table(megatron.tables.back(), 0.6195) == 6);
  int cells = 0;
  for (const PublishedTable& t : vtrain.tables) cells += check_table(t, 0.6778);
  CHECK(cells == 27);
}
