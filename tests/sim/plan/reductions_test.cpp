// Which devices sum which gradients, and which updates wait for each other because of that.

#include "sim/plan/reductions.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/core/random.hpp"
#include "sim/plan/placement.hpp"
#include "tests/support/reductions.hpp"

namespace stagecraft::reductions_test {
namespace {

using Devices = std::vector<DeviceId>;

Devices devices(std::initializer_list<int> numbers) {
  Devices list;
  for (const int n : numbers) list.emplace_back(n);
  return list;
}

template <class Ids>
std::string numbers(const Ids& ids) {
  std::string text;
  for (const auto id : ids) text += (text.empty() ? "" : " ") + std::to_string(id.value);
  return text;
}

std::string text(const std::vector<Devices>& groups) {
  std::string joined;
  for (const Devices& group : groups) joined += (joined.empty() ? "" : " | ") + numbers(group);
  return joined;
}

/// Reductions of a source as text: "0 3: 0 6 | 1 7; ", the stages and the process groups of each.
std::string text(const Plan& plan, ReductionSource source) {
  std::string joined;
  for (const Reduction& r : plan.reductions)
    if (r.source == source) joined += numbers(r.stages) + ": " + text(r.groups) + "; ";
  return joined;
}

/// A layer on each stage; layers of one tie share 10 numbers, which the first of them owns.
ModelGraph model_with(const std::vector<std::string>& ties) {
  ModelGraph model;
  model.precision.gradient = 2;
  for (std::size_t l = 0; l < ties.size(); ++l) {
    Layer& layer = model.layers.emplace_back();
    layer.name = "l" + std::to_string(l);
    layer.tie = ties[l];
    layer.parameters = ties[l].empty() || std::count(ties.begin(), ties.begin() + l, ties[l]) > 0 ? 0 : 10;
  }
  return model;
}

Plan with_layers(Plan plan) {
  const int stages = plan.different_stages();
  for (int s = 0; s < plan.stage_count(); ++s) plan.stages[StageId{s}].shape.layers = {LayerId{s % stages}};
  return plan;
}

std::string ties_of(Plan plan, const ModelGraph& model) {
  plan.reductions = derive_reductions(plan, model);
  std::string joined;
  for (const Reduction& r : plan.reductions)
    if (test::is_tied(r)) joined += r.name + ": " + numbers(r.stages) + "; ";
  return joined;
}

Plan tied(Plan plan, const std::vector<std::vector<int>>& ties) {
  std::vector<test::StageTie> with_bytes;
  for (const auto& stages : ties) with_bytes.push_back({stages, 100});
  test::tie_stages(plan, with_bytes);
  return plan;
}

/// A plan with a stage for each holder of the same parameters.
Plan held_by(const std::vector<Devices>& holders) {
  const int n = static_cast<int>(holders.size());
  Plan plan = chain_plan(n, n, 1);
  std::vector<int> stages;
  for (int s = 0; s < n; ++s) plan.stages[StageId{s}].place_on(holders[s]), stages.push_back(s);
  return tied(std::move(plan), {stages});
}

std::string groups(const std::vector<Devices>& holders) { return text(held_by(holders).reductions.back().groups); }

}  // namespace

TEST_CASE("replicas sum the gradients of their stage, later stages first") {
  Plan plan = chain_plan(3, 3, 4);
  CHECK(derive_reductions(plan).empty());
  plan.stages[StageId{0}].place_on(devices({4, 0}));
  plan.stages[StageId{2}].place_on(devices({1, 2, 3}));
  plan.reductions = derive_reductions(plan);
  CHECK(text(plan, ReductionSource::Replicas) == "2: 1 2 3; 0: 4 0; ");
  for (const Reduction& r : plan.reductions) {
    CHECK(r.bytes.value == 0);
    CHECK(r.after.empty());
  }
}

TEST_CASE("replicas sum the bytes of all parameters of a stage, copies of shared ones included") {
  const ModelGraph model = model_with({"w", "", "w"});
  Plan plan = with_layers(chain_plan(3, 3, 1));
  for (int s = 0; s < 3; ++s) plan.stages[StageId{s}].place_on({DeviceId{2 * s}, DeviceId{2 * s + 1}});
  plan.reductions = derive_reductions(plan, model);
  CHECK(text(plan, ReductionSource::Replicas) == "2: 4 5; 1: 2 3; 0: 0 1; ");
  CHECK(text(plan, ReductionSource::TiedParameters) == "0 2: 0 4 | 1 5; ");
  CHECK(plan.reductions[ReductionId{0}].bytes.value == 20);
  CHECK(plan.reductions[ReductionId{1}].bytes.value == 0);  // The layer in the middle has no parameters.
  CHECK(plan.reductions[ReductionId{2}].bytes.value == 20);
  CHECK(plan.reductions[ReductionId{3}].bytes.value == 20);
  CHECK(numbers(plan.reductions[ReductionId{3}].after) == "2 0");
  plan.stages[StageId{0}].task = StageTask::Forward;  // Its gradients come as activations do.
  CHECK(derive_reductions(plan, model)[ReductionId{2}].bytes.value == 0);
}

TEST_CASE("a stage and its twin reduce together; on one device they only wait for each other") {
  const Plan plan = placed_plan(Placement::Bidirectional, 3, 1, 4, 0);
  CHECK(text(plan, ReductionSource::Replicas) == "2 5: 2 0; 1 4: ; 0 3: 0 2; ");
  const UpdateBarriers barriers(plan);
  REQUIRE(barriers.list().size() == 3);
  CHECK(numbers(barriers.list()[0].stages) == "2 5");
  CHECK(numbers(barriers.list()[1].stages) == "1 4");
  CHECK(numbers(barriers.list()[1].devices) == "1");
  CHECK(numbers(barriers.at(StageId{3}).devices) == "0 2");
  Plan replicated = plan;
  for (Stage& stage : replicated.stages)
    stage.place_on({stage.leaders.front(), DeviceId{stage.leaders.front().value + 3}});
  replicated.reductions = derive_reductions(replicated);
  CHECK(text(replicated, ReductionSource::Replicas) == "2 5: 2 5 0 3; 1 4: 1 4; 0 3: 0 3 2 5; ");
}

TEST_CASE("a tie has the stages that hold its layers, and the bytes of its whole gradient") {
  const ModelGraph model = model_with({"w", "", "v", "w", "v", "w"});
  const Plan plan = with_layers(chain_plan(6, 6, 1));
  CHECK(ties_of(plan, model) == "w: 0 3 5; v: 2 4; ");
  CHECK(derive_reductions(plan, model).front().bytes.value == 20);  // 10 numbers of 2 bytes.
}

TEST_CASE("a tie within one stage, without weights or among single tasks needs no reduction") {
  Plan plan = chain_plan(2, 2, 1);
  plan.stages[StageId{0}].shape.layers = {LayerId{0}, LayerId{1}};
  plan.stages[StageId{1}].shape.layers = {LayerId{2}};
  CHECK(ties_of(plan, model_with({"w", "w", ""})) == "");
  ModelGraph empty = model_with({"w", "", "w"});
  CHECK(ties_of(plan, empty) == "w: 0 1; ");
  empty.layers[LayerId{0}].parameters = 0;
  CHECK(ties_of(plan, empty) == "");
  plan.stages[StageId{1}].task = StageTask::InputGradient;
  CHECK(ties_of(plan, model_with({"w", "", "w"})) == "");
}

TEST_CASE("bidirectional copies hold tied parameters too, and twins alone need no sum of a tie") {
  const Plan plan = with_layers(placed_plan(Placement::Bidirectional, 4, 1, 4, 0));
  CHECK(ties_of(plan, model_with({"w", "", "", "w"})) == "w: 0 3 4 7; ");
  CHECK(ties_of(plan, model_with({"w", "", "", ""})) == "");
}

TEST_CASE("a tie has a process group for the k-th replicas of each holder, or one group of all") {
  CHECK(groups({devices({0}), devices({3})}) == "0 3");
  CHECK(groups({devices({0, 1}), devices({6, 7})}) == "0 6 | 1 7");
  CHECK(groups({devices({1, 0}), devices({6, 7})}) == "1 6 | 0 7");
  CHECK(groups({devices({0, 1}), devices({4, 5}), devices({6, 7})}) == "0 4 6 | 1 5 7");
  CHECK(groups({devices({0, 1}), devices({6})}) == "0 1 6");
  CHECK(groups({devices({0, 1, 2}), devices({4, 5})}) == "0 1 2 4 5");
}

TEST_CASE("a device of several holders is in one group, and in no group if it is alone") {
  CHECK(groups({devices({0}), devices({0})}) == "");
  CHECK(groups({devices({0, 1}), devices({1, 0})}) == "");  // Both have both.
  CHECK(groups({devices({0, 3}), devices({3, 0}), devices({1, 2})}) == "0 1 | 3 2");
  CHECK(groups({devices({0, 1}), devices({1, 2})}) == "0 2");  // 1 has both sums.
  CHECK(groups({devices({0}), devices({0}), devices({1})}) == "0 1");
  CHECK(groups({devices({0, 1}), devices({1})}) == "0 1");                          // 0 does not have what 1 has.
  CHECK(groups({devices({0, 1}), devices({2, 3}), devices({0, 2})}) == "0 1 2 3");  // Both are in the first group.
}

TEST_CASE("stages that a reduction connects are updated after one barrier, which all their devices reach") {
  CHECK_FALSE(UpdateBarriers(chain_plan(4, 4, 1)).delays(StageId{0}));
  const UpdateBarriers two(tied(chain_plan(5, 5, 1), {{0, 4}}));
  REQUIRE(two.list().size() == 1);
  CHECK(two.at(StageId{4}).devices == devices({0, 4}));
  CHECK(numbers(two.at(StageId{0}).stages) == "4 0");
  CHECK_FALSE(two.delays(StageId{1}));
  const Plan plan = tied(chain_plan(6, 6, 1), {{3, 4}, {1, 5}, {1, 3}});
  CHECK(text(plan, ReductionSource::TiedParameters) == "3 4: 3 4; 1 5: 1 5; 1 3: 1 3; ");
  const UpdateBarriers chained(plan);
  for (const int s : {1, 3, 4, 5}) CHECK(chained.at(StageId{s}).devices == devices({1, 3, 4, 5}));
  CHECK(numbers(chained.list().front().reductions) == "0 1 2");
  CHECK(numbers(chained.reductions(StageId{3})) == "0 2");
  CHECK_FALSE(chained.delays(StageId{2}));
}

TEST_CASE("barriers of later stages come first, and within a barrier so do later stages and their sums") {
  Plan plan = chain_plan(5, 5, 4);
  for (const int s : {0, 3, 4}) {
    Stage& stage = plan.stages[StageId{s}];
    stage.place_on({stage.leaders.front(), DeviceId{5 + s}});
  }
  plan = tied(std::move(plan), {{1, 2}, {0, 3}});
  CHECK(text(plan, ReductionSource::Replicas) == "4: 4 9; 3: 3 8; 0: 0 5; ");
  const UpdateBarriers barriers(plan);
  REQUIRE(barriers.list().size() == 3);
  CHECK(numbers(barriers.list()[0].stages) == "4");
  CHECK(numbers(barriers.list()[1].stages) == "2 1");
  CHECK(numbers(barriers.list()[2].stages) == "3 0");
  CHECK(numbers(barriers.list()[2].reductions) == "1 2 4");
  CHECK(numbers(plan.reductions[ReductionId{4}].after) == "2 1");
  int position = 0;
  for (const int s : {4, 2, 1, 3, 0}) CHECK(barriers.position(StageId{s}) == position++);
}

TEST_CASE("first and last stage on the same devices have no process group, but one barrier") {
  for (const Placement placement : {Placement::V, Placement::Wave, Placement::Bidirectional}) {
    const Plan built = placed_plan(placement, 4, 2, 4, 0);
    const int last = built.different_stages() - 1;
    const bool both_ways = placement == Placement::Bidirectional;
    const std::vector<int> stages = both_ways ? std::vector<int>{0, 3, 4, 7} : std::vector<int>{0, last};
    const Plan plan = tied(built, {stages});
    CHECK(plan.reductions.back().groups.empty());
    const UpdateBarriers barriers(plan);
    CHECK(barriers.index(StageId{last}) == barriers.index(StageId{0}));
    CHECK(barriers.at(StageId{last}).devices == (both_ways ? devices({0, 3}) : devices({0})));
    for (int s = 0; s < plan.stage_count(); ++s) {
      const bool together = barriers.delays(StageId{s}) && barriers.index(StageId{s}) == barriers.index(StageId{0});
      CHECK(together == (std::find(stages.begin(), stages.end(), s) != stages.end()));
    }
  }
}

TEST_CASE("a device between two holders has both sums, and is in no group of the tie") {
  Plan plan = chain_plan(3, 3, 2);
  plan.stages[StageId{0}].place_on(devices({0, 1}));
  plan.stages[StageId{1}].place_on(devices({1, 2}));
  plan.stages[StageId{2}].place_on(devices({3}));
  plan = tied(std::move(plan), {{0, 1}});
  CHECK(text(plan, ReductionSource::Replicas) == "1: 1 2; 0: 0 1; ");
  CHECK(text(plan, ReductionSource::TiedParameters) == "0 1: 0 2; ");
  CHECK(numbers(plan.reductions.back().after) == "1 0");
  const UpdateBarriers barriers(plan);
  CHECK(numbers(barriers.reductions(StageId{1})) == "0 2");
  CHECK_FALSE(barriers.delays(StageId{2}));
}

TEST_CASE("reductions of 20,000 replicas are derived quickly, on the same devices or not") {
  // What looks for each device among all takes 4e8 steps for one of the holders.
  constexpr int kReplicas = 20000;
  Plan plan = chain_plan(2, 2, 2);
  for (const bool shifted : {false, true}) {
    for (int s = 0; s < 2; ++s) {
      Devices placed;
      for (int r = 0; r < kReplicas; ++r) placed.emplace_back(shifted ? r + s * kReplicas / 2 : 2 * r + s);
      plan.stages[StageId{s}].place_on(placed);
    }
    plan.reductions.clear();
    plan = tied(std::move(plan), {{0, 1}});
    CHECK(plan.reductions.back().groups.size() == (shifted ? kReplicas / 2 : kReplicas));
    CHECK(UpdateBarriers(plan).at(StageId{1}).devices.size() == (shifted ? kReplicas * 3 / 2 : kReplicas * 2));
  }
}

TEST_CASE("a plan that changed after its reductions were derived is refused") {
  Plan plan = chain_plan(2, 2, 2);
  plan.stages[StageId{1}].place_on(devices({1, 2}));
  CHECK_THROWS_AS(UpdateBarriers{plan}, InternalError);
  plan.reductions = derive_reductions(plan);
  CHECK_NOTHROW(UpdateBarriers{plan});
  plan.stages[StageId{1}].place_on(devices({1, 3}));
  CHECK_THROWS_AS(UpdateBarriers{plan}, InternalError);
}

namespace {

/// Replicas on random devices, possibly with twins, and ties that twins hold together.
struct RandomPlan {
  Plan plan;
  std::vector<std::vector<int>> ties;
};

RandomPlan random_plan(Rng& rng) {
  const bool twins = rng.integer(0, 2) == 0;
  const int different = rng.integer(1, 5), stages = twins ? 2 * different : different, count = rng.integer(2, 9);
  RandomPlan r{chain_plan(stages, stages, 1), {}};
  for (int s = 0; s < stages; ++s) {
    Devices some;
    for (int d = 0; d < count; ++d) some.emplace_back(d);
    for (int d = count - 1; d > 0; --d) std::swap(some[d], some[rng.integer(0, d)]);
    some.resize(std::min(count, rng.integer(0, 2) == 0 ? rng.integer(1, 4) : 1 + s % 2));
    r.plan.stages[StageId{s}].place_on(some);
    if (twins) r.plan.stages[StageId{s}].twin = StageId{(s + different) % stages};
  }
  for (int t = rng.integer(0, 3); t > 0; --t) {
    std::vector<int> holders;
    for (int s = 0; s < different; ++s)
      if (rng.integer(0, 1) == 1) holders.push_back(s);
    for (int h = 0, n = static_cast<int>(holders.size()); twins && h < n; ++h)
      holders.push_back(holders[h] + different);
    if (!holders.empty()) r.ties.push_back(holders);
  }
  return r;
}

/// Counts how often a sum has the gradient of each replica of each stage.
using Sum = std::map<std::pair<StageId, DeviceId>, int>;

void add(Sum& to, const Sum& sum) {
  for (const auto& [gradient, count] : sum) to[gradient] += count;
}

/// Whether a sum has every gradient of these stages exactly once, and no other.
bool complete(const Sum& sum, const Plan& plan, const std::vector<StageId>& stages) {
  Sum expected;
  for (const StageId s : stages)
    for (const DeviceId d : plan.stage(s).leaders) expected[{s, d}] = 1;
  return sum == expected;
}

/// Executes the reductions in the order of the list. Each device begins with the gradients that it makes itself.
class Execution {
 public:
  explicit Execution(const Plan& plan) : plan_(plan) {
    for (const StageId s : plan.stages.ids())
      for (const DeviceId d : plan.stage(s).leaders) stage_sum_[first_copy(s)][d][{s, d}] = 1;
    for (const Reduction& r : plan.reductions) test::is_tied(r) ? tied(r) : replicas(r);
  }
  StageId first_copy(StageId s) const {
    const StageId twin = plan_.stage(s).twin;
    return twin.valid() ? std::min(s, twin) : s;
  }
  const Sum& of_stage(StageId s, DeviceId d) const { return stage_sum_.at(first_copy(s)).at(d); }
  /// The sum of a tie on a device.
  const Sum& of_tie(int tie, DeviceId d) const { return tie_sums_.at(tie).at(d); }

