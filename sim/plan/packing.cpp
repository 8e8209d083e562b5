// Draws lengths of documents, packs them, and deals the packs to replicas and micro-batches, as training frameworks do.

#include "sim/plan/packing.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/random.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// Standard normal by Box and Muller (1958), so that every machine draws the same.
double normal(Rng& rng) {
  const double radius = std::sqrt(-2 * std::log(1 - rng.uniform()));
  return radius * std::cos(2 * std::numbers::pi * rng.uniform());
}

int draw_one(const LengthRule& rule, Rng& rng) {
  switch (rule.kind) {
    case LengthRule::Kind::Equal:
    case LengthRule::Kind::Listed:
      break;
    case LengthRule::Kind::Uniform:
      return rng.integer(rule.low, rule.high);
    case LengthRule::Kind::Lognormal: {
      const double mu = std::log(rule.mean) - rule.sigma * rule.sigma / 2;
      const double length = std::exp(mu + rule.sigma * normal(rng));
      return static_cast<int>(std::clamp<double>(length, rule.low, rule.high));
    }
    case LengthRule::Kind::Buckets: {
      double sum = 0;
      for (const LengthRule::Bucket& b : rule.buckets) sum += b.weight;
      double left = rng.uniform(0, sum);
      for (const LengthRule::Bucket& b : rule.buckets) {
        if (left < b.weight) return rng.integer(b.low, b.high);
        left -= b.weight;
      }
      return rng.integer(rule.buckets.back().low, rule.buckets.back().high);
    }
  }
  return rule.high;
}

int padded(int length, int pad) { return (length + pad - 1) / pad * pad; }

/// Packs with the tokens that each has room for.
class OpenPacks {
 public:
  explicit OpenPacks(const PackingRule& rule, std::size_t count = 0)
      : rule_(rule), packs_(count), left_(count, rule.room) {}

  bool fits(std::size_t i, int length) const { return padded(length, rule_.pad) <= left_[i]; }
  int room(std::size_t i) const { return left_[i]; }
  std::size_t size() const { return packs_.size(); }
  void put(std::size_t i, int length) {
    if (i == packs_.size()) packs_.emplace_back(), left_.push_back(rule_.room);
    packs_[i].push_back(length);
    left_[i] -= padded(length, rule_.pad);
  }
  std::vector<Pack> take() { return std::move(packs_); }

 private:
  const PackingRule& rule_;
  std::vector<Pack> packs_;
  std::vector<int> left_;
};

std::vector<Pack> next_fit(const std::vector<int>& lengths, const PackingRule& rule) {
  OpenPacks open(rule);
  for (const int n : lengths)
    open.put(open.size() > 0 && open.fits(open.size() - 1, n) ? open.size() - 1 : open.size(), n);
  return open.take();
}

std::vector<Pack> first_fit(const std::vector<int>& lengths, const PackingRule& rule) {
  OpenPacks open(rule);
  for (const int n : lengths) {
    std::size_t i = 0;
    while (i < open.size() && !open.fits(i, n)) ++i;
    open.put(i, n);
  }
  return open.take();
}

/// The first pack of several with as little room.
std::vector<Pack> best_fit(const std::vector<int>& lengths, const PackingRule& rule) {
  OpenPacks open(rule);
  for (const int n : lengths) {
    std::size_t best = open.size();
    for (std::size_t i = 0; i < open.size(); ++i)
      if (open.fits(i, n) && (best == open.size() || open.room(i) < open.room(best))) best = i;
    open.put(best, n);
  }
  return open.take();
}

/// Each to the pack with the least work that has room; nothing where one has none.
std::vector<Pack> least_work_first(const std::vector<int>& longest_first, const PackingRule& rule, std::size_t count,
                                   const WorkOfLength& work) {
  OpenPacks open(rule, count);
  std::vector<double> of_pack(count, 0);
  for (const int n : longest_first) {
    std::size_t best = count;
    for (std::size_t i = 0; i < count; ++i)
      if (open.fits(i, n) && (best == count || of_pack[i] < of_pack[best])) best = i;
    if (best == count) return {};
    open.put(best, n);
    of_pack[best] += work(n);
  }
  return open.take();
}

std::vector<int> longest_first(std::vector<int> lengths) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  return lengths;
}

/// The fewest packs of which the tokens of all sequences could be, a whole number for each replica.
std::size_t fewest_packs(const std::vector<int>& lengths, const PackingRule& rule) {
  std::int64_t tokens = 0;
  for (const int n : lengths) tokens += padded(n, rule.pad);
  const std::int64_t each = std::int64_t{rule.room} * rule.replicas;
  return static_cast<std::size_t>(std::max<std::int64_t>(1, (tokens + each - 1) / each) * rule.replicas);
}

ContextRanks ranks_of(const PackingRule& rule) { return {rule.context, rule.room / rule.context, rule.pad}; }

