// The one price list of collectives: what the profile measured, a curve of the system, the links, the constants of the
// device type. Whatever a collective is for, it is priced in this order.

#include <doctest/doctest.h>

#include "sim/cluster/link_collectives.hpp"
#include "sim/cost/cost_rules.hpp"
#include "tests/support/road.hpp"

namespace stagecraft::price_list_test {
namespace {

const DeviceTypeId kType{0};
const GroupShape kFour{.ranks = 4};

std::shared_ptr<const Cluster> four() { return std::make_shared<Cluster>(test::star(4, 100, 0)); }

CostRules rules(bool by_links) {
  CostRules r;
  Accelerator device;
  device.collectives = {.alpha = {}, .hop = {}, .bus = Bandwidth{10}};
  device.collectives_by_links = by_links;
  device.formats[NumberFormat::Bf16] = {.peak = FlopRate{1e12}, .share = 1};
  device.type.memory_bandwidth = Bandwidth{1e12};
  device.tiles = {{1, 1}};
  r.accelerators.push_back(device);
  r.node.devices = 8;
  r.links = std::make_shared<LinkCollectives>(four());
  return r;
}

void add_curve(CostRules& r) {
  CollectiveCurve curve;
  curve.kind = CollectiveKind::AllReduce, curve.ranks = 4, curve.nodes = 1;
  curve.points = {{Bytes{1000}, Seconds{7}}};
  r.accelerators[kType].curves.push_back(curve);
}

void add_profile(CostRules& r, CollectiveUse use) {
  auto profile = std::make_shared<Profile>();
  profile->collectives.push_back({CollectiveKind::AllReduce, use, 4, Bytes{4000}, Seconds{3}});
  r.profiles.resize(kType.value + 1);
  r.profiles[kType] = profile;
}

Collective sum(Axis axis, double bytes = 4000) {
  return {.axis = axis, .kind = CollectiveKind::AllReduce, .bytes = Bytes{bytes}};
}

}  // namespace

TEST_CASE("a measurement comes before a curve, a curve before links or constants") {
  for (const Axis axis : {Axis::Tensor, Axis::Expert, Axis::Data})
    for (const bool by_links : {false, true}) {
      CAPTURE(by_links);
      CostRules r = rules(by_links);
      const PriceSource fallback = by_links ? PriceSource::Links : PriceSource::Constants;
      CHECK(r.price(sum(axis), kFour, kType).from == fallback);
      CHECK(r.price(sum(axis), kFour, kType).time.value == doctest::Approx(by_links ? 60 : 600));
      add_curve(r);
      CHECK(r.price(sum(axis), kFour, kType).from == PriceSource::Curve);
      CHECK(r.price(sum(axis, 10), kFour, kType).from == fallback);  // Below the smallest measured size.
      add_profile(r, axis == Axis::Data ? CollectiveUse::Ops : CollectiveUse::Parameters);
      CHECK(r.price(sum(axis), kFour, kType).from == PriceSource::Curve);  // It is of other collectives.
      add_profile(r, axis == Axis::Data ? CollectiveUse::Parameters : CollectiveUse::Ops);
      CHECK(r.price(sum(axis), kFour, kType).from == PriceSource::Profile);
      CHECK(r.price(sum(axis), kFour, kType).time.value == 3);
      CHECK(r.floor(sum(axis), r.price(sum(axis), kFour, kType), {{DeviceId{0}, DeviceId{1}}}).seconds_per_byte == 0);
    }
}

TEST_CASE("a group of one, and an empty array, cost nothing") {
  const CostRules r = rules(false);
  CHECK(r.price(sum(Axis::Tensor), {.ranks = 1}, kType).from == PriceSource::Nothing);
  CHECK(r.price(sum(Axis::Data, 0), kFour, kType).time.value == 0);
}

TEST_CASE("by the links, a sum among given devices runs over their own links") {
  Cluster cluster = test::star(4, 100, 0);
  cluster.links.back().bandwidth = Bandwidth{10};  // The cable of the last device.
  CostRules r = rules(true);
  r.links = std::make_shared<LinkCollectives>(std::make_shared<Cluster>(cluster));
  const std::vector<DeviceId> slow{DeviceId{2}, DeviceId{3}}, fast{DeviceId{0}, DeviceId{1}};
  const GroupShape two{.ranks = 2};
  const double by_shape = r.price(sum(Axis::Data), two, kType).time.value;
  CHECK(r.price(sum(Axis::Data), two, kType, &fast).time.value == by_shape);
  CHECK(r.price(sum(Axis::Data), two, kType, &slow).time.value == doctest::Approx(10 * by_shape));
}

TEST_CASE("no collective of a layer is shorter where it stands than by its shape") {
  const CostRules r = rules(false);
  const StageShape shape{.degrees = {.replicas = 2, .context = 2, .tensor = 2}, .sharding = StateSharding::Weights};
  Operation op;
  op.kind = OperationKind::Linear;
  op.division = Division::Column;
  op.rows = 8, op.inner = 16, op.columns = 16;
  op.inputs = {-1};
  const std::vector<Operation> layer{op};
  const EachPass<PassCost> by_shape = passes_of(layer, shape, r, kType, {}, whole_samples(4));
  for (const double floor : {0.0, 1.0, 1e6}) {
    CAPTURE(floor);
    const MinTime min_time = [&](const Collective&) { return Seconds{floor}; };
    const EachPass<PassCost> there = passes_of(layer, shape, r, kType, {}, whole_samples(4), nullptr, min_time);
    for (const auto pass : {&EachPass<PassCost>::forward, &EachPass<PassCost>::input_gradient,
                            &EachPass<PassCost>::weight_gradient, &EachPass<PassCost>::backward}) {
      CHECK((there.*pass).time.total() >= (by_shape.*pass).time.total());
      REQUIRE((there.*pass).collectives.size() == (by_shape.*pass).collectives.size());
      for (std::size_t i = 0; i < (there.*pass).collectives.size(); ++i) {
        CHECK((there.*pass).collectives[i].cost == std::max((by_shape.*pass).collectives[i].cost, Seconds{floor}));
        CHECK((there.*pass).collectives[i].hidden == (by_shape.*pass).collectives[i].hidden);
      }
    }
  }
}

}  // namespace stagecraft::price_list_test
