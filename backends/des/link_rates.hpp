#pragma once

#include <algorithm>
#include <vector>

#include "sim/cluster/conditions.hpp"

namespace stagecraft::des {

/// The links whose bandwidth changes, for networks that have to follow them.
class LinkRates {
 public:
  explicit LinkRates(const Conditions& conditions) : next_(kForEver) {
    for (LinkId link : conditions.changing_links()) links_.push_back({link, conditions.of(link)});
    if (!links_.empty()) next_ = 0;
  }

  bool any() const { return !links_.empty(); }
  double next_time() const { return next_; }
  /// Calls use(LinkId, rate) for each link whose rate is not what it was; to be called at begin with 0, and whenever
  /// transfers start or go on at or behind next_time().
  template <class Use>
  void advance(double now, Use&& use) {
    if (now < next_) return;
    next_ = kForEver;
    for (Entry& entry : links_) {
      if (entry.next <= now) {
        const double rate = entry.over_time->at(now).rate;
        entry.next = entry.over_time->next(now);
        if (rate != entry.rate) use(entry.link, entry.rate = rate);
      }
      next_ = std::min(next_, entry.next);
    }
  }

 private:
  struct Entry {
    LinkId link;
    const Availability* over_time;
    double rate = 1, next = 0;
  };
  std::vector<Entry> links_;
  double next_;
};

}  // namespace stagecraft::des
