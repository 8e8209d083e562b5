// The chain of allowed stages with the least latency, or with the least sum of message times on a shared medium, and a
// lower bound on that sum; search.cpp of the planner `edgepipe` calls it.

#include "sim/planners/edgepipe/search.hpp"

#include <fmt/core.h>

#include <algorithm>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/quantity.hpp"
#include "sim/planners/shared/device_mix.hpp"

namespace stagecraft::edgepipe {
namespace {

constexpr double kRounding = 1e-12;  // Relative error of a sum that is added up from its other end.
constexpr int kRounds = 60, kRoundsOfHops = 10;
constexpr double kSlowest = 0.4;                            // Below this pace the prices stay as they are.
constexpr std::size_t kMostEntries = std::size_t{1} << 26;  // 1 GiB.

/// A partial chain: it ends at `cut`, on a machine of this rank among the bandwidths.
struct Entry {
  std::int32_t cut, rank;
  double sum;
};

class LeastSumSearch {
 public:
  LeastSumSearch(const ChainProblem& p, const Allowed& allowed, Sum sum, double ceiling)
      : p_(p), allowed_(allowed), sum_(sum), ceiling_(ceiling), mixes_(counts_of(p)) {
    for (const MachineKind& m : p.machines) bandwidths_.push_back(m.bandwidth);
    std::sort(bandwidths_.begin(), bandwidths_.end());
    bandwidths_.erase(std::unique(bandwidths_.begin(), bandwidths_.end()), bandwidths_.end());
    for (const MachineKind& m : p.machines)
      rank_.push_back(static_cast<int>(std::lower_bound(bandwidths_.begin(), bandwidths_.end(), m.bandwidth) -
                                       bandwidths_.begin()));
    best_.assign((p.layers + 1) * bandwidths_.size(), kInfinity);
    set_prices();
  }

  double lower_bound() const { return least_; }

  /// A low ceiling keeps hardly any partial chains, so it rises until some chain is below it. Sums of hops have a low
  /// ceiling from the start.
  std::optional<Summed> run() {
    if (least_ > ceiling_ * (1 + kRounding)) return std::nullopt;
    give_back();
    useful_ = cuts_on_the_way(p_, allowed_);
    const double last = ceiling_;
    for (double part = 0.01; sum_ == Sum::Latency && least_ > 0 && part < 2; part *= 5) {
      ceiling_ = least_ * (1 + part);
      if (ceiling_ >= last) break;
      if (std::optional<Summed> result = run_below()) return result;
    }
    ceiling_ = last;
    return run_below();
  }

  std::int64_t states() const { return states_; }

 private:
  std::optional<Summed> run_below() {
    first_.clear(), entries_.clear();
    first_.push_back(0);
    entries_.push_back({0, static_cast<int>(bandwidths_.size()) - 1, 0});
    for (std::int64_t s = 1; s < mixes_.size(); ++s) {
      first_.push_back(entries_.size());
      for (int u = 0; u < kinds(); ++u)
        if (mixes_.devices_of(s, u) > 0) extend(s - mixes_.stride(u), u);
      keep(s);
    }
    first_.push_back(entries_.size());
    states_ += static_cast<std::int64_t>(entries_.size());
    return best();
  }

  int kinds() const { return static_cast<int>(p_.machines.size()); }
  std::size_t slot(int cut, int rank) const { return cut * bandwidths_.size() + rank; }
  const Entry* begin(std::int64_t s) const { return entries_.data() + first_[s]; }
  const Entry* end(std::int64_t s) const { return entries_.data() + first_[s + 1]; }

  double hop(const Entry& e, int u) const {
    if (e.cut == 0) return 0;
    return hop_seconds(p_.message[e.cut], std::min(bandwidths_[e.rank], p_.machines[u].bandwidth));
  }
  double stage(int from, int to, int u) const { return sum_ == Sum::Latency ? p_.machines[u].compute.at(from, to) : 0; }

  /// Appends one more device of kind u to the chains of s.
  void extend(std::int64_t s, int u) {
    const std::size_t last = first_[s + 1];
    for (std::size_t i = first_[s]; i < last;) {
      const int from = entries_[i].cut;
      double before = kInfinity;
      for (; i < last && entries_[i].cut == from; ++i) before = std::min(before, entries_[i].sum + hop(entries_[i], u));
      if (from == p_.layers || !has(allowed_.starts(u), from)) continue;
      for_each(allowed_.ends(u, from), [&](int to) {
        double& best = best_[slot(to, rank_[u])];
        best = std::min(best, before + stage(from, to, u));
      });
    }
  }

