// The loads of packs of sequences, by class, and what a plan must be like to have micro-batches that differ.

#include "sim/plan/load_table.hpp"

#include <algorithm>
#include <map>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {
namespace {

[[noreturn]] void refuse(const std::string& what, const std::string& help) { throw InputError(what, help); }

void check_stage(const Stage& stage, const PackedBatches& batches, bool differ, bool plays_collectives) {
  if (stage.share != Share::Samples || stage.replicas() != batches.replicas)
    refuse(fmt::format("stage '{}' has {}, and the packs are for {} that run each micro-batch together", stage.name,
                       pluralize(stage.replicas(), "replica"), pluralize(batches.replicas, "replica")),
           "packs for as many replicas as each stage has");
  if (stage.micro_batch_size != stage.replicas())
    refuse(fmt::format("stage '{}' has micro-batches of {} for {}, but a micro-batch of a replica is one {}",
                       stage.name, pluralize(stage.micro_batch_size, "sample"), pluralize(stage.replicas(), "replica"),
                       batches.slices > 1 ? "sequence or slice of it" : "pack"),
           "plan.micro_batch_size: 1");
  const StageShape& shape = stage.shape;
  if (!batches.ranks.empty() &&
      (shape.degrees.context != batches.context || shape.exchange == ContextExchange::AllToAll))
    refuse(
        fmt::format("stage '{}' divides sequences over {} by {}, and packs give each sequence a part of {}", stage.name,
                    pluralize(shape.degrees.context, "context rank"),
                    shape.exchange == ContextExchange::AllToAll ? "heads" : "rows", pluralize(batches.context, "rank")),
        "the same group for all stages, with context_type: p2p or all_gather; or data.pack: balanced");
  if (!differ || stage.replicas() == 1) return;
  constexpr const char* kBalance = "equal packs for all replicas of a micro-batch, or one replica";
  if (stage.shape.degrees.expert > 1)
    refuse(
        "replicas with different packs would wait for each other in each exchange of experts, which is not simulated",
        kBalance);
  if (stage.shape.sums_each_pass())
    refuse(
        "replicas with different packs would wait for each other in each pass that gathers divided weights, which is "
        "not simulated",
        kBalance);
  if (plays_collectives && stage.shape.degrees.divides())
    refuse("groups of replicas with different packs have messages of different sizes, which are not simulated",
           "run.collectives: cost, or equal packs for all replicas of a micro-batch");
}

/// Whether some micro-batch has different classes on its replicas.
bool replicas_differ(const LoadTable& loads) {
  for (std::size_t i = 0; i < loads.class_of.size(); ++i)
    if (loads.class_of[i] != loads.class_of[i - i % loads.replicas]) return true;
  return false;
}

}  // namespace

double LoadTable::share_with_packs(int replica) const {
  const auto micro_batches = static_cast<std::int64_t>(class_of.size()) / replicas;
  std::int64_t packs = 0;
  for (std::int64_t micro = 0; micro < micro_batches; ++micro) packs += is_empty_at(micro, replica) ? 0 : 1;
  return static_cast<double>(packs) / static_cast<double>(micro_batches);
}

Load load_of(const Pack& pack, int tokens_of_sample, int pad) { return mean_load({pack}, tokens_of_sample, pad); }

/// Sums are exact: whole numbers below 2^53 are as doubles.
Load mean_load(const std::vector<Pack>& packs, int tokens_of_sample, int pad) {
  double samples = 0, tokens = 0, squares = 0;
  for (const Pack& pack : packs)
    for (const int length : pack) {
      const double computed = (length + pad - 1) / pad * pad;
      ++samples, tokens += computed, squares += computed * computed;
    }
  const double whole = tokens_of_sample;
  return {.samples = samples / static_cast<double>(packs.size()),
          .rows = tokens / (samples * whole),
          .pairs = squares / (samples * whole * whole)};
}

