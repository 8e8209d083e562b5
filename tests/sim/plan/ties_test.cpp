// Weights that layers of several stages share: who holds them, and who adds up their gradients with whom.

#include "sim/plan/ties.hpp"

#include <doctest/doctest.h>

#include <algorithm>

#include "sim/plan/gradient_groups.hpp"
#include "sim/plan/placement.hpp"

using namespace stagecraft;

namespace {

std::vector<DeviceId> devices(std::initializer_list<int> numbers) {
  std::vector<DeviceId> all;
  for (const int n : numbers) all.emplace_back(n);
  return all;
}

std::string text(const std::vector<TieRing>& rings) {
  std::string all;
  for (const TieRing& ring : rings) {
    all += all.empty() ? "" : " | ";
    for (const DeviceId d : ring.devices) all += (d == ring.devices.front() ? "" : " ") + std::to_string(d.value);
  }
  return all;
}

std::string rings(const std::vector<std::vector<DeviceId>>& holders) { return text(tie_rings(0, holders)); }

/// A layer on each stage; those of one tie share 10 numbers, which the first of them owns.
ModelGraph model_with(const std::vector<std::string>& ties) {
  ModelGraph model;
  model.precision.gradient = 2;
  for (std::size_t l = 0; l < ties.size(); ++l) {
    Layer& layer = model.layers.emplace_back();
    layer.name = "l" + std::to_string(l);
    layer.tie = ties[l];
    bool owner = true;
    for (std::size_t before = 0; before < l; ++before) owner = owner && ties[before] != ties[l];
    layer.parameters = owner ? 10 : 0;
  }
  return model;
}

Plan with_layers(Plan plan) {
  const int stages = plan.different_stages();
  for (int s = 0; s < plan.stage_count(); ++s) plan.stages[s].layers = {LayerId{s % stages}};
  return plan;
}

std::string holders(const std::vector<Tie>& ties) {
  std::string all;
  for (const Tie& tie : ties) {
    all += tie.name + ":";
    for (const StageId s : tie.stages) all += " " + std::to_string(s.value);
    all += "; ";
  }
  return all;
}

Plan tied(Plan plan, const std::vector<std::vector<int>>& ties) {
  for (const auto& stages : ties) {
    Tie tie{"t" + std::to_string(plan.ties.size()), {}, Bytes{100}};
    for (const int s : stages) tie.stages.emplace_back(s);
    plan.ties.push_back(std::move(tie));
  }
  return plan;
}

}  // namespace

TEST_CASE("stages that hold layers of one tie, with the bytes of the gradient of all its numbers") {
  const ModelGraph model = model_with({"w", "", "v", "w", "v", "w"});
  const std::vector<Tie> ties = ties_of(with_layers(chain_plan(6, 6, 1)), model);
  CHECK(holders(ties) == "w: 0 3 5; v: 2 4; ");
  CHECK(ties.front().gradient.value == 20);  // 10 numbers of 2 bytes.
}

TEST_CASE("a tie within one stage, without weights, or among single tasks is none") {
  Plan plan = chain_plan(2, 2, 1);
  plan.stages[0].layers = {LayerId{0}, LayerId{1}};
  plan.stages[1].layers = {LayerId{2}};
  CHECK(ties_of(plan, model_with({"w", "w", ""})).empty());
  ModelGraph empty = model_with({"w", "", "w"});
  CHECK(holders(ties_of(plan, empty)) == "w: 0 1; ");
  empty.layers[0].parameters = 0;
  CHECK(ties_of(plan, empty).empty());
  plan.stages[1].task = StageTask::InputGradient;
  CHECK(ties_of(plan, model_with({"w", "", "w"})).empty());
}

TEST_CASE("the copies of pipelines in both directions hold them too") {
  const Plan plan = with_layers(placed_plan(Placement::Bidirectional, 4, 1, 4, 0));
  CHECK(holders(ties_of(plan, model_with({"w", "", "", "w"}))) == "w: 0 3 4 7; ");
}

TEST_CASE("a ring of the k-th replicas of each holder, or one of all") {
  CHECK(rings({devices({0}), devices({3})}) == "0 3");
  CHECK(rings({devices({0, 1}), devices({6, 7})}) == "0 6 | 1 7");
  CHECK(rings({devices({1, 0}), devices({6, 7})}) == "1 6 | 0 7");
  CHECK(rings({devices({0, 1}), devices({4, 5}), devices({6, 7})}) == "0 4 6 | 1 5 7");
  CHECK(rings({devices({0, 1}), devices({6})}) == "0 1 6");
  CHECK(rings({devices({0, 1, 2}), devices({4, 5})}) == "0 1 2 4 5");
}