  /// Computes what the layers after each cut add at least: with any number of machines of each kind, at a price for
  /// each use, minus the prices of the machines that are not in use. Any prices give a bound (Lagrange).
  ///
  ///   sum + rest(cut, rank) - sum over machines not in use of price
  ///
  /// `steps_` has the first stage of each minimum.
  void add_up_rest() {
    rest_.assign(best_.size(), kInfinity);
    steps_.assign(best_.size(), {});
    const int top = static_cast<int>(bandwidths_.size()) - 1;
    for (int cut = p_.layers; cut >= 0; --cut)
      for (int rank = cut == 0 ? top : 0; rank <= top; ++rank) {
        double& min_rest = rest_[slot(cut, rank)];
        if (cut == p_.layers) min_rest = 0;
        for (int u = 0; u < kinds() && cut < p_.layers; ++u) {
          if (!has(allowed_.starts(u), cut)) continue;
          const double before = hop({cut, rank, 0}, u) + price_[u];
          for_each(allowed_.ends(u, cut), [&](int to) {
            const double sum = before + stage(cut, to, u) + rest_[slot(to, rank_[u])];
            if (sum < min_rest) min_rest = sum, steps_[slot(cut, rank)] = {cut, to, u};
          });
        }
      }
  }

  /// Raises the price of machines of which the cheapest chain uses more than there are, and lowers the other prices.
  void set_prices() {
    price_.assign(p_.machines.size(), 0);
    std::vector<double> best_price = price_;
    const int top = static_cast<int>(bandwidths_.size()) - 1;
    double pace = 1;
    for (int round = 0; round < (sum_ == Sum::Latency ? kRounds : kRoundsOfHops); ++round) {
      add_up_rest();
      double given_back = 0, length = 0;
      for (int u = 0; u < kinds(); ++u) given_back += price_[u] * p_.machines[u].count;
      const double bound = rest_[slot(0, top)] - given_back;
      if (bound == kInfinity) {
        least_ = kInfinity;
        return;
      }
      if (round == 0 || bound > least_)
        least_ = bound, best_price = price_;
      else
        pace *= 0.9;
      if (least_ > ceiling_ * (1 + kRounding) || pace < kSlowest) break;
      std::vector<double> more = overuse();
      for (const double m : more) length += m * m;
      if (length == 0) break;
      const double aim = std::min(ceiling_, std::max(least_, rest_[slot(0, top)]) * 1.1);
      for (int u = 0; u < kinds(); ++u)
        price_[u] = std::max(0.0, price_[u] + pace * std::max(aim - bound, 0.0) / length * more[u]);
    }
    price_ = std::move(best_price);
    add_up_rest();
  }

  void give_back() {
    for (std::int64_t s = 0; s < mixes_.size(); ++s) {
      double back = 0;
      for (int u = 0; u < kinds(); ++u) back += price_[u] * (p_.machines[u].count - mixes_.devices_of(s, u));
      given_back_.push_back(back);
    }
  }

  /// Machines of each kind that the cheapest chain uses, minus the machines that there are.
  std::vector<double> overuse() const {
    std::vector<double> more;
    for (const MachineKind& m : p_.machines) more.push_back(-m.count);
    for (int cut = 0, rank = static_cast<int>(bandwidths_.size()) - 1; cut < p_.layers;) {
      const ChainStage& step = steps_[slot(cut, rank)];
      more[step.machines] += 1;
      cut = step.to, rank = rank_[step.machines];
    }
    return more;
  }

  bool too_much(std::int64_t s, int cut, int rank, double sum) const {
    const double bound = sum + rest_[slot(cut, rank)] - given_back_[s];
    return sum > ceiling_ || bound > ceiling_ * (1 + kRounding);
  }

