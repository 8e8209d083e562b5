// Optimal synchronous pipelining: minimum cuts, the division compared with all divisions, and the bound of list order.

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "sim/core/numbers.hpp"
#include "sim/core/random.hpp"
#include "sim/planners/spp/partition.hpp"

namespace stagecraft::spp_test {
using namespace stagecraft::spp;

namespace {

Bandwidths random_bandwidths(int devices, Rng& rng) {
  Bandwidths result(devices, std::vector<double>(devices, 0));
  for (int a = 0; a < devices; ++a)
    for (int b = 0; b < a; ++b) result[a][b] = result[b][a] = rng.integer(1, 50);
  return result;
}

LineProblem random_problem(int layers, int devices, Rng& rng) {
  LineProblem p;
  p.micro_batches = rng.integer(1, 12);
  for (int r = 1; r <= devices; r *= 2) p.replicas.push_back(r);
  p.bandwidth = random_bandwidths(devices, rng);
  std::vector<double> f, b;
  for (int l = 0; l < layers; ++l) f.push_back(rng.integer(1, 20)), b.push_back(rng.integer(1, 40));
  for (int d = 0; d < devices; ++d) {
    const double slowness = rng.integer(1, 3);
    auto &forward = p.forward.emplace_back(), &backward = p.backward.emplace_back();
    for (const int r : p.replicas) {
      auto &fs = forward.emplace_back(1, 0.0), &bs = backward.emplace_back(1, 0.0);
      for (int l = 0; l < layers; ++l) {
        fs.push_back(fs.back() + slowness * f[l] / r);
        bs.push_back(bs.back() + slowness * b[l] / r);
      }
    }
  }
  p.gradients = {0};
  for (int l = 0; l < layers; ++l) {
    p.cut.push_back(l == 0 ? 0 : rng.integer(0, 200));
    p.gradients.push_back(p.gradients.back() + rng.integer(0, 300));
  }
  return p;
}

/// Time of the slowest part or channel of a division.
double bottleneck_of(const LineProblem& p, const std::vector<LineStage>& parts) {
  double slowest = 0;
  for (std::size_t s = 0; s < parts.size(); ++s) {
    const PartTimes t = times_of(p, parts[s], s > 0 ? &parts[s - 1] : nullptr);
    double work = 0;
    for (int d = parts[s].first_device; d < parts[s].first_device + parts[s].replicas; ++d) {
      const auto choice = static_cast<std::size_t>(std::find(p.replicas.begin(), p.replicas.end(), parts[s].replicas) -
                                                   p.replicas.begin());
      const auto &f = p.forward[d][choice], &b = p.backward[d][choice];
      work = std::max(
          work, f[parts[s].last_layer] - f[parts[s].first_layer] + b[parts[s].last_layer] - b[parts[s].first_layer]);
    }
    slowest = std::max({slowest, work + t.all_reduce / p.micro_batches, 2 * t.input});
  }
  return slowest;
}

/// The smallest bottleneck of all divisions into `parts` parts, with every cut and every number of replicas.
double best_of_all(const LineProblem& p, std::size_t parts) {
  double best = kInfinity;
  std::vector<LineStage> now;
  const std::function<void(int, int)> walk = [&](int layer, int device) {
    if (now.size() == parts) {
      if (layer == p.layers()) best = std::min(best, bottleneck_of(p, now));
      return;
    }
    for (int last = layer + 1; last <= p.layers(); ++last)
      for (const int r : p.replicas) {
        if (device + r > p.devices()) continue;
        now.push_back({layer, last, device, r});
        walk(last, device + r);
        now.pop_back();
      }
  };
  walk(0, 0);
  return best;
}

double cut_weight(const Bandwidths& w, const std::vector<int>& side, int devices) {
  double sum = 0;
  for (int a = 0; a < devices; ++a)
    for (int b = 0; b < a; ++b) {
      const bool in_a = std::find(side.begin(), side.end(), a) != side.end();
      const bool in_b = std::find(side.begin(), side.end(), b) != side.end();
      if (in_a != in_b) sum += w[a][b];
    }
  return sum;
}

}  // namespace

TEST_CASE("the minimum cut is the least of all cuts") {
  Rng rng(1, "cuts");
  for (int n = 0; n < 100; ++n) {
    const int devices = rng.integer(2, 8);
    const Bandwidths w = random_bandwidths(devices, rng);
    std::vector<int> vertices(devices);
    std::iota(vertices.begin(), vertices.end(), 0);
    const auto sides = least_cut(w, vertices);
    CHECK(sides.first.size() + sides.second.size() == devices);
    double smallest = kInfinity;
    for (unsigned mask = 1; mask + 1 < 1U << devices; ++mask) {
      std::vector<int> side;
      for (int d = 0; d < devices; ++d)
        if ((mask >> d & 1U) != 0) side.push_back(d);
      smallest = std::min(smallest, cut_weight(w, side, devices));
    }
    CHECK(cut_weight(w, sides.first, devices) == smallest);
  }
}

TEST_CASE("two hosts with alternating device numbers come one after the other") {
  Bandwidths w(8, std::vector<double>(8, 1.25));
  for (int a = 0; a < 8; ++a)
    for (int b = 0; b < 8; ++b)
      if (a % 2 == b % 2) w[a][b] = 50;
  const std::vector<int> order = order_devices(w);
  REQUIRE(order.size() == 8);
  int crossings = 0;
  for (std::size_t i = 1; i < order.size(); ++i) crossings += order[i] % 2 != order[i - 1] % 2;
  CHECK(crossings == 1);
}

TEST_CASE("the division has the least bottleneck of all divisions, for every number of parts") {
  Rng rng(2, "divisions");
  int compared = 0;
  for (int n = 0; n < 150; ++n) {
    const LineProblem p = random_problem(rng.integer(1, 6), rng.integer(1, 5), rng);
    std::int64_t states = 0;
    const auto divisions = divide(p, states);
    CHECK(divisions.size() == (std::min(p.layers(), p.devices())));
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      CAPTURE(n);
      CAPTURE(i);
      CHECK(divisions[i].bottleneck == doctest::Approx(best_of_all(p, i + 1)).epsilon(1e-12));
      CHECK(bottleneck_of(p, divisions[i].parts) == doctest::Approx(divisions[i].bottleneck).epsilon(1e-12));
      ++compared;
    }
  }
  CHECK(compared > 300);
}

