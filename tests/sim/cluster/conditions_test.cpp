// Speeds over time, computed by hand.

#include "sim/cluster/conditions.hpp"

#include <doctest/doctest.h>

#include "tests/support/clusters.hpp"

namespace stagecraft::conditions_test {
namespace {

Change of_device(double from, double until, double rate) {
  Change change;
  change.devices = {DeviceId{0}};
  change.from = Seconds{from}, change.until = Seconds{until};
  change.rate = rate;
  return change;
}

Change down(double from, double until) {
  Change change = of_device(from, until, 1);
  change.down = true;
  return change;
}

Change repeated(Change change, double every, double lasts) {
  change.every = Seconds{every}, change.lasts = Seconds{lasts};
  return change;
}

Change of_link(double from, double until, double rate) {
  Change change = of_device(from, until, rate);
  change.devices.clear();
  change.links = {LinkId{0}};
  return change;
}

Cluster with(std::vector<Change> changes) {
  Cluster cluster = test::star(2, 1e6, 0.25);
  cluster.changes = std::move(changes);
  return cluster;
}

Span compute(std::vector<Change> changes, double ready, double seconds, double communicates = 0) {
  const Cluster cluster = with(std::move(changes));
  return Conditions(cluster).compute(DeviceId{0}, 0, ready, seconds, communicates);
}

double carry(std::vector<Change> changes, double from, double bytes) {
  const Cluster cluster = with(std::move(changes));
  return Conditions(cluster).carry(Router(cluster).require(DeviceId{0}, DeviceId{1}), from, bytes);
}

}  // namespace

TEST_CASE("an op continues at the new speed") {
  CHECK(compute({}, 1, 4).end == 5);
  CHECK(compute({of_device(0, kForEver, 0.5)}, 1, 4).end == 9);
  CHECK(compute({of_device(3, kForEver, 0.5)}, 1, 4).end == 7);                 // 2 done, 2 at half
  CHECK(compute({of_device(2, 4, 0.5)}, 1, 4).end == 6);                        // 1, then 2 s at half, then 2
  CHECK(compute({of_device(2, 4, 0)}, 1, 4).end == 7);                          // a pause of 2 lengthens it by 2
  CHECK(compute({of_device(5, 9, 0.5)}, 1, 4).end == 5);                        // over when it begins
  CHECK(compute({of_device(0, 9, 0.5), of_device(0, 9, 0.5)}, 0, 1).end == 4);  // both: a quarter
  CHECK(compute({of_device(0, 9, 0.5)}, 0, 0).end == 0);
}

TEST_CASE("a slow device slows the computation of an op and not its collectives") {
  CHECK(compute({of_device(0, kForEver, 0.5)}, 1, 4, 0.25).end ==
        8);  // 3 s of computation take 6, and 1 of collectives
  CHECK(compute({of_device(0, kForEver, 0.5)}, 1, 4, 1).end == 5);
  CHECK(compute({of_device(3, kForEver, 0.5)}, 1, 4, 0.25).end == 6.5);  // 2 done, 1.5 s take 3, and 0.5
  CHECK(compute({of_device(2, 4, 0)}, 1, 4, 0.25).end == 7);             // a device that stands still sends nothing
  CHECK(compute({down(3, 10)}, 1, 4, 0.25).end == 14);
  CHECK(compute({}, 1, 4, 0.25).end == 5);
}

TEST_CASE("a failure costs what was done and the time until it is over") {
  const Span lost = compute({down(3, 10)}, 1, 4);
  CHECK(lost.start == 1);
  CHECK(lost.end == 14);
  const Span late = compute({down(3, 10)}, 5, 4);
  CHECK(late.start == 10);  // nothing starts while it is down
  CHECK(late.end == 14);
  CHECK(compute({down(3, 10)}, 1, 2).end == 3);                 // just in time
  CHECK(compute({down(3, 10), down(12, 20)}, 1, 4).end == 24);  // twice
  CHECK(compute({down(3, 10), of_device(0, kForEver, 0.5)}, 1, 4).end == 18);
}

TEST_CASE("rounding does not decide whether an op ends before its device fails") {
  const double late = 0.1 + 0.2;  // an ulp more than 0.3
  CHECK(compute({down(0.3, 1)}, 0.1, 0.2).end == late);
  CHECK(compute({down(late, 1)}, 0.3, 0.2).start == 1);
}

TEST_CASE("repeated changes slow or stop an op in each of their periods") {
  // Half speed in the first second of every four, from 2 on: 2..3, 6..7, ...
  const Change slow = repeated(of_device(2, kForEver, 0.5), 4, 1);
  CHECK(compute({slow}, 0, 2.25).end == 2.5);
  CHECK(compute({slow}, 0, 8).end == 9);  // 2 + 0.5 + 3 + 0.5 by 7, and 2 more
  CHECK(compute({repeated(of_device(2, 6.5, 0.5), 4, 1)}, 0, 8).end == 8.75);
  const Change fails = repeated(down(0, kForEver), 4, 1);
  CHECK(compute({fails}, 0, 3).end == 4);
  CHECK(compute({fails}, 2, 3).end == 8);
  CHECK(compute({fails}, 2, 3).start == 2);
  CHECK(compute({fails}, 0, 3.5).end == kForEver);  // never up for so long
}

TEST_CASE("an op on a device that stays down never ends; an op that ended before is not affected") {
  CHECK(compute({down(3, kForEver)}, 1, 4).end == kForEver);
  CHECK(compute({down(3, kForEver)}, 3, 4).start == kForEver);
  CHECK(compute({of_device(3, kForEver, 0)}, 1, 4).end == kForEver);
  CHECK(compute({down(3, kForEver)}, 1, 1).end == 2);
  CHECK(compute({down(3, 4)}, kForEver, 1).end == kForEver);
  Availability twice;
  const Change early = down(5, kForEver), late = of_device(7, kForEver, 0);
  twice.add(late), twice.add(early);
  CHECK(twice.gone() == 5);
  CHECK(twice.next(0) == 5);
  CHECK(twice.next(5) == kForEver);
}

TEST_CASE("messages continue at the new bandwidth and wait while a link is down") {
  CHECK(carry({}, 1, 2e6) == 3);
  CHECK(carry({of_link(2, kForEver, 0.5)}, 1, 2e6) == 4);
  CHECK(carry({of_link(2, 7, 0)}, 1, 2e6) == 8);  // nothing is lost
  CHECK(carry({of_link(2, 7, 0)}, 3, 0) == 7);    // not even the end of one without bytes passes
  CHECK(carry({of_link(2, kForEver, 0)}, 1, 2e6) == kForEver);
  CHECK(carry({of_link(2, kForEver, 0)}, 1, 1e6) == 2);
}

TEST_CASE("a route has the latency of the moment") {
  Change slow = of_link(2, 7, 1);
  slow.latency = 3;
  const Cluster cluster = with({slow});
  const Conditions conditions(cluster);
  const Route route = Router(cluster).require(DeviceId{0}, DeviceId{1});
  CHECK(conditions.latency(route, 1) == 0.5);
  CHECK(conditions.latency(route, 2) == 1);  // one of the two links
  CHECK(conditions.latency(route, 7) == 0.5);
}

TEST_CASE("jitter stretches ops evenly up to its maximum, by instruction number and seed") {
  Cluster cluster = test::star(1, 1, 0);
  cluster.jitter = {0.2, 1};
  const Conditions one(cluster);
  Cluster again = cluster, other = cluster;
  other.jitter.seed = 2;
  double sum = 0;
  int differ = 0;
  for (int n = 0; n < 10'000; ++n) {
    const double end = one.compute(DeviceId{0}, n, 0, 1).end;
    CHECK(end >= 1);
    CHECK(end < 1.2);
    CHECK(end == Conditions(again).compute(DeviceId{0}, n, 0, 1).end);
    differ += end != Conditions(other).compute(DeviceId{0}, n, 0, 1).end;
    sum += end;
  }
  CHECK(differ == 10'000);
  CHECK(sum / 10'000 == doctest::Approx(1.1).epsilon(0.002));  // 3 sigma: 0.2/sqrt(12)/100 * 3 = 0.0017
  CHECK_FALSE(one.as_rated());
}

TEST_CASE("a change prints its device or link, rate and times") {
  const Cluster cluster = with({});
  CHECK(to_text(of_device(2, 5, 0.5), cluster) == "d0 at 50 % from 2 s to 5 s");
  CHECK(to_text(of_device(0, kForEver, 0.7), cluster) == "d0 at 70 %");
  CHECK(to_text(down(0, 5), cluster) == "d0 down until 5 s");
  CHECK(to_text(repeated(of_link(1, kForEver, 0.1), 1, 0.1), cluster) == "l0 at 10 % from 1 s for 100 ms of every 1 s");
}

}  // namespace stagecraft::conditions_test
