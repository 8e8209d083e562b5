#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/core/text.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/schedule.hpp"
#include "tests/support/devices.hpp"
#include "tests/support/reductions.hpp"

namespace stagecraft::test {

/// Forward, backward, and nothing else; the halves of the backward are equal.
inline StageCost times(double forward, double backward, double update = 0) {
  StageCost cost;
  cost.forward = cost.recompute = Seconds{forward};
  cost.backward = Seconds{backward};
  cost.input_gradient = cost.weight_gradient = Seconds{backward / 2};
  cost.update = Seconds{update};
  return cost;
}

inline Schedule build(std::string_view name, const Plan& plan, int iterations = 1) {
  const StageCosts costs = uniform_costs(plan, times(1, 1));
  return build_schedule(get_from(schedules::catalog(), "schedule", name),
                        {.plan = reduced(plan), .costs = costs, .iterations = iterations});
}

/// Gives stage s `replicas[s]` replicas, on devices of their own, which take micro-batches in turn.
inline Plan in_turn(Plan plan, const std::vector<int>& replicas) {
  int device = 0;
  for (int s = 0; s < std::ssize(replicas); ++s) {
    plan.stages[StageId{s}].share = Share::MicroBatches;
    plan.stages[StageId{s}].place_on(device_range(device, replicas[s]));
    device += replicas[s];
  }
  return reduced(std::move(plan));
}
inline Plan in_turn(const std::vector<int>& replicas, int micro_batches) {
  const int stages = static_cast<int>(replicas.size());
  return in_turn(chain_plan(stages, stages, micro_batches), replicas);
}

/// Whether a schedule without options can have these numbers; the others it says it cannot.
inline bool takes(const ScheduleDef& def, int ranks, int micro_batches) {
  const std::string_view name = def.name;
  if (name == "2bw") return micro_batches >= ranks - 1;
  if (name == "wpipe") return micro_batches >= 2 * (ranks - 1);
  if (name == "dualpipe") return ranks % 2 == 0 && micro_batches % 2 == 0 && micro_batches >= 2 * ranks;
  if (name == "dualpipev") return micro_batches >= 2 * ranks;
  if (name == "stp") return micro_batches >= 3 * ranks - 1;
  if (name == "chimera") return ranks % 2 == 0 && micro_batches >= 2;
  if (name == "gems") return micro_batches >= 2;
  return (name != "seq1f1b" && name != "slimpipe") || micro_batches % 2 == 0;
}

/// Whether on a chain the messages of neighbors always meet, so that not even blocking rendezvous ends in a deadlock:
/// one stage on each rank, which runs at most two forwards further ahead than the next.
inline bool neighbours_meet(const ScheduleDef& def) {
  return def.placement == Placement::Any && def.name != "spp-pe" && def.name != "synthesised";
}

/// Whether the schedule runs where communication is in the way of computation (`overlap: false`). Sums of scores that
/// all ranks divide run next to it.
inline bool runs_blocked(const ScheduleDef& def) { return def.vocabulary == VocabularyPasses::None; }

/// The plan with the fewest stages that the schedule goes with.
inline Plan least_plan(const ScheduleDef& def, int ranks, int micro_batches) {
  return plan_for(def, ranks, def.chunks.min, micro_batches);
}

/// A schedule of the catalog that drains every `every` iterations; 0: never.
inline Schedule draining(std::string_view name, const Plan& plan, int iterations, int every) {
  const ScheduleDef& def = get_from(schedules::catalog(), "schedule", name);
  const StageCosts costs = uniform_costs(plan, times(1, 1));
  config::Value options;
  options.kind = config::Value::Kind::Map;
  options.members.push_back({"drain_every", {}, config::Value::scalar(std::to_string(every), {})});
  return build_schedule(
      def, {.plan = reduced(plan), .costs = costs, .iterations = iterations, .options = read_options(def, &options)});
}

/// "0F0 0B0", one row a device.
inline std::vector<std::string> rows_of(const Schedule& schedule) {
  std::vector<std::string> rows;
  for (const auto& ops : schedule.device_rows()) {
    std::string& row = rows.emplace_back();
    for (const Op& op : ops) row += (row.empty() ? "" : " ") + to_text(op) + (op.fused ? "+" : "");
  }
  return rows;
}

/// The other way round: "0F0+ 1B0" are two ops that run as one.
inline Schedule schedule_from(const std::vector<std::string>& rows) {
  Schedule schedule;
  for (const std::string& row : rows) {
    auto& ops = schedule.ranks.emplace_back();
    for (std::string word : split(row, ' ')) {
      if (word.empty()) continue;
      const bool fused = word.back() == '+';
      if (fused) word.pop_back();
      Op op = parse_op(word).value();
      op.fused = fused;
      ops.push_back(op);
    }
  }
  return schedule;
}

/// A plan of `stages` stages with these edges, one device each, `micro_batches` micro-batches of one sample.
inline Plan dag_plan(int stages, int micro_batches, const std::vector<std::pair<int, int>>& edges, double bytes = 0) {
  Plan plan = chain_plan(stages, stages, micro_batches);
  plan.edges.clear();
  for (const auto& edge : edges) plan.edges.push_back({StageId{edge.first}, StageId{edge.second}, Bytes{bytes}});
  return plan;
}

}  // namespace stagecraft::test
