// build_schedule(): calls a schedule for one iteration, or for the iterations between two drains, repeats its rows, and
// adds recomputations and updates. Also reads options of schedules and makes plans without a model.

#include "sim/schedule/builder.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The stages and micro-batches of the recomputations that the order itself has.
std::set<std::pair<StageId, int>> recomputed_in(const std::vector<Op>& row) {
  std::set<std::pair<StageId, int>> recomputed;
  for (const Op& op : row)
    if (op.kind == OpKind::Recompute) recomputed.emplace(op.stage, op.micro);
  return recomputed;
}

/// The iterations between two drains.
struct Stretch {
  const Schedule* order;
  int first;  ///< Its first iteration.
};

/// Whether the update of a stage waits for gradients of other stages.
bool updates_together(const UpdateBarriers& barriers, StageId s) {
  return barriers.delays(s) && barriers.at(s).stages.size() > 1;
}

/// Whether frameworks update a stage after all backwards of its rank: an optimizer steps once in an iteration, for all
/// chunks, and sums of gradients of one chunk run next to backwards of others.
bool updates_at_end(const UpdateBarriers& barriers, StageId s, bool has_chunks) {
  return updates_together(barriers, s) || (has_chunks && barriers.delays(s));
}

/// Whether this is one iteration of a rank of several stages.
bool has_chunks(const std::vector<Op>& row, const IdVector<StageId, int>& each) {
  IdVector<StageId, int> backwards(each.size(), 0);
  std::set<StageId> stages;
  for (const Op& op : row)
    if (ends_backward(op.kind)) ++backwards[op.stage], stages.insert(op.stage);
  return stages.size() > 1 &&
         std::all_of(stages.begin(), stages.end(), [&](StageId s) { return backwards[s] == each[s]; });
}

/// Appends a group of ops that runs as one, with the recomputations before and the updates after it. Updates that come
/// at the end of the iteration go to `late`; all do where a rank has gradients of the vocabulary after its backwards.
void complete_group(std::span<const Op> group, const Plan& plan, const UpdateBarriers& barriers,
                    const IdVector<StageId, int>& each, int first, const std::set<std::pair<StageId, int>>& recomputed,
                    bool chunks, bool all_late, IdVector<StageId, int>& finished, std::vector<Op>& ops,
                    std::vector<Op>& late) {
  for (const Op& op : group)
    if (plan.stage(op.stage).shape.recomputes_all() && passes_gradient(op.kind) &&
        !recomputed.contains({op.stage, op.micro}))
      ops.push_back({OpKind::Recompute, false, op.stage, op.micro + first * plan.micro_batches(op.stage)});
  for (const Op& op : group) {
    if (op.kind == OpKind::Update) continue;
    ops.push_back(op);
    ops.back().micro += first * plan.micro_batches(op.stage);
  }
  for (const Op& op : group) {
    if (!ends_backward(op.kind)) continue;
    const int between = each[op.stage], count = ++finished[op.stage];
    auto& list = all_late || updates_at_end(barriers, op.stage, chunks) ? late : ops;
    if (count % between == 0) list.push_back({OpKind::Update, false, op.stage, count / between - 1});
  }
}

/// Such an update waits for gradients of another device, which may wait for gradients that are computed here later. So
/// these updates come at the end, in the same order on all devices.
void append_late(std::vector<Op>& late, const UpdateBarriers& barriers, std::vector<Op>& ops) {
  const auto position = [&](const Op& op) { return std::pair(op.micro, barriers.position(op.stage)); };
  std::sort(late.begin(), late.end(), [&](const Op& a, const Op& b) { return position(a) < position(b); });
  ops.insert(ops.end(), late.begin(), late.end());
  late.clear();
}

/// `updates` is Schedule::updates.
Schedule join(const std::vector<Stretch>& parts, const Plan& plan, const IdVector<StageId, int>& updates) {
  Schedule joined;
  if (parts.empty()) return joined;
  joined.updates = updates;
  const UpdateBarriers barriers(plan);
  IdVector<StageId, int> each;  // Micro-batches of a replica from one update to the next.
  for (const StageId s : plan.stages.ids()) each.push_back(plan.micro_batches_per_replica(s) / joined.updates_of(s));
  joined.ranks.resize(parts.front().order->ranks.size());
  joined.rank_of = parts.front().order->rank_of;
  joined.vocabulary = parts.front().order->vocabulary;
  IdVector<StageId, int> finished(plan.stages.size(), 0);  // Backwards of the current rank.
  for (const RankId rank : joined.ranks.ids()) {
    auto& ops = joined.ranks[rank];
    std::vector<Op> late;
    std::size_t count = 0;
    for (const Stretch& part : parts) count += part.order->ranks[rank].size();
    ops.reserve(count);
    for (const Stretch& part : parts) {
      const auto& row = part.order->ranks[rank];
      const auto recomputed = recomputed_in(row);
      const bool chunks = has_chunks(row, each);
      for (std::size_t begin = 0, end = 0; begin < row.size(); begin = end) {
        end = group_end(row, begin);
        complete_group({row.data() + begin, row.data() + end}, plan, barriers, each, part.first, recomputed, chunks,
                       joined.vocabulary != VocabularyPasses::None, finished, ops, late);
      }
      if (!late.empty()) append_late(late, barriers, ops);
    }
    for (const Op& op : ops) finished[op.stage] = 0;
  }
  return joined;
}