  /// Keeps, of the chains of s that end at one cut, each one with a smaller sum than all with a faster last link.
  void keep(std::int64_t s) {
    const std::span<const std::uint64_t> useful(&useful_[s * allowed_.words()], allowed_.words());
    for_each(useful, [&](int cut) {
      double cheapest = kInfinity;
      for (int rank = static_cast<int>(bandwidths_.size()) - 1; rank >= 0; --rank) {
        const double sum = best_[slot(cut, rank)];
        if (sum >= cheapest || too_much(s, cut, rank, sum)) continue;
        cheapest = sum;
        entries_.push_back({cut, rank, sum});
      }
    });
    std::fill(best_.begin(), best_.end(), kInfinity);
    if (entries_.size() > kMostEntries)
      throw Infeasible("size",
                       fmt::format("the search keeps more than {} partial chains, which take {}", kMostEntries,
                                   to_text(Bytes{static_cast<double>(kMostEntries * sizeof(Entry))})),
                       "fewer devices, fewer kinds of them, or a model cut less finely");
  }

  int devices_in(std::int64_t s) const {
    int devices = 0;
    for (int u = 0; u < kinds(); ++u) devices += mixes_.devices_of(s, u);
    return devices;
  }

  std::optional<Summed> best() const {
    double min_sum = kInfinity;
    int fewest = 0;
    std::int64_t last_state = 0;
    for (std::int64_t s = 1; s < mixes_.size(); ++s)
      for (const Entry* e = begin(s); e != end(s); ++e) {
        if (e->cut != p_.layers || e->sum > min_sum) continue;
        const int devices = devices_in(s);
        if (e->sum == min_sum && devices >= fewest) continue;
        min_sum = e->sum, fewest = devices, last_state = s;
      }
    if (min_sum == kInfinity) return std::nullopt;
    return Summed{trace(last_state, min_sum), min_sum};
  }

  /// The chain with this sum, traced from its last stage to its first: equal numbers added in the same order are equal.
  Chain trace(std::int64_t s, double sum) const {
    Chain chain;
    int to = p_.layers;
    int rank = -1;  // Any.
    while (to > 0) {
      const auto [part, before] = step_to(s, to, rank, sum);
      chain.push_back(part);
      s -= mixes_.stride(part.machines);
      to = part.from, rank = before.rank, sum = before.sum;
    }
    std::reverse(chain.begin(), chain.end());
    return chain;
  }

  std::pair<ChainStage, Entry> step_to(std::int64_t s, int to, int rank, double sum) const {
    for (int u = 0; u < kinds(); ++u) {
      if (mixes_.devices_of(s, u) == 0 || (rank >= 0 && rank_[u] != rank)) continue;
      const std::int64_t before = s - mixes_.stride(u);
      for (const Entry* e = begin(before); e != end(before); ++e)
        if (e->cut < to && has(allowed_.starts(u), e->cut) && has(allowed_.ends(u, e->cut), to) &&
            e->sum + hop(*e, u) + stage(e->cut, to, u) == sum)
          return {{e->cut, to, u}, *e};
    }
    throw InternalError("a chain has no stage in front of it");
  }

  const ChainProblem& p_;
  const Allowed& allowed_;
  Sum sum_;
  double ceiling_;
  DeviceMixes mixes_;
  std::vector<double> bandwidths_;  ///< The different bandwidths of all machines, rising.
  std::vector<int> rank_;           ///< Index of each kind's bandwidth in bandwidths_.
  std::vector<Entry> entries_;      ///< Partial chains, sorted by S, then by rising cut.
  std::vector<std::size_t> first_;  ///< Index of the first entry of each S.
  std::vector<double> best_;        ///< [cut][rank]: least sum for the S in construction.
  std::vector<double> rest_;        ///< [cut][rank]: lower bound on what the remaining layers add, with prices.
  std::vector<ChainStage> steps_;   ///< [cut][rank]: first stage of the chain that attains rest_.
  std::vector<double> price_;       ///< Price of one use of each kind of machine.
  std::vector<double> given_back_;  ///< Sum of the prices of the machines that each S does not use.
  double least_ = 0;                ///< No chain has a smaller sum.
  std::int64_t states_ = 0;
  Cuts useful_;  ///< [S][word]: see cuts_on_the_way().
};

}  // namespace

double sum_from_below(const ChainProblem& p, const Allowed& allowed, Sum sum, double ceiling) {
  return LeastSumSearch(p, allowed, sum, ceiling).lower_bound();
}

std::optional<Summed> least_sum(const ChainProblem& p, const Allowed& allowed, Sum sum, double ceiling,
                                std::int64_t& states) {
  LeastSumSearch search(p, allowed, sum, ceiling);
  std::optional<Summed> result = search.run();
  states += search.states();
  return result;
}

}  // namespace stagecraft::edgepipe
