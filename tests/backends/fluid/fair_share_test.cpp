// Max-min fairness by its definition, on random flows over random channels: against a solver that does nothing but let
// all rates grow together, and against what every max-min allocation fulfils and no other does.

#include "backends/fluid/fair_share.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "sim/core/random.hpp"

namespace stagecraft::fair_share_test {
using fluid::FairShare;
using fluid::Paths;

namespace {

Paths make_paths(std::vector<double> capacity, const std::vector<std::vector<int>>& routes,
                 std::vector<double> ceilings = {}) {
  Paths paths;
  paths.capacity = std::move(capacity);
  paths.first.push_back(0);
  for (std::size_t r = 0; r < routes.size(); ++r) {
    double alone = ceilings.empty() ? 1e300 : ceilings[r];
    for (const int c : routes[r]) {
      paths.crossed.push_back(c);
      alone = std::min(alone, paths.capacity[c]);
    }
    paths.alone.push_back(alone);
    paths.first.push_back(static_cast<std::uint32_t>(paths.crossed.size()));
  }
  return paths;
}

/// Channels of very different capacity, often of the same; short and long routes, some over an unshared link.
Paths random_paths(Rng& rng, int channels, int routes) {
  std::vector<double> capacity, ceilings;
  for (int c = 0; c < channels; ++c) capacity.push_back(1e9 * rng.integer(1, 4) * (rng.integer(0, 3) == 0 ? 0.01 : 1));
  std::vector<std::vector<int>> ways;
  for (int r = 0; r < routes; ++r) {
    std::set<int> way;
    for (int hops = rng.integer(0, 5); hops > 0; --hops) way.insert(rng.integer(0, channels - 1));
    ways.emplace_back(way.begin(), way.end());
    ceilings.push_back(way.empty() || rng.integer(0, 2) == 0 ? 1e7 * rng.integer(1, 200) : 1e300);
  }
  return make_paths(std::move(capacity), ways, std::move(ceilings));
}

using Live = std::map<int, std::int32_t>;  ///< Flow and its route.
using Rates = std::map<int, double>;

/// All rates grow by the same amount until a channel is full or a flow has what it has alone; those stop.
Rates fill_all(const Paths& paths, const Live& live) {
  Rates rates;
  std::set<int> growing;
  for (const auto& [flow, route] : live) rates[flow] = 0, growing.insert(flow);
  while (!growing.empty()) {
    std::vector<double> rest = paths.capacity;
    std::vector<int> users(rest.size(), 0);
    for (const auto& [flow, route] : live)
      for (const std::int32_t c : paths.channels_of(route)) {
        rest[c] -= rates[flow];
        users[c] += static_cast<int>(growing.count(flow));
      }
    const auto room = [&](int flow) {
      const std::int32_t route = live.at(flow);
      double smallest = paths.alone[route] - rates[flow];
      for (const std::int32_t c : paths.channels_of(route)) smallest = std::min(smallest, rest[c] / users[c]);
      return smallest;
    };
    double step = 1e300;
    for (const int flow : growing) step = std::min(step, room(flow));
    std::set<int> stop;
    for (const int flow : growing)
      if (room(flow) <= step + 1e-12 * paths.alone[live.at(flow)]) stop.insert(flow);
    for (const int flow : growing) rates[flow] += step;
    for (const int flow : stop) growing.erase(flow);
  }
  return rates;
}

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

/// Checks max-min fairness: no channel exceeds its capacity, and each flow has the rate it has alone or crosses a full
/// channel on which no flow has more. Returns the first violation, or an empty text.
std::string broken(const Paths& paths, const Live& live, const FairShare& shares) {
  std::vector<double> used(paths.capacity.size(), 0), fastest(paths.capacity.size(), 0);
  for (const auto& [flow, route] : live)
    for (const std::int32_t c : paths.channels_of(route)) {
      used[c] += shares.rate(flow);
      fastest[c] = std::max(fastest[c], shares.rate(flow));
    }
  for (std::size_t c = 0; c < used.size(); ++c)
    if (used[c] > paths.capacity[c] * (1 + 1e-9)) return "channel " + std::to_string(c) + " carries too much";
  for (const auto& [flow, route] : live) {
    const double rate = shares.rate(flow), alone = paths.alone[route];
    if (rate > alone * (1 + 1e-9)) return "flow " + std::to_string(flow) + " is faster than alone";
    bool bound = same(rate, alone);
    for (const std::int32_t channel : paths.channels_of(route)) {
      const auto c = static_cast<std::size_t>(channel);
      bound = bound || (same(used[c], paths.capacity[c]) && same(rate, fastest[c]));
    }
    if (!bound) return "flow " + std::to_string(flow) + " could have more";
  }
  return {};
}

}  // namespace

TEST_CASE("random flows that come and go: the rates of plain progressive filling, and what is fair") {
  Rng rng(71, "fair share");
  int settled = 0, shared = 0, unchanged = 0;
  for (int trial = 0; trial < 300; ++trial) {
    const int channels = rng.integer(1, 12);
    const Paths paths = random_paths(rng, channels, rng.integer(1, 20));
    FairShare shares(paths);
    Live live;
    Rates before;
    const int limit = rng.integer(1, 25);
    for (int turn = 0; turn < 40; ++turn) {
      for (int changes = rng.integer(0, 4); changes > 0; --changes) {
        if (!live.empty() && rng.integer(0, limit) < static_cast<int>(live.size())) {
          const auto gone = std::next(live.begin(), rng.integer(0, static_cast<int>(live.size()) - 1));
          shares.remove(gone->first);
          before.erase(gone->first);
          live.erase(gone);
        } else {
          const auto route = static_cast<std::int32_t>(rng.integer(0, static_cast<int>(paths.alone.size()) - 1));
          const int flow = shares.add(route);
          REQUIRE(live.count(flow) == 0);
          live[flow] = route;
        }
      }
      const auto changed = shares.update_rates();
      const std::set<int> reported(changed.begin(), changed.end());
      CHECK(reported.size() == changed.size());
      const Rates expected = fill_all(paths, live);
      for (const auto& [flow, rate] : expected) {
        REQUIRE(same(shares.rate(flow), rate));
        const auto old = before.find(flow);
        CHECK((reported.count(flow) == 1) == (old == before.end() || old->second != shares.rate(flow)));
        shared += !same(rate, paths.alone[live[flow]]);
        unchanged += reported.count(flow) == 0;
        before[flow] = shares.rate(flow);
      }
      CHECK(broken(paths, live, shares) == "");
      ++settled;
    }
  }
  CHECK(settled == 300 * 40);
  CHECK(shared > 20000);  // the cases do reach both what contention changes and what a change leaves alone
  CHECK(unchanged > 20000);
}

TEST_CASE("one slow flow leaves its share to the others") {
  const Paths paths = make_paths({9, 1}, {{0}, {0, 1}});
  FairShare shares(paths);
  const int slow = shares.add(1), one = shares.add(0), two = shares.add(0);
  CHECK(shares.update_rates().size() == 3);
  CHECK(shares.rate(slow) == 1);
  CHECK(shares.rate(one) == 4);
  CHECK(shares.rate(two) == 4);
  shares.remove(one);
  const auto changed = shares.update_rates();
  CHECK(std::vector<int>(changed.begin(), changed.end()) == std::vector<int>{two});
  CHECK(shares.rate(two) == 8);
}

TEST_CASE("a channel with room for all of its flows does not couple them") {
  // Eight cards behind a trunk of eight times their speed, and two flows on each card.
  std::vector<double> capacity(8, 1.0);
  capacity.push_back(8.1);
  std::vector<std::vector<int>> ways;
  for (int card = 0; card < 8; ++card) ways.push_back({card, 8});
  const Paths paths = make_paths(capacity, ways);
  FairShare shares(paths);
  for (int turn = 0; turn < 3; ++turn) {
    std::vector<int> flows;
    for (int card = 0; card < 8; ++card) flows.push_back(shares.add(card));
    CHECK(shares.update_rates().size() == 8);
    shares.remove(flows.back());
    flows.back() = shares.add(7);
    CHECK(shares.update_rates().size() == 1);
    CHECK(shares.reached() == 1);
    const int second = shares.add(3);  // all nine together would have 9 alone, so now the trunk has to be looked at
    CHECK(shares.update_rates().size() == 2);
    CHECK(shares.reached() == 9);
    CHECK(shares.rate(second) == 0.5);
    shares.remove(second);
    CHECK(shares.update_rates().size() == 1);
    for (const int flow : flows) shares.remove(flow);
    CHECK(shares.update_rates().empty());
  }
}

TEST_CASE("a flow that goes before anybody asked leaves no trace") {
  const Paths paths = make_paths({2}, {{0}});
  FairShare shares(paths);
  const int stays = shares.add(0);
  shares.remove(shares.add(0));
  CHECK(shares.update_rates().size() == 1);
  CHECK(shares.rate(stays) == 2);
  CHECK(shares.update_rates().empty());
}

TEST_CASE("a flow over no channel has what it has alone") {
  const Paths paths = make_paths({1}, {{}}, {5});
  FairShare shares(paths);
  const int one = shares.add(0), two = shares.add(0);
  shares.update_rates();
  CHECK(shares.rate(one) == 5);
  CHECK(shares.rate(two) == 5);
}

TEST_CASE("a million changes accumulate no error") {
  // A third is no number of a computer: the sum of what flows would have alone is rounded at each of them.
  const Paths paths = make_paths({1.0, 1.0 / 3}, {{0}, {0, 1}});
  FairShare shares(paths);
  Rng rng(72, "drift");
  std::vector<int> active;
  for (int i = 0; i < 1'000'000; ++i) {
    if (active.size() > 5) {
      std::swap(active[rng.integer(0, static_cast<int>(active.size()) - 1)], active.back());
      shares.remove(active.back());
      active.pop_back();
    } else {
      active.push_back(shares.add(rng.integer(0, 1)));
    }
    shares.update_rates();
  }
  while (active.size() > 1) shares.remove(active.back()), active.pop_back();
  const int one = shares.add(0), two = shares.add(0);
  shares.update_rates();
  CHECK(shares.rate(active[0]) == doctest::Approx(1.0 / 3).epsilon(1e-15));
  CHECK(shares.rate(one) == doctest::Approx(1.0 / 3).epsilon(1e-15));
  CHECK(shares.rate(two) == doctest::Approx(1.0 / 3).epsilon(1e-15));
}

}  // namespace stagecraft::fair_share_test
