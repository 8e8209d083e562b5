// The orders from which the search of `synthesised` starts: known schedules with several options, one micro-batch at a
// time, and repeated V-shaped blocks.

#include "sim/schedule/synthesis/seeds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/v_shape/blocks.hpp"

namespace stagecraft::synthesis {
namespace {

bool has_copies(const Plan& plan) { return plan.stages.front().twin.valid(); }

bool suits(const ScheduleDef& def, const Plan& plan) {
  return def.trains && def.flushes && (def.placement == Placement::Bidirectional) == has_copies(plan) &&
         def.name != "csv" && def.name != "synthesised";
}

/// Whether every stage runs its own micro-batches: a schedule that divides them in another way between the directions
/// needs another plan.
bool keeps_directions(const Schedule& one, const Plan& plan) {
  for (const auto& row : one.ranks)
    for (const Op& op : row) {
      const std::vector<int>& micros = plan.stage(op.stage).micros;
      if (!micros.empty() && !std::binary_search(micros.begin(), micros.end(), op.micro)) return false;
    }
  return true;
}

/// Options that are worth trying next to the defaults.
std::vector<std::string> variants(const ScheduleDef& def, const Plan& plan, double activations) {
  std::vector<std::string> sets;
  if (!def.fields) return sets;
  const int micros = plan.micro_batches(StageId{0}), size = plan.stages.front().micro_batch_size;
  if (def.fields->find("memory")) {
    // An activation belongs to one stage, so 1F1B keeps as many activations as there are stages.
    if (std::isfinite(activations) && activations > 0)
      sets.push_back(fmt::format("memory={}", activations / plan.stage_count()));
    for (const double memory : {0.5, 0.75, 1.25, 1.5, 2.0, 3.0, 4.0}) sets.push_back(fmt::format("memory={}", memory));
  }
  if (def.fields->find("group"))
    for (const int part : {2, 4, 8})
      if (micros / part > 1) sets.push_back(fmt::format("group={}", micros / part));
  if (def.fields->find("extra_in_flight"))
    for (const int extra : {1, 2, 4}) sets.push_back(fmt::format("extra_in_flight={}", extra * size));
  return sets;
}

void add(std::vector<SeedOrder>& seeds, const ScheduleDef& def, ScheduleInput in,
         const std::vector<std::string>& sets) {
  try {
    const std::optional<config::Value> options = options_of(def, sets);
    in.options = read_options(def, options ? &*options : nullptr);
    in.iterations = 1;
    Schedule one = build_schedule(def, in);
    for (auto& row : one.ranks) std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
    if (keeps_directions(one, in.plan)) seeds.push_back({std::string(def.name), std::move(one), sets.empty()});
  } catch (const InputError&) {  // It needs other stages or devices, ...
  } catch (const Infeasible&) {  // ... or other micro-batches.
  }
}

}  // namespace

std::vector<SeedOrder> library_seeds(const ScheduleInput& in, double activations) {
  std::vector<SeedOrder> seeds;
  for (const ScheduleDef* def : schedules::catalog()) {
    if (!suits(*def, in.plan)) continue;
    add(seeds, *def, in, {});
    for (const std::string& set : variants(*def, in.plan, activations)) add(seeds, *def, in, {set});
  }
  return seeds;
}

SeedOrder one_by_one(const SchedulingProblem& p) {
  Rows rows(p.stages.size());
  const auto row_of = [&](int s) -> std::vector<Step>& { return rows[p.rank_of[s]]; };
  const int micros = *std::max_element(p.micros.begin(), p.micros.end());
  for (int m = 0; m < micros; ++m) {
    for (const int s : p.order)
      if (m < p.micros[s]) row_of(s).emplace_back(kForward, p.first_piece[s] + m);
    for (auto s = p.order.rbegin(); s != p.order.rend(); ++s)
      if (m < p.micros[*s]) row_of(*s).emplace_back(kBackward, p.first_piece[*s] + m);
  }
  return {"one by one", p.schedule_of(rows), true};
}

std::vector<SeedOrder> block_seeds(const ScheduleInput& in, double activations, std::size_t limit) {
  std::vector<SeedOrder> seeds;
  if (has_copies(in.plan)) return seeds;
  ScheduleInput v_input = in;
  try {
    v_input.layout = layout_of(in.plan, {Placement::V, {2, 2}}, "synthesised");
  } catch (const InputError&) {
    return seeds;
  }
  auto shapes = v_block_shapes(v_input.layout.ranks(), activations);
  if (shapes.size() > limit) shapes.resize(limit);
  for (const auto& block : shapes) seeds.push_back({"blocks", from_v_blocks(v_input, block), false});
  return seeds;
}

}  // namespace stagecraft::synthesis