void require_equal_sizes(const Plan& plan, std::string_view schedule) {
  const Stage& first = plan.stages.front();
  if (first.group != 1)
    throw InputError(
        fmt::format("the schedule '{}' takes one micro-batch at a time, but stage 0 groups {}", schedule, first.group),
        "use the schedule 'graph', or group: 1");
  for (std::size_t s = 1; s < plan.stages.size(); ++s) {
    const Stage& stage = plan.stages[StageId{s}];
    if (stage.micro_batch_size == first.micro_batch_size && stage.group == first.group) continue;
    throw InputError(
        fmt::format(
            "the schedule '{}' needs the same micro-batch size and group on every stage, but stage 0 has {} and "
            "{}, and stage {} has {} and {}",
            schedule, first.micro_batch_size, first.group, s, stage.micro_batch_size, stage.group),
        "use the schedule 'graph'");
  }
}

void require_whole_stages(const Plan& plan, std::string_view schedule) {
  if (!plan.has_whole_stages())
    throw InputError(
        fmt::format("the schedule '{}' runs forward and backward of a stage on the same devices, but stage "
                    "'{}' is one of them alone",
                    schedule, plan.stages.front().name),
        "write schedule: layerpipe, or take another planner");
}

void require_equal_shares(const Plan& plan, std::string_view schedule) {
  for (const Stage& stage : plan.stages)
    if (stage.turns() > 1)
      throw InputError(
          fmt::format("the schedule '{}' gives every replica a part of each micro-batch, but replicas of stage "
                      "'{}' take micro-batches in turn",
                      schedule, stage.name),
          "write share: samples, or take a schedule such as 1f1b, gpipe or pipedream");
}

void require_vocabulary(const Plan& plan, const ScheduleDef& def) {
  const bool needs = def.vocabulary != VocabularyPasses::None;
  if (plan.vocabulary && !needs)
    throw InputError(fmt::format("the schedule '{}' has no passes for a vocabulary that all ranks divide", def.name),
                     "take the schedule vocab-1, vocab-2 or interlaced, or write plan.vocabulary: ends; orders in a V "
                     "are options: run.schedule: {name: vocab-2, order: zb-v}");
  if (needs && !plan.vocabulary)
    throw InputError(fmt::format("the schedule '{}' computes scores on all ranks, but the plan has the embedding on "
                                 "the first stage and the scores on the last",
                                 def.name),
                     "write plan.vocabulary: all, which the planners balanced and layout know");
}

/// ScheduleInput::depth.
IdVector<StageId, int> depths(const Plan& plan) {
  std::vector<int> turns;
  for (const Stage& stage : plan.stages) turns.push_back(stage.turns());
  std::vector<int> depth = depth_to_sink(plan.graph(), turns);
  for (std::size_t s = 0; s < depth.size(); ++s) depth[s] = (depth[s] + turns[s] - 1) / turns[s];
  return IdVector<StageId, int>(std::move(depth));
}

IdVector<StageId, int> updates_of(const ScheduleInput& in) {
  if (!in.options.update_each_micro_batch) return {};
  IdVector<StageId, int> updates;
  for (const StageId s : in.plan.stages.ids()) updates.push_back(in.plan.micro_batches_per_replica(s));
  return updates;
}

}  // namespace

void alternate(int micro_batches, int warmup, int group, OpList& ops) {
  int forward = 0, backward = 0;
  while (forward < std::min(warmup, micro_batches)) ops.forward(forward++);
  while (backward < micro_batches) {
    for (int i = 0; i < group && backward < forward; ++i) ops.backward(backward++);
    for (int i = 0; i < group && forward < micro_batches; ++i) ops.forward(forward++);
  }
}

