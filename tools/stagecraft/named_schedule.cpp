#include "tools/stagecraft/named_schedule.hpp"

#include <fmt/format.h>

#include "sim/experiment/limits.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kMostStages = 1 << 20;

/// Words of `plan.recompute`.
bool recomputes(const Arguments& a, const ScheduleDef& def) {
  if (!a.has("recompute")) return false;
  const std::string word = a.text("recompute");
  if (word == "selective")
    throw InputError("--recompute selective makes the inside of attentions again, and there are no layers here",
                     "--recompute full, or stagecraft run SCENARIO --set plan.recompute=selective");
  if (word != "full" && word != "none")
    throw InputError(fmt::format("--recompute: '{}' is not known here", word), "write full or none");
  if (!def.trains)
    throw InputError(fmt::format("--recompute: the schedule '{}' has no backward to recompute for", def.name));
  return word == "full";
}

}  // namespace

int NamedSchedule::slices() const {
  const config::Value* given = options ? options->find("slices") : nullptr;
  return given ? config::as_int(*given) : 1;
}

ScheduleInput NamedSchedule::input(const StageCosts& costs, int iterations, const Cluster* cluster) const {
  return {.plan = plan,
          .costs = costs,
          .iterations = iterations,
          .options = read_options(*def, options ? &*options : nullptr),
          .cluster = cluster};
}

NamedSchedule named_schedule(const Arguments& a, const std::string& name, int iterations, const char* example) {
  const ScheduleDef& def = get_from(schedules::all(), "schedule", name);
  if (def.name == "csv") throw InputError("the schedule 'csv' is read from a file", "stagecraft schedule --file X.csv");
  if (def.tasks)
    throw InputError(
        fmt::format("the schedule '{}' runs the passes of layers as tasks, and there are no layers here", def.name),
        "stagecraft run SCENARIO, with plan: {planner: layerpipe} and run: {schedule: layerpipe}");
  if (!a.has("ranks") || !a.has("microbatches")) throw InputError("-p RANKS and -m MICROBATCHES are needed", example);
  const int ranks = a.count("ranks", 1, 1 << 16), micro_batches = a.count("microbatches", 1, 1 << 20);
  std::optional<config::Value> options = options_of(def, a.list("set"));
  const Placing placing = placing_of(def, options ? &*options : nullptr);
  const int chunks = a.has("chunks") ? a.count("chunks", 1, 1024) : placing.chunks.least;
  if (ranks > kMostStages / chunks)
    throw InputError(fmt::format("{} ranks of {} chunks are more than {} stages", ranks, chunks, kMostStages));
  Plan plan = plan_for(def, placing, ranks, chunks, micro_batches);
  const bool recompute = recomputes(a, def);
  for (Stage& stage : plan.stages) stage.recompute = recompute;
  check_size(plan, iterations, def.trains);
  return {&def, std::move(options), std::move(plan)};
}

}  // namespace stagecraft::commands