namespace {

/// A pack whose sequences have ranks of their own. All ranks of the group wait for each other in each op, so the load
/// is the most that a rank has, as if all had it.
Load load_on_ranks(const PackedBatches& batches, std::size_t index, int tokens_of_sample) {
  const Pack& pack = batches.packs[index];
  std::vector<double> tokens(batches.context, 0), squares(tokens), received(tokens);
  for (std::size_t i = 0; i < pack.size(); ++i) {
    const auto [first, count] = batches.ranks[index][i];
    const double computed = (pack[i] + batches.pad - 1) / batches.pad * batches.pad;
    for (int rank = first; rank < first + count; ++rank) {
      tokens[rank] += computed / count;
      squares[rank] += computed * computed / count;
      received[rank] += computed / count * (count - 1);
    }
  }
  const auto largest = [](const std::vector<double>& of_ranks) {
    return *std::max_element(of_ranks.begin(), of_ranks.end());
  };
  const double samples = static_cast<double>(pack.size()), whole = tokens_of_sample, context = batches.context;
  return {.samples = samples,
          .rows = context * largest(tokens) / (samples * whole),
          .pairs = context * largest(squares) / (samples * whole * whole),
          .exchanged = largest(received) / ((context - 1) * largest(tokens))};
}

}  // namespace

Load load_at(const PackedBatches& batches, std::size_t index, int tokens_of_sample) {
  if (batches.packs[index].empty()) return whole_samples(0);
  if (!batches.ranks.empty()) return load_on_ranks(batches, index, tokens_of_sample);
  const Pack& pack = batches.packs[index];
  Load load = load_of(pack, tokens_of_sample, batches.pad);
  if (batches.slices == 1) return load;
  const double slices = batches.slices;
  load.rows /= slices;
  load.pairs /= slices;
  if (batches.exchange) return load;
  double tokens = 0, squares = 0, before = 0;
  const auto computed = [&](int length) { return (length + batches.pad - 1) / batches.pad * batches.pad; };
  for (const int length : pack) tokens += computed(length);
  const auto slice = static_cast<double>(index / batches.replicas % batches.slices);
  const double first = tokens * slice / slices, end = tokens * (slice + 1) / slices;
  for (const int length : pack) {  // Rows a to b of a sequence have b^2 - a^2 pairs, where the whole has length^2.
    const double n = computed(length), a = std::clamp(first - before, 0.0, n), b = std::clamp(end - before, 0.0, n);
    squares += b * b - a * a;
    before += n;
  }
  const double whole = tokens_of_sample;
  load.pairs = squares / (load.samples * whole * whole);
  return load;
}

Load mean_load(const PackedBatches& batches, int tokens_of_sample) {
  Load load = mean_load(batches.packs, tokens_of_sample, batches.pad);
  if (!batches.ranks.empty()) {
    double rows = 0, pairs = 0, exchanged = 0;
    for (std::size_t i = 0; i < batches.packs.size(); ++i) {
      const Load one = load_at(batches, i, tokens_of_sample);
      rows += one.samples * one.rows, pairs += one.samples * one.pairs;
      exchanged += one.samples * one.rows * one.exchanged;
    }
    const double samples = load.samples * static_cast<double>(batches.packs.size());
    return {.samples = load.samples, .rows = rows / samples, .pairs = pairs / samples, .exchanged = exchanged / rows};
  }
  load.rows /= batches.slices;
  load.pairs /= batches.slices;
  return load;
}

PackedBatches cut(const PackedBatches& whole, int slices, bool exchange) {
  PackedBatches batches = whole;
  batches.slices = slices;
  batches.exchange = exchange;
  batches.micro_batches *= slices;
  batches.packs.clear();
  for (auto pack = whole.packs.begin(); pack != whole.packs.end(); pack += whole.replicas)
    for (int slice = 0; slice < slices; ++slice) batches.packs.insert(batches.packs.end(), pack, pack + whole.replicas);
  return batches;
}

void set_loads(Plan& plan, const PackedBatches& batches, int tokens_of_sample, bool plays_collectives) {
  LoadTable loads;
  loads.replicas = batches.replicas;
  loads.slices = batches.slices;
  std::map<Load, int> class_numbers;
  for (std::size_t i = 0; i < batches.packs.size(); ++i) {
    const Load load = load_at(batches, i, tokens_of_sample);
    const auto [at, is_new] = class_numbers.try_emplace(load, static_cast<int>(loads.classes.size()));
    if (is_new) loads.classes.push_back(load);
    loads.class_of.push_back(at->second);
  }
  if (!plan.has_whole_stages())
    refuse("stages that do a part of a pass pass on arrays of one size, so their micro-batches cannot differ",
           "another planner");
  const bool differ = replicas_differ(loads);
  const Load mean = mean_load(batches, tokens_of_sample);
  for (Stage& stage : plan.stages) {
    check_stage(stage, batches, differ, plays_collectives);
    stage.mean_load = mean;
  }
  plan.loads = std::move(loads);
}

}  // namespace stagecraft
