// Efficiencies of groups of GPUs that share a layer, recomputed as scenarios/papers/megatron/README.md says.

#include <doctest/doctest.h>

#include <cmath>

#include "sim/experiment/references.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/published/published.hpp"

using namespace stagecraft;

namespace {

/// Rates of one GPU: peak in FLOP/s; memory and all-reduce in bytes/s.
struct Gpu {
  double peak, memory, all_reduce;
};
constexpr Gpu kA100{312e12, 2.039e12, 200e9}, kH100{989e12, 3.35e12, 300e9}, kH100In8Bits{1979e12, 3.35e12, 300e9},
    kB200{2250e12, 8e12, 600e9};

/// A layer of a GPT on a group of GPUs; `share` of the peak is what matrix products reach.
struct Group {
  Gpu gpu;
  double share = 0, width = 0, feed_forward = 0, heads = 0, sequence = 0, gpus = 0;
  bool selective = false;

  double forward() const { return 8 * width * width + 4 * width * feed_forward + 4 * sequence * width; }
  double all_reduces(double tensor) const { return 2 * 2 * (tensor - 1) / tensor * 2 * width / gpu.all_reduce; }

  double efficiency() const {
    const double whole = gpus * gpu.peak, scores = heads * sequence, alone = 22 * width;
    const double shared = 16 * width + 9 * scores, shared_backward = 24 * width + 11 * scores;
    const double operations = selective ? 3 * forward() + 4 * sequence * width : 4 * forward();
    double time = operations / (whole * share);
    if (selective)
      time += 2 * all_reduces(gpus) + (2 * alone + shared + shared_backward + 9 * scores) / gpus / gpu.memory;
    else
      time += 3 * all_reduces(gpus) + (3 * alone + (2 * shared + shared_backward) / gpus) / gpu.memory;
    return operations / whole / time;
  }

  /// Flash attention, no dropout, no recomputation; matrix products hide the messages unless `exposed`.
  double flash_efficiency(bool exposed) const {
    const double whole = gpus * gpu.peak;
    double time = 3 * forward() / (whole * share) + 3 * (24 * width + 4 * feed_forward) / gpus / gpu.memory;
    if (exposed) time += 2 * all_reduces(gpus);
    return 3 * forward() / whole / time;
  }
};

Setting on_top(std::initializer_list<const Setting*> settings) {
  Setting merged;
  for (const Setting* s : settings) {
    if (!s->scenario.empty()) merged.scenario = s->scenario;
    merged.set.insert(merged.set.end(), s->set.begin(), s->set.end());
  }
  return merged;
}

bool recomputes_selectively(const config::Value& plan) {
  const config::Value* word = plan.find("recompute");
  return word && word->text == "selective";
}

enum class Kind { Recomputed, Flash, FlashExposed };

/// Checks every cell and returns their number.
int check_table(const PublishedTable& t, double share, const Gpu& gpu = kA100, Kind kind = Kind::Recomputed) {
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
      const config::Value& type = tree.at("cluster").at("types").members.front().value;
      const double width = config::as_real(model.at("hidden"));
      const Group group{gpu,
                        share,
                        width,
                        model.has("feed_forward") ? config::as_real(model.at("feed_forward")) : 4 * width,
                        config::as_real(model.at("heads")),
                        config::as_real(model.at("sequence")),
                        config::as_flop_rate(type.at("peak")).value / gpu.peak,
                        recomputes_selectively(tree.at("plan"))};
      const double computed =
          kind == Kind::Recomputed ? group.efficiency() : group.flash_efficiency(kind == Kind::FlashExposed);
      // Four decimals in the file; the share that was calibrated has four too.
      CHECK(std::abs(config::as_real(type.at("efficiency")) - computed) < 1e-4);
      ++cells;
    }
  return cells;
}

}  // namespace

TEST_CASE("published: the efficiencies of groups of GPUs follow from one share of the peak for each table") {
  const Published megatron = load_published("megatron"), vtrain = load_published("vtrain");
  CHECK(check_table(megatron.tables.front(), 0.7278) == 8);
  CHECK(check_table(megatron.tables.back(), 0.6195) == 6);
  int cells = 0;
  for (const PublishedTable& t : vtrain.tables) cells += check_table(t, 0.6784);
  CHECK(cells == 61);
  const Published bloom = load_published("bloom");
  CHECK(check_table(bloom.tables.front(), 0.6359) == 25);
  CHECK(check_table(bloom.tables.back(), 0.5841) == 17);
}

TEST_CASE("published: with flash attention and without recomputation they follow from one share of the peak too") {
  const Published nemo = load_published("nemo");
  CHECK(check_table(nemo.tables.front(), 0.431, kH100In8Bits, Kind::Flash) == 9);
  CHECK(check_table(nemo.tables.back(), 0.4544, kH100In8Bits, Kind::Flash) == 4);
  CHECK(check_table(load_published("simumax").tables.front(), 0.4024, kB200, Kind::FlashExposed) == 14);
  CHECK(check_table(load_published("llama3").tables.front(), 0.574, kH100, Kind::FlashExposed) == 2);
}
