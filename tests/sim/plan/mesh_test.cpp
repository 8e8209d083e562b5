#include "sim/plan/mesh.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

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
