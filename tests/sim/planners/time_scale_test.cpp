// Multiplying all times by one factor, such as another unit of time, changes no plan.

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/planning.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::plan_time_scale_test {
namespace {

/// A chain whose layers take multiples of a tenth of a millisecond, which is no binary number, on devices of up to two
/// speeds: many sums are equal but for rounding.
struct Chain {
  std::vector<int> forward, backward;  ///< Tenths of a millisecond.
  std::vector<int> outputs;            ///< Hundreds of bytes.
  std::vector<double> speeds;          ///< [device]
  int micro_batches = 1;

  ModelGraph model(double factor) const {
    ModelGraph model;
    for (std::size_t l = 0; l < forward.size(); ++l) {
      Layer layer;
      layer.name = fmt::format("l{}", l);
      if (l > 0) layer.inputs = {LayerId{static_cast<std::int64_t>(l) - 1}};
      const Seconds gradient{backward[l] * 1e-4 * factor};
      layer.times = LayerTimes{{forward[l] * 1e-4 * factor}, gradient, gradient};
      layer.output = layer.stash = Bytes{outputs[l] * 100.0};
      layer.parameters = 10;
      model.layers.push_back(std::move(layer));
    }
    return model;
  }
  Cluster cluster(double factor) const {
    Cluster cluster = test::star(static_cast<int>(speeds.size()), 1e6 / factor, 0);
    cluster.types.clear();
    for (const double speed : {1.0, 0.5}) {
      cluster.types.push_back({});
      cluster.types.back().speed = speed;
    }
    for (const DeviceId d : cluster.devices.ids()) cluster.devices[d].type = DeviceTypeId{speeds[d.value] < 1 ? 1 : 0};
    return cluster;
  }
};

Chain random_chain(Rng& rng) {
  Chain chain;
  const bool alike = rng.integer(0, 1) == 0;
  for (int l = rng.integer(3, 9); l > 0; --l) {
    chain.forward.push_back(alike && !chain.forward.empty() ? chain.forward.front() : rng.integer(1, 5));
    chain.backward.push_back(alike && !chain.backward.empty() ? chain.backward.front() : rng.integer(1, 5));
    chain.outputs.push_back(rng.integer(0, 2));
  }
  const bool mixed = rng.integer(0, 1) == 0;
  for (int d = rng.integer(2, 5); d > 0; --d) chain.speeds.push_back(mixed && rng.integer(0, 1) == 0 ? 0.5 : 1);
  chain.micro_batches = 4 * rng.integer(1, 3);
  return chain;
}

std::string text_of(const Plan& plan) {
  std::string text;
  for (const Stage& stage : plan.stages) {
    for (const LayerId layer : stage.shape.layers) text += fmt::format("{} ", layer.value);
    for (const DeviceId device : stage.leaders) text += fmt::format("d{} ", device.value);
    text += "| ";
  }
  return text;
}

/// Compares the plans of all factors; the number of chains for which the planner has a plan.
int check_plans(const std::string& planner, const std::string& options, int rounds) {
  Rng rng(1, planner);
  int compared = 0;
  for (int round = 0; round < rounds; ++round) {
    CAPTURE(planner);
    CAPTURE(options);
    CAPTURE(round);
    const Chain chain = random_chain(rng);
    const auto planned = [&](double factor) {
      return test::planned(planner, chain.model(factor), chain.cluster(factor), options, chain.micro_batches);
    };
    try {
      const Planned plan = planned(1);
      for (const double factor : {1e-3, 0.1, 3.0, 7.0, 10.0, 1000.0}) {
        CAPTURE(factor);
        const Planned scaled = planned(factor);
        CHECK(text_of(scaled.plan) == text_of(plan.plan));
        CHECK(scaled.predicted.value == doctest::Approx(factor * plan.predicted.value).epsilon(1e-12));
      }
      ++compared;
    } catch (const Infeasible&) {  // There are too few devices.
    }
  }
  return compared;
}

}  // namespace

TEST_CASE("planners: all times multiplied by one factor give the same plan") {
  const std::pair<const char*, const char*> planners[] = {
      {"balanced", "{stages: 2}"},
      {"balanced", "{stages: 2, replicas: 2, micro_batch_size: 1}"},
      {"pipedream", "{share: micro_batches, fewer: true}"},
      {"pipedream", "{micro_batch_size: 4, fewer: true, formula: paper}"},
      {"brute", "{share: micro_batches, fewer: true, cuts: listed}"},
      {"piper", "{micro_batch_size: 4}"},
      {"2bw", "{largest_micro_batch: 2}"},
      {"spp", "{micro_batch_size: 4}"},
      {"graphpipe", "{micro_batch_size: 4}"},
      {"graph-exact", "{micro_batch_size: 2}"},
      {"layerpipe", "{}"},
      {"edgepipe", "{}"}};
  for (const auto& [planner, options] : planners) CHECK(check_plans(planner, options, test::trials(200, 40)) > 10);
}

}  // namespace stagecraft::plan_time_scale_test
