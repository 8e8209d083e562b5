// Published recipes for the model and the chip of a search, simulated next to what it finds.

#include "sim/search/published_choices.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/number_format.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/interchange/exports/transformer_facts.hpp"
#include "sim/interchange/recipes.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/policies.hpp"
#include "sim/search/replay.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostPublished = 4;

bool is_framework(const Recipe& r, const SoftwareStack& software) {
  if (r.framework == "deepseek") return software.name.starts_with("deepseek");
  if (is_megatron(software)) return r.framework != "torchtitan";
  return !software.name.starts_with("torchtitan") || r.framework == "torchtitan";
}

bool applies(const Recipe& r, const PlannedExperiment& p, const TransformerFacts& f) {
  const Cluster& cluster = p.cluster();
  const bool is_chip = std::all_of(cluster.types.begin(), cluster.types.end(),
                                   [&](const DeviceType& type) { return type.preset == r.chip; });
  return r.broken_rule.empty() && is_chip && r.layers == f.layers && r.hidden == f.hidden && r.heads == f.heads &&
         r.experts == f.experts && r.sequence == f.sequence && r.precision == name(p.experiment.rules->format) &&
         is_framework(r, p.experiment.software());
}

/// The recipe with next-token modules where the model has them.
Recipe with_modules_of(Recipe r, const TransformerFacts& f) {
  const std::size_t module = r.layout.find('m');
  if (module != std::string::npos && f.next_tokens == 0) std::erase(r.layout, 'm');
  if (module == std::string::npos && !r.layout.empty() && f.next_tokens > 0)
    r.layout.insert(r.layout.size() - 1, std::string(f.next_tokens, 'm'));
  return r;
}

/// The scenario with other settings.
Experiment changed(const Experiment& e, const std::vector<std::string>& sets, int iterations) {
  config::Problems problems;
  std::vector<config::Member> overrides;
  for (const std::string& set : with_chosen_options({}, sets))
    if (auto read = config::read_assignment("--set", set, problems)) overrides.push_back(std::move(*read));
  config::Value checked = checked_scenario(*e.source, overrides, problems);
  problems.throw_if_any();
  Experiment variant = read_experiment(settled_scenario(std::move(checked)), &e);
  variant.run.lowering.iterations = iterations;
  return variant;
}

class RecipeRunner {
 public:
  RecipeRunner(const PlannedExperiment& configured, const std::string& backend, bool contended, int iterations,
               const NetworkParts& parts, const SearchObjective& objective, const FrameworkLimits& limits)
      : configured_(configured),
        backend_(backend),
        contended_(contended),
        iterations_(iterations),
        parts_(parts),
        objective_(objective),
        limits_(limits) {}

  std::vector<std::string> settings_of(const Recipe& r) const {
    return sets_of(r, device_count(), configured_.plan.mini_batch);
  }

  PublishedChoice run(const Recipe& r) const {
    PublishedChoice published{
        .name = r.name, .source = r.source, .devices = r.devices, .why_not = {}, .is_offered = true, .choice = {}};
    published.choice.sets = settings_of(r);
    if (published.choice.sets.empty()) {
      published.why_not = fmt::format("{} on {} cannot be divided so", pluralize(configured_.plan.mini_batch, "sample"),
                                      pluralize(device_count(), "device"));
      return published;
    }
    try {
      PlannedExperiment planned = plan_experiment(changed(configured_.experiment, published.choice.sets, iterations_));
      published.why_not = limits_.refusal_of(planned);
      const std::vector<StateSharding>& states = limits_.shardings();
      published.is_offered = std::find(states.begin(), states.end(), planned.experiment.plan.sharding) != states.end();
      if (published.why_not.empty()) simulate(std::move(planned), published.choice);
    } catch (const Infeasible& e) {
      published.why_not = e.problem().message;
    } catch (const InputError& e) {
      published.why_not = e.problems().front().message;
    }
    if (published.choice.replayed && !published.choice.replayed->ran())
      published.why_not = published.choice.replayed->why_not;
    return published;
  }

 private:
  int device_count() const { return static_cast<int>(configured_.cluster().devices.size()); }

  void simulate(PlannedExperiment planned, Choice& row) const {
    PlanVariant variant{.plan = planned.experiment.plan, .placement = placement_of(*planned.experiment.schedule.def)};
    variant.micro_batches = planned.experiment.run.micro_batches;
    variant.plan.micro_batch_size = planned.plan.stages.front().micro_batch_size;
    describe_choice(planned, variant, parts_, row);
    const CompiledExperiment c = compile(std::move(planned));
    measure_choice(stagecraft::run(c, backend_), c, row);
    row.schedule = c.experiment.schedule.name();
    if (contended_) row.replayed = contended_result(c);
    row.amount = objective_.amount(objective_.of_devices(devices_of(c.plan)), row);
  }

  const PlannedExperiment& configured_;
  const std::string& backend_;
  bool contended_;
  int iterations_;
  const NetworkParts& parts_;
  const SearchObjective& objective_;
  const FrameworkLimits& limits_;
};

}  // namespace

std::vector<PublishedChoice> published_choices(const PlannedExperiment& configured, const std::string& backend,
                                               bool contended, int iterations, const NetworkParts& parts,
                                               const SearchObjective& objective, const FrameworkLimits& limits) {
  if (!configured.experiment.software().prices) return {};
  const TransformerFacts facts = facts_of(configured);
  std::vector<Recipe> recipes;
  for (const Recipe& r : published_recipes())
    if (applies(r, configured, facts)) recipes.push_back(with_modules_of(r, facts));
  const double devices = static_cast<double>(configured.cluster().devices.size());
  const auto distance = [&](const Recipe& r) { return std::abs(std::log(r.devices / devices)); };
  std::stable_sort(recipes.begin(), recipes.end(),
                   [&](const Recipe& a, const Recipe& b) { return distance(a) < distance(b); });
  const RecipeRunner runner(configured, backend, contended, iterations, parts, objective, limits);
  std::vector<PublishedChoice> published;
  for (const Recipe& r : recipes) {
    const std::vector<std::string> sets = runner.settings_of(r);
    const auto alike = std::find_if(published.begin(), published.end(), [&](const PublishedChoice& p) {
      return !sets.empty() && p.choice.sets == sets;  // On as many devices they are one plan.
    });
    if (alike != published.end()) {
      alike->name += ", " + r.name;
      continue;
    }
    if (published.size() == kMostPublished) break;
    published.push_back(runner.run(r));
    published.back().choice.id = -static_cast<int>(published.size());
  }
  return published;
}

}  // namespace stagecraft
