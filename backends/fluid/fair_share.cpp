// Rates of concurrent transfers by max-min fairness, recomputed only as far as a start, an end or a new bandwidth can
// matter; the backend `fluid` and box/link_check.cpp ask it.

#include "backends/fluid/fair_share.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "sim/core/numbers.hpp"

namespace stagecraft::fluid {

Paths paths_of(const Cluster& cluster, std::span<const Route> routes) {
  Paths paths;
  for (const Link& link : cluster.links) paths.capacity.insert(paths.capacity.end(), 2, link.bandwidth.value);
  paths.first.push_back(0);
  for (const Route& route : routes) {
    paths.alone.push_back(route.bandwidth.value);
    for (const Hop& hop : route.hops) {
      const Duplex duplex = cluster.links[hop.link].duplex;
      if (duplex == Duplex::Unshared) continue;
      paths.crossed.push_back(2 * hop.link.value + (duplex == Duplex::Full && !hop.forward ? 1 : 0));
    }
    paths.first.push_back(static_cast<std::uint32_t>(paths.crossed.size()));
  }
  return paths;
}

void set_bandwidths(Paths& paths, std::span<const double> bandwidths, std::span<const Route> routes) {
  for (std::size_t l = 0; l < bandwidths.size(); ++l) paths.capacity[2 * l] = paths.capacity[2 * l + 1] = bandwidths[l];
  for (std::size_t r = 0; r < routes.size(); ++r) {
    if (routes[r].hops.empty()) continue;
    double slowest = routes[r].max_rate.value;
    for (const Hop& hop : routes[r].hops) slowest = std::min(slowest, bandwidths[hop.link.value]);
    paths.alone[r] = slowest;
  }
}

}  // namespace stagecraft::fluid

// Progressive filling (Bertsekas and Gallager, Data Networks, 1992, 6.5.2): the rates of all flows grow together until
// something is full; its flows keep that rate, the others go on. What is left for each of the others in a channel only
// grows meanwhile, so a heap finds the next full one although its entries may be too low.

