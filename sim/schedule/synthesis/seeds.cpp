#include "sim/schedule/synthesis/seeds.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/schedule/v_shape/blocks.hpp"

namespace stagecraft::synthesis {
namespace {

bool has_copies(const Plan& plan) { return plan.stages.front().twin.valid(); }

bool suits(const ScheduleDef& def, const Plan& plan) {
  return def.trains && def.flushes && (def.placement == Placement::Bidirectional) == has_copies(plan) &&
         def.name != "csv" && def.name != "synthesised";
}

/// Every stage runs its own micro-batches: those who divide them otherwise between the directions want another plan.
bool keeps_directions(const Schedule& one, const Plan& plan) {
  for (const auto& row : one.devices)
    for (const Op& op : row) {
      const std::vector<int>& own = plan.stage(op.stage).micros;
      if (!own.empty() && !std::binary_search(own.begin(), own.end(), op.micro)) return false;
    }
  return true;
}

/// What is worth trying beside the defaults.
std::vector<std::string> variants(const ScheduleDef& def, const Plan& plan, double activations) {
  std::vector<std::string> sets;
  if (!def.fields) return sets;
  const int micros = plan.micro_batches(StageId{0}), size = plan.stages.front().micro_batch_size;
  if (def.fields->find("memory")) {
    // Where an activation is a stage's, so many of them are the memory of 1F1B, whatever the stages on a rank.
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

void add(std::vector<Seed>& seeds, const ScheduleDef& def, ScheduleInput in, const std::vector<std::string>& sets) {
  try {
    const std::optional<config::Value> options = options_of(def, sets);
    in.options = options ? &*options : nullptr;
    in.iterations = 1;
    Schedule one = build_schedule(def, in);
    for (auto& row : one.devices) std::erase_if(row, [](const Op& op) { return op.kind == OpKind::Update; });
    if (keeps_directions(one, in.plan)) seeds.push_back({std::string(def.name), std::move(one), sets.empty()});
  } catch (const InputError&) {  // It wants other stages or devices, ...
  } catch (const Infeasible&) {  // ... or other micro-batches.
  }
}

}  // namespace

std::vector<Seed> library_seeds(const ScheduleInput& in, double activations) {
  std::vector<Seed> seeds;
  for (const ScheduleDef* def : schedules::all()) {
    if (!suits(*def, in.plan)) continue;
    add(seeds, *def, in, {});
    for (const std::string& set : variants(*def, in.plan, activations)) add(seeds, *def, in, {set});
  }
  return seeds;
}

Seed one_by_one(const Problem& p) {
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

std::vector<Seed> block_seeds(const ScheduleInput& in, double activations, std::size_t most) {
  std::vector<Seed> seeds;
  if (has_copies(in.plan)) return seeds;
  ScheduleInput there_and_back = in;
  try {
    there_and_back.layout = layout_of(in.plan, {Placement::V, {2, 2}}, "synthesised");
  } catch (const InputError&) {
    return seeds;
  }
  auto shapes = v_block_shapes(there_and_back.layout.ranks(), activations);
  if (shapes.size() > most) shapes.resize(most);
  for (const auto& block : shapes) seeds.push_back({"blocks", from_v_blocks(there_and_back, block), false});
  return seeds;
}

}  // namespace stagecraft::synthesis