Schedule complete(const Schedule& iteration, const Plan& plan, int iterations) {
  std::vector<Stretch> parts;
  for (int i = 0; i < iterations; ++i) parts.push_back({&iteration, i});
  return join(parts, plan, iteration.updates);
}

Schedule by_stage(const Plan& plan, std::string_view schedule, DeviceSharing sharing,
                  const std::function<void(StageId, OpList&)>& order) {
  Schedule result = empty_schedule(plan);
  IdVector<RankId, StageId> owner(result.ranks.size());
  for (int s = 0; s < plan.stage_count(); ++s) {
    const StageId stage{s};
    for (int r = 0; r < std::ssize(plan.stage(stage).leaders); ++r) {
      const DeviceId device = plan.stage(stage).leaders[r];
      const RankId rank = result.rank(device);
      const StageId other = owner[rank];
      if (other == stage) continue;  // Another replica with the same row.
      if (other.valid() && sharing == DeviceSharing::Refused)
        throw InputError(fmt::format("the schedule '{}' runs one stage on a device, but device {} has stages {} and {}",
                                     schedule, device.value, other.value, s),
                         "give every stage a device of its own, or give the order yourself with the schedule 'csv'");
      owner[rank] = stage;
      const int turns = plan.stage(stage).turns();
      OpList list(result.ranks[rank], stage, r % turns, turns);
      order(stage, list);
    }
  }
  return result;
}

config::Field update_field() {
  return config::choice("update", {"iteration", "micro_batch"})
      .fallback("iteration")
      .doc(
          "When weights are updated: after each iteration, or after each micro-batch. If replicas take micro-batches "
          "round-robin, then after one of each.");
}

config::Field drain_every_field() {
  return config::integer("drain_every", 0, 10000)
      .fallback("0")
      .doc("Iterations between two drains of the pipeline; 0: only at the end.");
}

void require_micro_batches(bool enough, std::string_view schedule, std::string_view need, int micro_batches) {
  if (enough) return;
  throw Infeasible("micro-batches",
                   fmt::format("the schedule '{}' needs {}; there {} {}", schedule, need,
                               micro_batches == 1 ? "is" : "are", pluralize(micro_batches, "micro-batch", "es")),
                   "change run.micro_batches, or run.global_batch where that is given");
}

void require_even_ranks(int ranks, std::string_view schedule) {
  if (ranks % 2 == 0) return;
  throw Infeasible("devices",
                   fmt::format("the schedule '{}' needs an even number of devices, since two pipelines meet in the "
                               "middle; there are {}",
                               schedule, ranks),
                   fmt::format("{} or {} devices, and as many stages", ranks - 1, ranks + 1));
}

config::Field chunks_field() {
  return config::integer("chunks", 1, 1024)
      .optional()
      .doc("Stages on each device. Default: the fewest that the devices allow.");
}

std::optional<config::Value> options_of(const ScheduleDef& def, const std::vector<std::string>& sets) {
  if (!def.fields) {
    if (sets.empty()) return {};
    throw InputError(fmt::format("the schedule '{}' has no options", def.name));
  }
  config::Problems problems;
  config::Value tree;
  tree.kind = config::Value::Kind::Map;
  for (const std::string& set : sets) config::apply_set(tree, set, problems);
  problems.throw_if_any();
  config::Value checked = config::check(tree, *def.fields, "", problems);
  problems.throw_if_any();
  return checked;
}

PlacementRule placing_of(const ScheduleDef& def, const config::Value* options) {
  PlacementRule placing{def.placement, def.chunks, def.turn};
  const bool has_order = options && def.vocabulary != VocabularyPasses::None;
  if (const config::Value* order = has_order ? options->find("order") : nullptr; order && order->text != "1f1b")
    placing = {Placement::V, {2, 2}};  // As every other order which scores go into has it.
  if (const config::Value* asked = options ? options->find("placement") : nullptr) {
    const Placement placement = *parse_placement(asked->text);
    const bool both_ways = placement == Placement::Bidirectional;  // A stage and a copy of another.
    placing = {placement, both_ways ? ChunkRange{2, 2} : chunks_of(placement)};
  }
  const config::Value* given = options ? options->find("chunks") : nullptr;
  if (!given) return placing;
  const int chunks = config::as_int(*given);
  if (!placing.chunks.has(chunks))
    throw InputError(
        {{given->where,
          "run.schedule.chunks",
          fmt::format("the schedule '{}' cannot have {} on each device", def.name, pluralize(chunks, "stage")),
          {},
          "chunks"}});
  return {placing.placement, {chunks, chunks, 1}, placing.turn};
}

