#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::fluid {

/// What transfers compete for, and what each route crosses of it. A channel is what has one bandwidth to divide: a
/// direction of a full-duplex link, or all of a half-duplex link or shared medium. Unshared links are no channels.
struct Paths {
  std::vector<double> capacity;  ///< Bytes per second of each channel.
  std::vector<double> alone;     ///< The rate of a transfer on each route without contention.
  std::vector<std::uint32_t> first;
  std::vector<std::int32_t> crossed;  ///< Channels of route r: crossed[first[r] .. first[r + 1]).

  std::span<const std::int32_t> channels_of(std::int32_t route) const {
    return {crossed.data() + first[route], crossed.data() + first[route + 1]};
  }
};

Paths paths_of(const Cluster& cluster, std::span<const Route> routes);
/// `paths` when each link has the bandwidth given for it.
void set_bandwidths(Paths& paths, std::span<const double> bandwidths, std::span<const Route> routes);

/// Max-min fair rates of flows that come and go: no flow can have more without taking from one that has no more than
/// it. A change is followed only over channels that can be full: where all flows could have the rate they have alone
/// at the same time, none affects another. So a change that can reach n flows costs O(n log n).
class FairShare {
 public:
  explicit FairShare(Paths paths);

  /// The number of the new flow, which wants no more than `max_rate`, until it is removed; numbers are used again, the
  /// highest is what was alive at once.
  int add(std::int32_t route, double max_rate = kInfinity);
  void remove(int flow);
  /// Links have other bandwidths from now on; everything else in `paths` is as before.
  void change(Paths paths);
  std::size_t alive() const { return flows_.size() - free_.size(); }
  /// Brings all rates up to date. Gives the flows whose rate is not what it was, until the next call.
  std::span<const int> update_rates();
  /// How many flows the last update_rates() looked at.
  std::size_t reached() const { return reached_; }
  double rate(int flow) const { return flows_[flow].rate; }

 private:
  struct Flow {
    double rate = 0;
    double max_rate = 0;
    std::int32_t route = -1;   ///< -1: the number is free.
    std::uint32_t seen = 0;    ///< The last update_rates() that looked at it.
    std::uint32_t placed = 0;  ///< The last one that gave it a rate.
  };
  struct Member {
    int flow;
    std::uint32_t hop;  ///< Which of the flow's channels this is.
  };
  struct Channel {
    double capacity = 0;
    double demand = 0;  ///< What its flows would have alone, together.
    double rest = 0;    ///< Capacity not yet given out, while fill() gives out rates.
    std::uint32_t open = 0;
    std::uint32_t seen = 0;
    bool touched = false;
    std::vector<Member> members;
  };
  /// A rate at which something is full: a channel, or a flow (~number) that gets no more even alone.
  struct Level {
    double rate;
    std::int32_t subject;
    bool operator>(const Level& other) const {
      return rate != other.rate ? rate > other.rate : subject > other.subject;
    }
  };

  static bool can_be_full(const Channel&);
  double alone(const Flow& flow) const { return std::min(flow.max_rate, paths_.alone[flow.route]); }
  std::uint32_t& place(int flow, std::size_t hop) { return places_[flow * most_hops_ + hop]; }
  void touch(std::int32_t channel);
  void visit(int flow);
  void fill();
  void give(int flow, double rate);
  void set(int flow, double rate);

  Paths paths_;
  std::size_t most_hops_ = 0;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> places_;  ///< Index among the channel's members, by flow and hop.
  std::vector<int> free_;
  std::vector<Channel> channels_;
  std::vector<std::int32_t> touched_;  ///< Channels that could be full until something went.
  std::vector<int> fresh_;             ///< Flows that came.
  std::uint32_t round_ = 0;            ///< Counts update_rates().
  std::vector<std::int32_t> filling_;
  std::vector<Level> levels_;
  std::size_t waiting_ = 0;  ///< Flows that were seen and have no rate yet.
  std::vector<int> changed_;
  std::size_t reached_ = 0;
};

}  // namespace stagecraft::fluid