TEST_CASE("a device that holds several copies is in one ring, and alone in none") {
  CHECK(rings({devices({0})}) == "");
  CHECK(rings({devices({0}), devices({0})}) == "");
  CHECK(rings({devices({0, 1}), devices({1, 0})}) == "");  // Both have both.
  CHECK(rings({devices({0, 3}), devices({3, 0}), devices({1, 2})}) == "0 1 | 3 2");
  CHECK(rings({devices({0, 1}), devices({1, 2})}) == "0 2");  // 1 has both sums.
  CHECK(rings({devices({0}), devices({0}), devices({1})}) == "0 1");
  CHECK(rings({devices({0, 1}), devices({1})}) == "0 1");                          // 0 has not what 1 has.
  CHECK(rings({devices({0, 1}), devices({2, 3}), devices({0, 2})}) == "0 1 2 3");  // Both are in the first ring.
}

TEST_CASE("groups with a ring between them are updated in one round, which all their devices come to") {
  const GradientGroups none(chain_plan(4, 4, 1));
  CHECK_FALSE(none.waits(StageId{0}));
  const GradientGroups two(tied(chain_plan(5, 5, 1), {{0, 4}}));
  CHECK(two.round(StageId{4}) == 0);
  CHECK(two.round(StageId{1}) == 1);
  CHECK(two.round_devices(StageId{4}) == devices({0, 4}));
  CHECK(two.waits(StageId{4}));
  CHECK_FALSE(two.exchanges(StageId{4}));
  CHECK_FALSE(two.tied(StageId{1}));
  const GradientGroups chained(tied(chain_plan(6, 6, 1), {{3, 4}, {1, 5}, {1, 3}}));
  for (const int s : {1, 3, 4, 5}) CHECK(chained.round_devices(StageId{s}) == devices({1, 3, 4, 5}));
  CHECK(text(chained.rings()) == "3 4 | 1 5 | 1 3");
  CHECK_FALSE(chained.waits(StageId{2}));
}

TEST_CASE("first and last stage on the same devices: no ring, but one round") {
  for (const Placement placement : {Placement::V, Placement::Wave, Placement::Bidirectional}) {
    const Plan plan = placed_plan(placement, 4, 2, 4, 0);
    const int last = plan.different_stages() - 1;
    const bool both_ways = placement == Placement::Bidirectional;
    const std::vector<int> stages = both_ways ? std::vector<int>{0, 3, 4, 7} : std::vector<int>{0, last};
    const GradientGroups groups(tied(plan, {stages}));
    CHECK(groups.rings().empty());
    CHECK(groups.round(StageId{last}) == 0);
    CHECK(groups.round_devices(StageId{last}) == (both_ways ? devices({0, 3}) : devices({0})));
    for (int s = 0; s < plan.stage_count(); ++s)
      CHECK(groups.tied(StageId{s}) == (std::find(stages.begin(), stages.end(), s) != stages.end()));
  }
}

TEST_CASE("what a device holds of a tie") {
  Plan plan = chain_plan(3, 3, 2);
  plan.stages[0].devices = devices({0, 1});
  plan.stages[1].devices = devices({1, 2});
  plan.stages[2].devices = devices({3});
  const GradientGroups groups(tied(plan, {{0, 1}}));
  CHECK(text(groups.rings()) == "0 2");
  CHECK(groups.ties(StageId{1}) == std::vector<int>{0});
  CHECK(groups.ties(StageId{2}).empty());
  const Holding &both = groups.holding(0, DeviceId{1}), &second = groups.holding(0, DeviceId{2});
  REQUIRE(both.groups.size() == 2);
  CHECK(both.groups[0].group == 0);
  CHECK(both.groups[0].place == 1);
  CHECK(both.groups[1].group == 1);
  CHECK(both.groups[1].place == 0);
  CHECK(both.stage == 0);
  CHECK(both.ring == -1);
  REQUIRE(second.groups.size() == 1);
  CHECK(second.stage == 1);
  CHECK(second.ring == 0);
  CHECK(second.place == 1);
}

TEST_CASE("holders of 20,000 replicas, side by side and on the same devices, are laid out at once") {
  // What looks for each device among all takes 4e8 steps for one of the holders.
  constexpr int kReplicas = 20000;
  Plan plan = chain_plan(2, 2, 2);
  for (const bool shifted : {false, true}) {
    for (int s = 0; s < 2; ++s) {
      plan.stages[s].devices.clear();
      for (int r = 0; r < kReplicas; ++r)
        plan.stages[s].devices.emplace_back(shifted ? r + s * kReplicas / 2 : 2 * r + s);
    }
    const GradientGroups groups(tied(plan, {{0, 1}}));
    CHECK(groups.rings().size() == (shifted ? kReplicas / 2 : kReplicas));
    CHECK(groups.round_devices(StageId{1}).size() == (shifted ? kReplicas * 3 / 2 : kReplicas * 2));
  }
}