Plan plan_for(const ScheduleDef& def, const PlacementRule& placing, int ranks, int chunks, int micro_batches) {
  if (def.vocabulary != VocabularyPasses::None && placing.chunks.has(chunks)) {
    Plan plan = chunks == 1 ? chain_plan(ranks, ranks, micro_batches)
                            : placed_plan(placing.placement, ranks, chunks, micro_batches, 0);
    plan.vocabulary.emplace();
    return plan;
  }
  if (placing.placement == Placement::Any) return chain_plan(ranks * chunks, ranks, micro_batches);
  const ChunkRange& range = placing.chunks;
  if (!range.has(chunks))
    throw InputError(
        fmt::format("the schedule '{}' cannot have {} on each device", def.name, pluralize(chunks, "stage")),
        fmt::format("it has {}{}", range.min,
                    range.max == range.min ? ""
                    : range.step == 1      ? " or more"
                                           : ", or twice, three times ... as many"));
  if (placing.placement == Placement::Bidirectional)
    require_micro_batches(micro_batches >= 2, def.name, "a micro-batch in each direction", micro_batches);
  return placed_plan(placing.placement, ranks, chunks, micro_batches, def.turn ? def.turn(ranks, micro_batches) : 0);
}

Plan plan_for(const ScheduleDef& def, int ranks, int chunks, int micro_batches) {
  return plan_for(def, placing_of(def, nullptr), ranks, chunks, micro_batches);
}

Schedule by_rank(const ScheduleInput& in, int micro_batches,
                 const std::function<void(const RankInput&, RankOps&)>& order) {
  Schedule result = empty_schedule(in.plan);
  for (int r = 0; r < in.layout.ranks(); ++r) {
    std::vector<Op> row;
    RankOps ops(row, in.layout.stages[r]);
    order({in, r, in.layout.ranks(), in.layout.chunks(), micro_batches}, ops);
    RankId last;  // Where other stages share some of the devices, these are several ranks of the plan.
    for (const DeviceId device : in.layout.devices[r])
      if (const RankId rank = result.rank(device); rank != last) result.ranks[rank] = row, last = rank;
  }
  return result;
}

int drain_every(const ScheduleDef& def, const config::Value* options) {
  if (def.flushes) return 1;
  return options ? option_or(*options, "drain_every", 0) : 0;
}

ScheduleOptions read_options(const ScheduleDef& def, const config::Value* map) {
  ScheduleOptions options;
  if (map == nullptr) return options;
  if (def.placement != Placement::Any) options.placing = placing_of(def, map);
  options.drain_every = drain_every(def, map);
  options.update_each_micro_batch = option_is(*map, "update", "micro_batch");
  if (def.read) def.read(*map, options);
  return options;
}

Schedule build_schedule(const ScheduleDef& def, ScheduleInput in) {
  if (def.trains) require_whole_stages(in.plan, def.name);
  if (def.equal_sizes) require_equal_sizes(in.plan, def.name);
  require_vocabulary(in.plan, def);
  if (!def.stage || !def.turns) require_equal_shares(in.plan, def.name);
  in.depth = depths(in.plan);
  if (def.placement != Placement::Any)
    in.layout = layout_of(in.plan, in.options.placing.value_or(placing_of(def, nullptr)), def.name);
  const auto stretch = [&](int iterations) {
    if (def.whole) {
      ScheduleInput part = in;
      part.iterations = iterations;
      return def.whole(part);
    }
    if (def.rank) {
      Schedule rows = by_rank(in, in.plan.micro_batches(StageId{0}) * iterations, def.rank);
      rows.vocabulary = def.vocabulary;
      return rows;
    }
    return by_stage(in.plan, def.name, def.trains ? DeviceSharing::Refused : DeviceSharing::Allowed,
                    [&](StageId stage, OpList& ops) {
                      def.stage(in, stage, in.plan.micro_batches_per_replica(stage) * iterations, ops);
                    });
  };
  const int every = def.flushes ? 1 : in.options.drain_every;
  const int length = every > 0 ? std::min(every, in.iterations) : in.iterations;
  const Schedule full = stretch(length);
  const Schedule rest = in.iterations % length == 0 ? Schedule{} : stretch(in.iterations % length);
  std::vector<Stretch> parts;
  for (int first = 0; first < in.iterations; first += length)
    parts.push_back({first + length <= in.iterations ? &full : &rest, first});
  Schedule schedule = join(parts, in.plan, updates_of(in));
  schedule.drain_every = every;
  schedule.search = full.search;
  return schedule;
}

}  // namespace stagecraft
