// Searches for PipeEdge's best chain by period, latency, time of all items, or period on a shared medium, and says why
// there is none; the planner `edgepipe` and `import pipeedge` call it.

#include "sim/planners/edgepipe/search.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "sim/core/diagnostic.hpp"
#include "sim/core/quantity.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"
#include "sim/planners/shared/device_mix.hpp"

namespace stagecraft::edgepipe {
namespace {

constexpr double kAny = std::numeric_limits<double>::max();  // Any hop but one over no link.
constexpr double kLargestTable = 1 << 30;                    // Bytes.

double period_of(const ChainFigures& f, Objective objective) {
  return std::max(f.slowest_stage, objective == Objective::Shared ? f.all_hops : f.slowest_hop);
}

class ChainSearch {
 public:
  ChainSearch(const ChainProblem& p, Objective objective, int items) : p_(p), objective_(objective), items_(items) {}

  std::optional<ChainPlan> run() {
    if (objective_ == Objective::Shared) return shared();
    const std::optional<double> min_period = least_period();
    if (!min_period) return std::nullopt;
    const Summed steady = *quickest(*min_period, kAny);
    if (objective_ == Objective::Bottleneck) return result_of(steady.chain, *min_period);
    if (objective_ == Objective::Latency) return result_of(quickest(kAny, steady.sum)->chain, *min_period);
    return result_of(finite(steady, *min_period), *min_period);
  }

 private:
  /// Every number that may be the limit: stages, and hops unless they are added up.
  std::vector<double> candidates() const {
    std::vector<double> times;
    for (const MachineKind& m : p_.machines) {
      for (int from = 0; from < p_.layers; ++from)
        for (int to = from + 1; to <= p_.layers; ++to) times.push_back(m.compute.at(from, to));
      if (objective_ == Objective::Shared) continue;
      for (int cut = 1; cut < p_.layers; ++cut) times.push_back(hop_seconds(p_.message[cut], m.bandwidth));
    }
    std::erase_if(times, [](double time) { return !(time <= kAny); });
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
  }

  /// The least period of any chain: the first number with which can_finish().
  std::optional<double> least_period() {
    const std::vector<double> times = candidates();
    const auto too_short = [&](double limit) { return !can_finish(p_, Allowed(p_, {limit, limit}), states_); };
    if (times.empty() || too_short(times.back())) return std::nullopt;
    return *std::partition_point(times.begin(), times.end(), too_short);
  }

  /// The chain of the least latency, of those that keep a period.
  std::optional<Summed> quickest(double period, double most_latency) {
    return least_sum(p_, Allowed(p_, {period, period}), Sum::Latency, most_latency, states_);
  }

  /// Chains of rising latency and falling period, against the one with the least period. Those to come have at least
  /// the latency of the last one, so they can only win with a period that makes up for it.
  Chain finite(Summed best, double least_period) {
    const int gaps = items_ - 1;
    double best_time = best.sum + gaps * least_period, limit = longest_period(best_time);
    while (limit >= least_period) {
      stop_point();
      std::optional<Summed> next = quickest(limit, best_time - gaps * least_period);
      if (!next) break;
      const double period = period_of(figures_of(p_, next->chain), objective_);
      if (const double time = next->sum + gaps * period; time < best_time) best_time = time, best = *next;
      if (gaps == 0) break;
      limit = std::min(std::nextafter(period, 0), (best_time - next->sum) / gaps);
    }
    return std::move(best.chain);
  }

  /// No chain that beats this time has a longer period: its latency is at least what it is for chains with any period,
  /// and then for those with no longer one, until that changes little.
  double longest_period(double time) const {
    const int gaps = items_ - 1;
    double limit = kAny;
    for (int round = 0; round < 10 && gaps > 0; ++round) {
      const double latency = sum_from_below(p_, Allowed(p_, {limit, limit}), Sum::Latency, time);
      const double longest = (time - latency) / gaps * (1 + 1e-12);
      if (longest > 0.99 * limit) return std::min(limit, longest);
      limit = longest;
    }
    return limit;
  }

  /// max(slowest stage, all hops). With a longer limit T for stages the least sum of hops h(T) falls, so the best is
  /// where the two cross: at the first T with h(T) <= T, or just below it at h(T'). Where stages take longer than hops
  /// that is the first T with any chain at all.
  std::optional<ChainPlan> shared() {
    const std::vector<double> times = candidates();
    const auto hops = [&](double limit, double ceiling) {
      return least_sum(p_, Allowed(p_, {limit, kAny}), Sum::Hops, ceiling, states_);
    };
    const auto no_chain = [&](double limit) { return !can_finish(p_, Allowed(p_, {limit, kAny}), states_); };
    if (times.empty() || no_chain(times.back())) return std::nullopt;
    const auto first = std::partition_point(times.begin(), times.end(), no_chain);
    if (const auto quick = hops(*first, *first)) return result_of(quick->chain, *first);
    const auto too_short = [&](double limit) { return !hops(limit, limit); };
    const auto crossing = std::partition_point(first + 1, times.end(), too_short);
    double period = kAny;
    if (crossing != times.end()) period = *crossing;
    if (const auto below = hops(*(crossing - 1), period)) period = std::min(period, below->sum);
    return result_of(hops(period, period)->chain, period);
  }

  ChainPlan result_of(Chain chain, double least_period) const {
    const double period = period_of(figures_of(p_, chain), objective_);
    return {std::move(chain), period, least_period, states_};
  }

  const ChainProblem& p_;
  Objective objective_;
  int items_;
  std::int64_t states_ = 0;
};

}  // namespace

std::optional<ChainPlan> search(const ChainProblem& p, Objective objective, int items) {
  if (p.layers == 0) return std::nullopt;
  const double bytes = DeviceMixes::count(counts_of(p)) * (p.layers / 64 + 1) * sizeof(std::uint64_t);
  if (bytes > kLargestTable)
    throw Infeasible(
        "size",
        fmt::format("the search among {:.3g} choices of devices needs a table of {}; {} is the most",
                    DeviceMixes::count(counts_of(p)), to_text(Bytes{bytes}), to_text(Bytes{kLargestTable})),
        "fewer devices or fewer kinds of them");
  return ChainSearch(p, objective, items).run();
}

Diagnostic why_none(const ChainProblem& p, const std::vector<std::string>& layers) {
  double largest = 0, total = 0;
  int devices = 0;
  for (const MachineKind& m : p.machines) {
    largest = std::max(largest, m.memory);
    total += m.memory * m.count;
    devices += m.count;
  }
  const std::string help = "more memory, smaller micro-batches, or fewer buffers";
  for (int l = 0; l < p.layers; ++l)
    if (const double need = memory_of(p, l, l + 1); need >= largest)
      return {{},
              {},
              fmt::format("layer '{}' alone needs {} with its buffers, and no device has more than {}", layers[l],
                          to_text(Bytes{need}), to_text(Bytes{largest})),
              help,
              "memory"};
  return {{},
          {},
          fmt::format("the model of {} keeps {} and buffers, which no choice and order of the {} with {} in all can "
                      "hold over the links that there are",
                      pluralize(p.layers, "layer"), to_text(Bytes{p.weights.at(0, p.layers)}),
                      devices == 1 ? "one device" : fmt::format("{} devices", devices), to_text(Bytes{total})),
          help,
          "memory"};
}

}  // namespace stagecraft::edgepipe
