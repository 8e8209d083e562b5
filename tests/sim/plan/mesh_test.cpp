#include "sim/cluster/mesh.hpp"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <optional>
#include <set>
#include <string>

#include "sim/plan/plan.hpp"
#include "tests/support/devices.hpp"

namespace stagecraft {
namespace {

std::string text(const std::vector<std::vector<DeviceId>>& groups) {
  std::string text;
  for (const auto& group : groups) {
    text += text.empty() ? "" : " | ";
    for (const DeviceId d : group) text += fmt::format("{}{}", d == group.front() ? "" : " ", d.value);
  }
  return text;
}

std::string text(const IdVector<DeviceId, RankId>& ranks) {
  std::string text;
  for (const RankId rank : ranks) text += fmt::format("{} ", rank.value);
  return text;
}

/// A chain with stage s on devices[s].
Plan chain_on(const std::vector<std::vector<DeviceId>>& devices) {
  Plan plan = chain_plan(static_cast<int>(devices.size()), static_cast<int>(devices.size()), 4);
  for (const StageId s : plan.stages.ids()) plan.stages[s].place_on(devices[s.value]);
  return plan;
}

}  // namespace

TEST_CASE("mesh: tensor groups are neighbors, data groups are strided, as in Megatron-LM's order tp-cp-dp") {
  const Mesh mesh = dense_mesh(test::device_range(8, 8), {.replicas = 2, .context = 2, .tensor = 2});
  CHECK(text(mesh.groups({Axis::Tensor})) == "8 9 | 10 11 | 12 13 | 14 15");
  CHECK(text(mesh.groups({Axis::Context})) == "8 10 | 9 11 | 12 14 | 13 15");
  CHECK(text(mesh.groups({Axis::Data})) == "8 12 | 9 13 | 10 14 | 11 15");
  CHECK(text(mesh.groups({Axis::Data, Axis::Context})) == "8 10 12 14 | 9 11 13 15");
  CHECK(mesh.at(6)[Axis::Data] == 1);
  CHECK(mesh.at(6)[Axis::Context] == 1);
  CHECK(mesh.at(6)[Axis::Tensor] == 0);
}

TEST_CASE("mesh: experts are laid over the devices of the dense layers") {
  // Four dense replicas of two devices; two expert groups of four devices each hold all experts.
  const Degrees degrees{.replicas = 4, .tensor = 2, .expert = 4, .expert_tensor = 1};
  const Mesh mesh = expert_mesh(test::device_range(0, 8), degrees);
  CHECK(text(mesh.groups({Axis::Expert})) == "0 1 2 3 | 4 5 6 7");
  CHECK(text(mesh.groups({Axis::Data})) == "0 4 | 1 5 | 2 6 | 3 7");
}

TEST_CASE("mesh: the groups of any axes hold each device once") {
  const Mesh mesh = dense_mesh(test::device_range(0, 12), {.replicas = 3, .context = 2, .tensor = 2});
  for (const AxisSet axes : {AxisSet{}, AxisSet{Axis::Data}, AxisSet{Axis::Tensor, Axis::Data},
                             AxisSet{Axis::Data, Axis::Context, Axis::Expert, Axis::Tensor}}) {
    std::set<DeviceId> seen;
    for (const auto& group : mesh.groups(axes))
      for (const DeviceId d : group) CHECK(seen.insert(d).second);
    CHECK(seen.size() == 12);
  }
}

namespace {

RankOrder order(const char* text) {
  const std::optional<RankOrder> order = parse_rank_order(text);
  REQUIRE(order);
  return *order;
}

/// The stage of each pipeline rank on devices 0, 1, ...
std::vector<Stage> stages_of(const Degrees& d) {
  std::vector<Stage> stages;
  for (const std::vector<int>& positions : positions_of_ranks(d)) {
    std::vector<DeviceId> devices;
    for (const int i : positions) devices.emplace_back(i);
    Stage& stage = stages.emplace_back();
    stage.shape.degrees = d;
    stage.place_on(devices);
  }
  return stages;
}

}  // namespace

TEST_CASE("order: the first axis differs between neighbors") {
  const auto tensor = [](const Stage& s) { return text(s.dense.groups({Axis::Tensor})); };
  const auto context = [](const Stage& s) { return text(s.dense.groups({Axis::Context})); };
  const auto leaders = [](const Stage& s) { return text(std::vector<std::vector<DeviceId>>{s.leaders}); };
  const auto data = [](const Stage& s) { return text(s.dense.groups({Axis::Data})); };
  Degrees d{.replicas = 2, .context = 2, .tensor = 2, .pipeline = 2};
  // Device tp + 2 cp + 4 dp + 8 pp.
  std::vector<Stage> stages = stages_of(d);
  CHECK(tensor(stages[1]) == "8 9 | 10 11 | 12 13 | 14 15");
  CHECK(leaders(stages[1]) == "8 12");
  // Device tp + 2 cp + 4 pp + 8 dp.
  d.order = order("tp-cp-ep-pp-dp");
  stages = stages_of(d);
  CHECK(tensor(stages[0]) == "0 1 | 2 3 | 8 9 | 10 11");
  CHECK(context(stages[0]) == "0 2 | 1 3 | 8 10 | 9 11");
  CHECK(data(stages[0]) == "0 8 | 1 9 | 2 10 | 3 11");
  CHECK(data(stages[1]) == "4 12 | 5 13 | 6 14 | 7 15");
  CHECK(leaders(stages[1]) == "4 12");
  // Device dp + 2 cp + 4 tp + 8 pp.
  d.order = order("dp-cp-tp-ep-pp");
  stages = stages_of(d);
  CHECK(tensor(stages[0]) == "0 4 | 2 6 | 1 5 | 3 7");
  CHECK(context(stages[0]) == "0 2 | 4 6 | 1 3 | 5 7");
  CHECK(data(stages[0]) == "0 1 | 4 5 | 2 3 | 6 7");
  CHECK(leaders(stages[0]) == "0 1");
  // Device pp + 2 tp + 4 cp + 8 dp.
  d.order = order("pp-tp-cp-ep-dp");
  stages = stages_of(d);
  CHECK(tensor(stages[0]) == "0 2 | 4 6 | 8 10 | 12 14");
  CHECK(data(stages[1]) == "1 9 | 3 11 | 5 13 | 7 15");
  // The example in Megatron-LM's generate_masked_orthogonal_rank_groups(): tp-pp-dp of 2 x 2 x 2.
  d = {.replicas = 2, .tensor = 2, .order = order("tp-pp-dp"), .pipeline = 2};
  stages = stages_of(d);
  CHECK(data(stages[0]) == "0 4 | 1 5");
  CHECK(data(stages[1]) == "2 6 | 3 7");
}

TEST_CASE("order: experts number the devices of a stage by their own degrees") {
  // Device dp + 2 ep in a stage of 8: two replicas of 4 x 1 devices.
  const Degrees d{.replicas = 4, .tensor = 2, .expert = 4, .order = order("tp-dp-cp-ep-pp")};
  const Stage stage = stages_of(d).front();
  CHECK(text(stage.expert.groups({Axis::Expert})) == "0 2 4 6 | 1 3 5 7");
  CHECK(text(stage.expert.groups({Axis::Data})) == "0 1 | 2 3 | 4 5 | 6 7");
  CHECK(text(stage.dense.groups({Axis::Tensor})) == "0 1 | 2 3 | 4 5 | 6 7");
}

TEST_CASE("order: text and back, and words that are no order") {
  CHECK(to_text(order("tp-cp-ep-dp-pp")) == "tp-cp-ep-dp-pp");
  CHECK(to_text(order("pp-dp")) == "pp-dp-tp-cp-ep");
  CHECK(order("pp-dp").written == 2);
  for (const char* wrong : {"", "tp-tp", "tp-", "tp cp", "tensor-dp", "TP"}) CHECK_FALSE(parse_rank_order(wrong));
}

TEST_CASE("ranks: replicas that divide samples are one rank, replicas that take turns are a rank each") {
  Plan plan = chain_on({test::device_range(0, 2), test::device_range(2, 3)});
  CHECK(text(ranks_of(plan)) == "0 0 1 1 1 ");
  plan.stages[StageId{1}].share = Share::MicroBatches;
  CHECK(text(ranks_of(plan)) == "0 0 1 2 3 ");
}

TEST_CASE("ranks: devices that share only some of their stages are ranks of their own, and so are idle devices") {
  CHECK(text(ranks_of(chain_on({test::device_range(0, 2), test::device_range(1, 2), {DeviceId{4}}}))) == "0 1 2 3 4 ");
  CHECK(text(ranks_of(chain_on({test::device_range(0, 2), test::device_range(0, 2)}))) == "0 0 ");
  CHECK(text(ranks_of(chain_on({{DeviceId{3}}, {DeviceId{0}, DeviceId{2}}}))) == "0 1 0 2 ");
}

}  // namespace stagecraft