namespace stagecraft::fluid {

FairShare::FairShare(Paths paths) : paths_(std::move(paths)), channels_(paths_.capacity.size()) {
  for (std::size_t c = 0; c < channels_.size(); ++c) channels_[c].capacity = paths_.capacity[c];
  for (std::size_t r = 0; r + 1 < paths_.first.size(); ++r)
    most_hops_ = std::max<std::size_t>(most_hops_, paths_.first[r + 1] - paths_.first[r]);
}

/// The demand is a running sum: what rounding may have taken from it is far below the millionth that is left free.
bool FairShare::can_be_full(const Channel& channel) {
  return channel.members.size() > 1 && channel.demand > channel.capacity * (1 - 1e-6);
}

void FairShare::touch(std::int32_t channel) {
  bool& touched = channels_[channel].touched;
  if (!touched) touched_.push_back(channel);
  touched = true;
}

int FairShare::add(std::int32_t route, double max_rate) {
  if (free_.empty()) {
    free_.push_back(static_cast<int>(flows_.size()));
    flows_.emplace_back();
    places_.resize(places_.size() + most_hops_);
  }
  const int flow = free_.back();
  free_.pop_back();
  Flow& added = flows_[flow];
  added.route = route;
  added.rate = 0;
  added.max_rate = max_rate;
  fresh_.push_back(flow);
  std::uint32_t hop = 0;
  for (const std::int32_t c : paths_.channels_of(route)) {
    Channel& channel = channels_[c];
    place(flow, hop) = static_cast<std::uint32_t>(channel.members.size());
    channel.members.push_back({flow, hop++});
    channel.demand += alone(added);
  }
  return flow;
}

void FairShare::remove(int flow) {
  Flow& removed = flows_[flow];
  const double demand = alone(removed);
  std::size_t hop = 0;
  for (const std::int32_t c : paths_.channels_of(removed.route)) {
    Channel& channel = channels_[c];
    if (can_be_full(channel)) touch(c);
    const std::uint32_t at = place(flow, hop++);
    const Member last = channel.members.back();
    channel.members[at] = last;
    place(last.flow, last.hop) = at;
    channel.members.pop_back();
    channel.demand = channel.members.empty() ? 0 : channel.demand - demand;
  }
  removed.route = -1;
  free_.push_back(flow);
}

void FairShare::change(Paths paths) {
  for (std::size_t c = 0; c < channels_.size(); ++c) {
    if (channels_[c].capacity == paths.capacity[c]) continue;
    if (can_be_full(channels_[c])) touch(static_cast<std::int32_t>(c));
    channels_[c].capacity = paths.capacity[c];
  }
  for (std::size_t f = 0; f < flows_.size(); ++f) {
    if (flows_[f].route < 0) continue;
    const std::size_t r = flows_[f].route;
    const double more = std::min(flows_[f].max_rate, paths.alone[r]) - alone(flows_[f]);
    if (more == 0) continue;
    for (const std::int32_t c : paths_.channels_of(flows_[f].route)) {
      Channel& channel = channels_[c];
      if (can_be_full(channel)) touch(c);
      channel.demand += more;
    }
    fresh_.push_back(static_cast<int>(f));
  }
  // A channel may also have become one that can be full without any of its flows having changed.
  for (std::size_t c = 0; c < channels_.size(); ++c)
    if (channels_[c].capacity != paths_.capacity[c] && can_be_full(channels_[c])) touch(static_cast<std::int32_t>(c));
  paths_ = std::move(paths);
}

std::span<const int> FairShare::update_rates() {
  ++round_;
  changed_.clear();
  filling_.clear();
  levels_.clear();
  reached_ = 0;
  for (const std::int32_t c : touched_) {
    Channel& channel = channels_[c];
    channel.touched = false;
    for (const Member& member : channel.members) visit(member.flow);
  }
  for (const int flow : fresh_)
    if (flows_[flow].route >= 0) visit(flow);
  touched_.clear();
  fresh_.clear();
  for (std::size_t i = 0; i < filling_.size(); ++i)  // grows while it is gone through
    for (const Member& member : channels_[filling_[i]].members) visit(member.flow);
  fill();
  return changed_;
}

void FairShare::visit(int flow) {
  Flow& seen = flows_[flow];
  if (seen.seen == round_) return;
  seen.seen = round_;
  ++reached_;
  double smallest = kInfinity;
  for (const std::int32_t c : paths_.channels_of(seen.route)) {
    Channel& channel = channels_[c];
    if (!can_be_full(channel)) continue;
    smallest = std::min(smallest, channel.capacity);
    if (channel.seen == round_) continue;
    channel.seen = round_;
    channel.rest = channel.capacity;
    channel.open = static_cast<std::uint32_t>(channel.members.size());
    filling_.push_back(c);
    levels_.push_back({channel.rest / channel.open, c});
  }
  const double max_rate = alone(seen);
  if (smallest == kInfinity) return set(flow, max_rate);
  ++waiting_;
  if (max_rate < smallest) levels_.push_back({max_rate, ~flow});  // else one of the channels is full before
}

void FairShare::fill() {
  std::make_heap(levels_.begin(), levels_.end(), std::greater<>{});
  while (waiting_ > 0) {
    std::pop_heap(levels_.begin(), levels_.end(), std::greater<>{});
    Level& level = levels_.back();
    if (level.subject < 0) {
      give(~level.subject, level.rate);
      levels_.pop_back();
      continue;
    }
    const Channel& channel = channels_[level.subject];
    const double share = channel.open == 0 ? 0 : channel.rest / channel.open;
    if (share > level.rate) {
      level.rate = share;
      std::push_heap(levels_.begin(), levels_.end(), std::greater<>{});
      continue;
    }
    levels_.pop_back();
    if (channel.open == 0) continue;
    for (const Member& member : channel.members) give(member.flow, share);
  }
}

void FairShare::give(int flow, double rate) {
  Flow& given = flows_[flow];
  if (given.placed == round_) return;
  given.placed = round_;
  --waiting_;
  for (const std::int32_t c : paths_.channels_of(given.route)) {
    Channel& channel = channels_[c];
    if (channel.seen != round_) continue;
    channel.rest -= rate;
    --channel.open;
  }
  set(flow, rate);
}

void FairShare::set(int flow, double rate) {
  double& now = flows_[flow].rate;
  if (now != rate) changed_.push_back(flow);
  now = rate;
}

}  // namespace stagecraft::fluid