TEST_CASE("an iteration in list order is within (1 + (4 S - 4) / M) of the bottleneck, on 2,000 random instances") {
  Rng rng(3, "bound");
  double worst = 0;
  for (int n = 0; n < 2000; ++n) {
    LineProblem p = random_problem(rng.integer(1, 8), rng.integer(1, 6), rng);
    for (double& g : p.gradients) g = 0;  // The all-reduce comes on top.
    std::int64_t states = 0;
    const auto divisions = divide(p, states);
    const spp::Division& d = divisions[rng.integer(0, static_cast<int>(divisions.size()) - 1)];
    const double parts = static_cast<double>(d.parts.size()), m = p.micro_batches;
    const double time = play(p, d.parts);
    CHECK(time >= m * d.bottleneck * (1 - 1e-12));
    CHECK(time <= (m + 4 * parts - 4) * d.bottleneck * (1 + 1e-12));
    worst = std::max(worst, time / (m * d.bottleneck) / (1 + (4 * parts - 4) / m));
  }
  MESSAGE("at most ", worst, " of the bound");
  CHECK(worst > 0.5);
}

/// The problem with every device in place of a group of neighbors, which have equal links to all others.
LineProblem with_links_of_all(const LineProblem& grouped) {
  LineProblem p = grouped;
  p.group = 1;
  p.inside.clear();
  p.bandwidth.assign(grouped.devices(), std::vector<double>(grouped.devices(), 0));
  for (int a = 0; a < grouped.devices(); ++a)
    for (int b = 0; b < grouped.devices(); ++b) {
      const int from = a / grouped.group, to = b / grouped.group;
      p.bandwidth[a][b] = from == to ? grouped.inside[from] : grouped.bandwidth[from][to];
    }
  return p;
}

TEST_CASE("links between groups of neighbors stand for equal links of all, on 200 random instances") {
  Rng rng(5, "groups");
  for (int n = 0; n < 200; ++n) {
    const int group = 1 << rng.integer(1, 2), groups = rng.integer(2, 5);
    LineProblem p = random_problem(rng.integer(1, 6), group * groups, rng);
    p.group = group, p.unit = group * (1 << rng.integer(0, 1));
    std::erase_if(p.replicas, [&](int r) { return r < p.unit; });
    for (auto* times : {&p.forward, &p.backward})
      for (auto& of_device : *times)
        of_device.erase(of_device.begin(), of_device.end() - static_cast<std::ptrdiff_t>(p.replicas.size()));
    p.bandwidth = random_bandwidths(groups, rng);
    for (int g = 0; g < groups; ++g) p.inside.push_back(rng.integer(1, 20));
    std::int64_t states = 0, states_of_all = 0;
    const LineProblem whole = with_links_of_all(p);
    const auto divisions = divide(p, states), of_all = divide(whole, states_of_all);
    CHECK(states == states_of_all);
    REQUIRE(divisions.size() == of_all.size());
    for (std::size_t i = 0; i < divisions.size(); ++i) {
      CHECK(divisions[i].bottleneck == of_all[i].bottleneck);
      if (!divisions[i].parts.empty()) CHECK(play(p, divisions[i].parts) == play(whole, of_all[i].parts));
    }
  }
}

TEST_CASE("one part never waits") {
  Rng rng(4, "one");
  const LineProblem p = random_problem(5, 1, rng);
  std::int64_t states = 0;
  const auto divisions = divide(p, states);
  REQUIRE(divisions.size() == 1);
  CHECK(play(p, divisions[0].parts) == doctest::Approx(p.micro_batches * divisions[0].bottleneck).epsilon(1e-12));
}

}  // namespace stagecraft::spp_test