/// Each to the ranks of a pack with the least work that have room; nothing where none have.
std::vector<Pack> least_work_on_ranks(const std::vector<int>& longest_first, const PackingRule& rule, std::size_t count,
                                      const WorkOfLength& work) {
  std::vector<Pack> packs(count);
  std::vector<ContextRanks> ranks(count, ranks_of(rule));
  for (const int n : longest_first) {
    std::size_t best = count;
    std::optional<RankRange> place;
    for (std::size_t i = 0; i < count; ++i)
      if (const auto here = ranks[i].place_of(n);
          here && (!place || ranks[i].work_on(*here) < ranks[best].work_on(*place)))
        best = i, place = here;
    if (!place) return {};
    packs[best].push_back(n);
    ranks[best].put(*place, n, work(n));
  }
  return packs;
}

/// The ranks with the sequences of a pack, which lie in the order in which they were packed.
ContextRanks filled_ranks(const Pack& pack, const PackingRule& rule, const WorkOfLength& work,
                          std::vector<RankRange>& places) {
  ContextRanks ranks = ranks_of(rule);
  for (const int n : pack) {
    places.push_back(ranks.place_of(n).value());
    ranks.put(places.back(), n, work(n));
  }
  return ranks;
}

std::vector<Pack> balance(const std::vector<int>& lengths, const PackingRule& rule, const WorkOfLength& work) {
  const std::vector<int> sorted = longest_first(lengths);
  for (std::size_t count = fewest_packs(lengths, rule); count < sorted.size(); ++count)
    if (auto packs = rule.packing == Packing::DynamicContext ? least_work_on_ranks(sorted, rule, count, work)
                                                             : least_work_first(sorted, rule, count, work);
        !packs.empty()) {
      std::erase_if(packs, [](const Pack& p) { return p.empty(); });
      return packs;
    }
  return pack_sequences(sorted, {.packing = Packing::None, .room = rule.room}, work);
}

/// Documents longer than half the room wait until each pack of an iteration can have one; the last iteration takes all.
/// The limit is ours: WLB-LLM tunes it for its data.
std::vector<std::vector<int>> delay_long(const std::vector<std::vector<int>>& lengths, const PackingRule& rule) {
  std::vector<std::vector<int>> result;
  std::vector<int> waiting;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    std::vector<int> now;
    for (const int n : lengths[i]) (2 * n > rule.room ? waiting : now).push_back(n);
    const std::size_t packs = fewest_packs(lengths[i], rule);
    const std::size_t taken = i + 1 == lengths.size() ? waiting.size() : waiting.size() / packs * packs;
    now.insert(now.end(), waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken));
    waiting.erase(waiting.begin(), waiting.begin() + static_cast<std::ptrdiff_t>(taken));
    result.push_back(std::move(now));
  }
  return result;
}

/// The packs of each replica, equally many unless counts are free.
std::vector<std::vector<Pack>> share_packs(std::vector<Pack> packs, const PackingRule& rule, const WorkOfLength& work) {
  std::vector<std::vector<Pack>> of_replica(rule.replicas);
  if (rule.share == PackShare::RoundRobin) {
    for (std::size_t i = 0; i < packs.size(); ++i) of_replica[i % of_replica.size()].push_back(std::move(packs[i]));
    return of_replica;
  }
  const auto size = [&](const Pack& pack) {
    return rule.share == PackShare::Work ? work_of(pack, rule, work) : std::accumulate(pack.begin(), pack.end(), 0.0);
  };
  std::stable_sort(packs.begin(), packs.end(), [&](const Pack& a, const Pack& b) { return size(a) > size(b); });
  const std::size_t each = rule.free_counts ? packs.size() : packs.size() / of_replica.size();
  std::vector<double> sums(of_replica.size(), 0);
  for (Pack& pack : packs) {
    std::size_t best = of_replica.size();
    for (std::size_t r = 0; r < of_replica.size(); ++r)
      if (of_replica[r].size() < each && (best == of_replica.size() || sums[r] < sums[best])) best = r;
    sums[best] += size(pack);
    of_replica[best].push_back(std::move(pack));
  }
  return of_replica;
}

}  // namespace

std::vector<int> draw_lengths(const LengthRule& rule, int count, int iteration) {
  std::vector<int> lengths;
  if (rule.kind == LengthRule::Kind::Listed) {
    for (int i = 0; i < count; ++i)
      lengths.push_back(rule.listed[(std::int64_t{iteration} * count + i) % std::ssize(rule.listed)]);
    return lengths;
  }
  Rng rng(rule.seed + static_cast<std::uint64_t>(iteration), "lengths");
  for (int i = 0; i < count; ++i) lengths.push_back(draw_one(rule, rng));
  return lengths;
}

double work_of(const Pack& pack, const WorkOfLength& work) {
  double sum = 0;
  for (const int n : pack) sum += work(n);
  return sum;
}

double work_of(const Pack& pack, const PackingRule& rule, const WorkOfLength& work) {
  if (rule.packing != Packing::DynamicContext) return work_of(pack, work);
  std::vector<RankRange> places;
  return filled_ranks(pack, rule, work, places).work_on({0, rule.context});
}