 private:
  void replicas(const Reduction& r) {
    auto& sums = stage_sum_[r.stages.front()];
    for (const Devices& group : r.groups) {
      Sum total;
      for (const DeviceId d : group) add(total, sums.at(d));
      for (const DeviceId d : group) sums[d] = total;
    }
  }

  /// A device has the sums of all holders on it. One device of a group contributes the sum of a holder.
  void tied(const Reduction& r) {
    auto& sums = tie_sums_.emplace_back();
    std::set<StageId> holders;
    for (const StageId s : r.stages) holders.insert(first_copy(s));
    for (const StageId h : holders)
      for (const auto& [d, sum] : stage_sum_[h]) add(sums[d], sum);
    for (const Devices& group : r.groups) {
      Sum total;
      for (const StageId h : holders)
        for (const DeviceId d : group)
          if (stage_sum_[h].contains(d)) {
            add(total, stage_sum_[h].at(d));
            break;
          }
      for (const DeviceId d : group) sums[d] = total;
    }
  }

  const Plan& plan_;
  std::map<StageId, std::map<DeviceId, Sum>> stage_sum_;
  std::vector<std::map<DeviceId, Sum>> tie_sums_;
};

}  // namespace

TEST_CASE("every device that holds parameters gets the gradients of all other holders, each once") {
  Rng rng(3, "reductions");
  int tied_sums = 0, twins = 0;
  for (int trial = 0; trial < 3000; ++trial) {
    const RandomPlan random = random_plan(rng);
    const Plan plan = tied(random.plan, random.ties);
    CAPTURE(to_text(plan));
    const Execution execution(plan);
    for (const StageId s : plan.stages.ids()) {
      const StageId twin = plan.stage(s).twin;
      twins += twin.valid();
      for (const DeviceId d : plan.stage(s).leaders)
        CHECK(complete(execution.of_stage(s, d), plan,
                       twin.valid() ? std::vector<StageId>{s, twin} : std::vector<StageId>{s}));
    }
    int number = 0;
    for (const Reduction& r : plan.reductions) {
      for (const ReductionId before : r.after) CHECK(&plan.reductions[before] < &r);
      std::set<DeviceId> members;
      std::size_t places = 0;
      for (const Devices& group : r.groups) {
        CHECK(group.size() > 1);
        members.insert(group.begin(), group.end());
        places += group.size();
      }
      CHECK(members.size() == places);
      if (!test::is_tied(r)) continue;
      for (const StageId s : r.stages)
        for (const DeviceId d : plan.stage(s).leaders)
          CHECK(complete(execution.of_tie(number, d), plan, {r.stages.begin(), r.stages.end()}));
      ++number, ++tied_sums;
    }
  }
  CHECK(tied_sums > 1000);
  CHECK(twins > 1000);
}

TEST_CASE("no update after a barrier runs before every device that contributes has reached it") {
  Rng rng(4, "barriers");
  for (int trial = 0; trial < 1000; ++trial) {
    const RandomPlan random = random_plan(rng);
    const Plan plan = tied(random.plan, random.ties);
    CAPTURE(to_text(plan));
    const UpdateBarriers barriers(plan);
    std::vector<StageId> order;  // Positions of updates by barrier, then in the barrier.
    for (const UpdateBarrier& barrier : barriers.list())
      for (const StageId s : barrier.stages) order.push_back(s);
    for (const StageId s : plan.stages.ids()) {
      std::set<StageId> connected{s};  // By following the reductions until nothing is added.
      for (std::size_t before = 0; before < connected.size();) {
        before = connected.size();
        for (const Reduction& r : plan.reductions)
          if (std::any_of(r.stages.begin(), r.stages.end(), [&](StageId one) { return connected.contains(one); }))
            connected.insert(r.stages.begin(), r.stages.end());
      }
      std::set<DeviceId> contributing;
      for (const StageId one : connected)
        for (const DeviceId d : plan.stage(one).leaders) contributing.insert(d);
      const bool delayed = contributing.size() > 1 || connected.size() > 1;
      CHECK(barriers.delays(s) == delayed);
      if (!delayed) continue;
      const UpdateBarrier& barrier = barriers.at(s);
      CHECK(std::set<StageId>(barrier.stages.begin(), barrier.stages.end()) == connected);
      CHECK(std::set<DeviceId>(barrier.devices.begin(), barrier.devices.end()) == contributing);
      CHECK(barrier.devices.size() == contributing.size());
      CHECK(order[barriers.position(s)] == s);
    }
  }
}

}  // namespace stagecraft::reductions_test
