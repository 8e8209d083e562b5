// The effect of a cluster's changes and jitter on ops and messages; simulators, emulated runs and networks in a box ask
// it.

#include "sim/cluster/conditions.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/random.hpp"

namespace stagecraft {
namespace {

constexpr double kTogether = 1e-12;   // An edge that is later than a time by at most this share of it counts as passed.
constexpr int kPatience = 1'000'000;  // Edges in a row without progress after which an op never starts or ends.

double reached(double time) { return time + kTogether * time; }

/// The number of the period that `time` is in.
double period(const Change& c, double time) {
  double k = std::floor((time - c.from.value) / c.every.value);
  while (c.from.value + (k + 1) * c.every.value <= time) ++k;
  while (k > 0 && c.from.value + k * c.every.value > time) --k;
  return k;
}

bool is_on(const Change& c, double time) {
  if (time < c.from.value || time >= c.until.value) return false;
  return c.every.value <= 0 || time < c.from.value + period(c, time) * c.every.value + c.lasts.value;
}

double next_edge(const Change& c, double time) {
  if (time < c.from.value) return c.from.value;
  if (time >= c.until.value || c.every.value <= 0) return time < c.until.value ? c.until.value : kForEver;
  const double k = period(c, time), end = c.from.value + k * c.every.value + c.lasts.value;
  return std::min(time < end ? end : c.from.value + (k + 1) * c.every.value, c.until.value);
}

/// Progress of an op per second: each second of it takes 1 / rate for its computation and as long as before for its
/// collectives.
double rate_of_op(double rate, double communicates) {
  return rate <= 0 || communicates <= 0 ? rate : 1 / ((1 - communicates) / rate + communicates);
}

bool stops(const Change& c) { return c.down || c.rate <= 0; }

/// Goes on with `left` of work from `now` over the pieces of a rate. `lost` puts back what a piece undoes.
template <class Rate, class Next, class Lost>
double work_off(double left, double now, Rate rate, Next next, Lost lost) {
  double best = left;
  for (int idle = 0; idle < kPatience && now < kForEver; ++idle) {
    const double speed = rate(now), edge = next(now);
    if (speed > 0) {
      const double end = now + left / speed;
      if (end <= reached(edge)) return end;
      left = std::max(0.0, left - (edge - now) * speed);
    }
    lost(left, edge);
    if (left < best) best = left, idle = 0;
    now = edge;
  }
  return kForEver;
}

}  // namespace

Condition Availability::at(double time) const {
  Condition condition;
  for (const Change* c : changes_) {
    if (!is_on(*c, reached(time))) continue;
    condition.rate *= c->down ? 0 : c->rate;
    condition.latency *= c->latency;
    condition.down = condition.down || c->down;
  }
  return condition;
}

double Availability::next(double time) const {
  const double now = reached(time);
  if (now >= gone()) return kForEver;
  double soonest = kForEver;
  for (const Change* c : changes_) soonest = std::min(soonest, next_edge(*c, now));
  return soonest;
}

double Availability::gone() const {
  double from = kForEver;
  for (const Change* c : changes_)
    if (stops(*c) && c->until.value == kForEver && c->every.value <= 0) from = std::min(from, c->from.value);
  return from;
}

Conditions::Conditions(const Cluster& cluster) : cluster_(cluster), as_rated_(cluster.jitter.max_fraction <= 0) {
  const auto add = [&](auto& index, std::size_t size, auto id, const Change& change) {
    index.resize(size, -1);
    int& place = index[id];
    if (place < 0) place = static_cast<int>(all_.size()), all_.emplace_back();
    all_[place].add(change);
    as_rated_ = false;
  };
  for (const Change& change : cluster.changes) {
    for (DeviceId device : change.devices) add(of_device_, cluster.devices.size(), device, change);
    for (LinkId link : change.links) add(of_link_, cluster.links.size(), link, change);
  }
}

const Availability* Conditions::availability_of(DeviceId device) const {
  const int place = of_device_.empty() ? -1 : of_device_[device];
  return place < 0 ? nullptr : &all_[place];
}

const Availability* Conditions::availability_of(LinkId link) const {
  const int place = of_link_.empty() ? -1 : of_link_[link];
  return place < 0 ? nullptr : &all_[place];
}

std::vector<LinkId> Conditions::changing_links() const {
  std::vector<LinkId> links;
  for (const LinkId l : of_link_.ids())
    if (of_link_[l] >= 0) links.push_back(l);
  return links;
}

double Conditions::factor(std::int64_t number) const {
  if (cluster_.jitter.max_fraction <= 0) return 1;
  Rng rng(cluster_.jitter.seed, "jitter");
  rng = Rng(rng.next() + static_cast<std::uint64_t>(number) * 0x9e3779b97f4a7c15ULL, "op");
  return 1 + cluster_.jitter.max_fraction * rng.uniform();
}

Span Conditions::compute(DeviceId device, std::int64_t number, double ready, double seconds,
                         double communicates) const {
  seconds *= factor(number);
  const Availability* availability = availability_of(device);
  if (availability == nullptr) return {ready, ready + seconds};
  double start = ready;
  for (int idle = 0; start < kForEver && availability->at(start).down; ++idle)
    start = idle < kPatience ? availability->next(start) : kForEver;
  const double end = work_off(
      seconds, start, [&](double at) { return rate_of_op(availability->at(at).rate, communicates); },
      [&](double at) { return availability->next(at); },
      [&](double& left, double edge) {
        if (edge < kForEver && availability->at(edge).down) left = seconds;
      });
  return {start, end};
}

double Conditions::latency(const Route& route, double at) const {
  if (of_link_.empty() || at == kForEver) return route.latency.value;
  double total = 0;
  for (const Hop& hop : route.hops) {
    const Availability* availability = availability_of(hop.link);
    const double rated = cluster_.links[hop.link].latency.value;
    total += availability == nullptr ? rated : rated * availability->at(at).latency;
  }
  return total;
}

double Conditions::bandwidth(const Route& route, double at) const {
  double slowest = route.max_rate.value;
  for (const Hop& hop : route.hops) {
    const Availability* availability = availability_of(hop.link);
    const double rated = cluster_.links[hop.link].bandwidth.value;
    slowest = std::min(slowest, availability == nullptr ? rated : rated * availability->at(at).rate);
  }
  return slowest;
}

double Conditions::next(const Route& route, double at) const {
  double soonest = kForEver;
  for (const Hop& hop : route.hops)
    if (const Availability* availability = availability_of(hop.link))
      soonest = std::min(soonest, availability->next(at));
  return soonest;
}

double Conditions::carry(const Route& route, double from, double bytes) const {
  if (route.hops.empty()) return from;
  return work_off(
      bytes, from, [&](double at) { return bandwidth(route, at); }, [&](double at) { return next(route, at); },
      [](double&, double) {});
}

}  // namespace stagecraft