std::vector<Pack> pack_sequences(const std::vector<int>& lengths, const PackingRule& rule, const WorkOfLength& work) {
  switch (rule.packing) {
    case Packing::None:
      break;
    case Packing::InOrder:
      return next_fit(lengths, rule);
    case Packing::FirstFit:
      return first_fit(lengths, rule);
    case Packing::FirstFitDecreasing:
      return first_fit(longest_first(lengths), rule);
    case Packing::BestFit:
      return best_fit(lengths, rule);
    case Packing::BestFitDecreasing:
      return best_fit(longest_first(lengths), rule);
    case Packing::Balanced:
    case Packing::Workload:
    case Packing::DynamicContext:
      return balance(lengths, rule, work);
  }
  std::vector<Pack> packs;
  for (const int n : lengths) packs.push_back({n});
  return packs;
}

bool divide_packs(std::vector<Pack>& packs, std::size_t count) {
  while (packs.size() < count) {
    const auto last = std::find_if(packs.rbegin(), packs.rend(), [](const Pack& p) { return p.size() > 1; });
    if (last == packs.rend()) return false;
    const int moved = last->back();
    last->pop_back();
    packs.push_back({moved});
  }
  return true;
}

void order_packs(std::vector<Pack>& packs, PackOrder order, const std::function<double(const Pack&)>& work) {
  if (order == PackOrder::Given) return;
  std::stable_sort(packs.begin(), packs.end(), [&](const Pack& a, const Pack& b) { return work(a) < work(b); });
  if (order == PackOrder::Descending) std::reverse(packs.begin(), packs.end());
  if (order != PackOrder::Hill) return;
  std::vector<Pack> up, down;
  for (std::size_t i = 0; i < packs.size(); ++i) (i % 2 == 0 ? up : down).push_back(std::move(packs[i]));
  std::move(down.rbegin(), down.rend(), std::back_inserter(up));
  packs = std::move(up);
}

namespace {

/// The packs of an iteration by replica, `count` for each; with free counts some are empty.
std::vector<std::vector<Pack>> packs_by_replica(std::vector<Pack> packs, std::size_t count, const PackingRule& rule,
                                                const WorkOfLength& work) {
  const std::size_t replicas = rule.replicas, needed = rule.free_counts ? replicas : count * replicas;
  if (!divide_packs(packs, needed))
    throw InputError(fmt::format("an iteration has {}, but {} on each of {} need more",
                                 pluralize(static_cast<std::int64_t>(packs.size()), "sequence"),
                                 pluralize(static_cast<std::int64_t>(needed / replicas), "micro-batch", "es"),
                                 pluralize(rule.replicas, "replica")),
                     "a larger run.global_batch");
  std::vector<std::vector<Pack>> of_replica = share_packs(std::move(packs), rule, work);
  for (std::vector<Pack>& own_packs : of_replica)
    order_packs(own_packs, rule.order, [&](const Pack& pack) { return work_of(pack, rule, work); });
  return of_replica;
}

}  // namespace

PackedBatches pack_iterations(const std::vector<std::vector<int>>& lengths, const PackingRule& rule,
                              const WorkOfLength& work) {
  std::vector<std::vector<Pack>> packed;
  std::size_t max_micro_batches = 1;
  for (const std::vector<int>& one : rule.packing == Packing::Workload ? delay_long(lengths, rule) : lengths) {
    packed.push_back(pack_sequences(one, rule, work));
    max_micro_batches = std::max(max_micro_batches, (packed.back().size() + rule.replicas - 1) / rule.replicas);
  }
  std::vector<std::vector<std::vector<Pack>>> by_replica;  // [iteration]
  for (std::vector<Pack>& packs : packed) {
    by_replica.push_back(packs_by_replica(std::move(packs), max_micro_batches, rule, work));
    if (!rule.free_counts) continue;
    for (const std::vector<Pack>& own_packs : by_replica.back())
      max_micro_batches = std::max(max_micro_batches, own_packs.size());
  }
  PackedBatches batches{.replicas = rule.replicas,
                        .micro_batches = static_cast<int>(max_micro_batches),
                        .pad = rule.pad,
                        .packs = {},
                        .ranks = {}};
  for (std::vector<std::vector<Pack>>& of_replica : by_replica) {
    for (std::vector<Pack>& own_packs : of_replica) own_packs.resize(max_micro_batches);
    for (std::size_t j = 0; j < max_micro_batches; ++j)
      for (std::vector<Pack>& own_packs : of_replica) batches.packs.push_back(std::move(own_packs[j]));
  }
  if (rule.packing == Packing::DynamicContext) {
    batches.context = rule.context;
    for (const Pack& pack : batches.packs) filled_ranks(pack, rule, work, batches.ranks.emplace_back());
  }
  return batches;
}

}  // namespace stagecraft
