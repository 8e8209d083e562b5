// A search of plans for sequences of different lengths: packs follow the plan, rows are what a run shows, bounds hold,
// and fields of `data` are chosen where that is asked.

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/experiment/run.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/evaluation.hpp"
#include "sim/search/plan_variants.hpp"
#include "sim/search/work_bound.hpp"

namespace stagecraft::packs_search_test {
namespace {

const std::vector<std::string> kPlan{"software=megatron-no-overlap",
                                     "model={base: gpt2-small, override: {sequence: 4096, flash_attention: true}}",
                                     "cluster={base: superpod-h100-256, override: {nodes: 1, gpus: 4}}",
                                     "plan={planner: balanced, stages: 2, group: {tensor: 2, sequence: true}}"};
const std::vector<std::string> kData{
    "run={schedule: 1f1b, global_batch: 24, iterations: 3}",
    "data={lengths: {kind: lognormal, low: 128, high: 4096, mean: 1500, sigma: 1}, pack: in-order}"};

Experiment experiment(std::vector<std::string> sets) {
  sets.insert(sets.begin(), kPlan.begin(), kPlan.end());
  return load_experiment("scenarios/examples/quickstart.yaml", sets);
}

Experiment packed(std::vector<std::string> sets = {}) {
  sets.insert(sets.begin(), kData.begin(), kData.end());
  return experiment(std::move(sets));
}

ChoiceTable search(const Experiment& e, const std::vector<std::string>& pack_fields = {}) {
  return search_choices(e, {.schedules = {"1f1b"}, .pack_fields = pack_fields, .max_simulations = 300},
                        [](const SearchProgress&) {});
}

bool has_set(const Choice& c, const std::string& beginning) {
  return std::any_of(c.sets.begin(), c.sets.end(), [&](const std::string& set) { return set.starts_with(beginning); });
}

std::string all_reasons(const ChoiceTable& table) {
  std::string text;
  for (const std::string& line : table.reasons) text += line + "\n";
  return text;
}

}  // namespace

TEST_CASE("each row is what a run of its settings shows, with packs for its replicas") {
  const ChoiceTable table = search(packed());
  REQUIRE(!table.front.empty());
  CHECK(table.samples == 24);
  CHECK(table.iterations == 3);
  bool has_replicas = false;
  for (const Choice& row : table.front) {
    CAPTURE(row.plan_words);
    has_replicas |= row.replicas > 1;
    CHECK(!has_set(row, "run.micro_batches="));
    CHECK(!has_set(row, "data."));
    CHECK(run(compile(packed(row.sets)), "ideal").report.period.value ==
          doctest::Approx(row.period.value).epsilon(1e-9));
  }
  CHECK(has_replicas);
  CHECK(table.front.front().period.value <= table.configured_period.value);
  CHECK(all_reasons(table).find("data.room, data.pack, data.order (--data)") != std::string::npos);
}

TEST_CASE("fields of data that are asked for make the best row no longer, and are named in it") {
  const ChoiceTable as_written = search(packed()), chosen = search(packed(), {"order", "pack"});
  REQUIRE(!chosen.front.empty());
  const Choice& first = chosen.front.front();
  CHECK(first.period < as_written.front.front().period);
  CHECK(first.plan_words.find("packs balanced, room 4096, order") != std::string::npos);
  CHECK(has_set(first, "data.pack=balanced"));
  CHECK(run(compile(packed(first.sets)), "ideal").report.period.value ==
        doctest::Approx(first.period.value).epsilon(1e-9));
}

TEST_CASE("packs of run.loads keep their replicas and their order") {
  const ChoiceTable table =
      search(experiment({"run={schedule: 1f1b, iterations: 3}", "plan={planner: balanced, stages: 2, replicas: 2}",
                         "run.loads=[[[4096], [128, 900]], [[1000], [2048, 512]]]"}));
  REQUIRE(!table.front.empty());
  for (const Choice& row : table.front) CHECK(row.replicas == 2);
}

TEST_CASE("no plan with packs is faster than its bounds") {
  const PlannedExperiment configured = plan_experiment(packed());
  const NetworkParts parts(configured.cluster());
  const SearchObjective objective(Objective::Time, configured, 3);
  const FrameworkLimits limits(configured.experiment, true);
  const PlanVariants variants = plan_variants(configured, {configured.experiment.schedule.def}, parts, objective,
                                              limits, {"room", "pack", "order"});
  REQUIRE(variants.list.size() > 100);
  const LinkCollectives links(configured.experiment.cluster);
  int compared = 0;
  double closest = 0;
  for (std::size_t i = 0; i < variants.list.size(); i += variants.list.size() / 60 + 1) {
    const PlanVariant& v = variants.list[i];
    Experiment e = variant_of(configured.experiment);
    e.plan = v.plan, e.run.packs = v.packs.packs, e.run.micro_batches = v.micro_batches;
    try {
      const PlannedExperiment planned = plan_experiment(e);
      const PlanBound bound = plan_bound(planned, links);
      const Seconds period = run(compile(planned), "ideal").report.period;
      CAPTURE(v.packs.words);
      CHECK(v.bound.value <= bound.work.value * (1 + 1e-9));
      CHECK(bound.unsplit.value <= period.value * (1 + 1e-9));
      closest = std::max(closest, bound.unsplit / period);
      ++compared;
    } catch (const Infeasible&) {  // It does not fit in memory.
    } catch (const InputError&) {  // Nothing of its kind is recomputed.
    }
  }
  CHECK(compared > 20);
  CHECK(closest > 0.9);
}

TEST_CASE("a search says which fields of data it can choose") {
  const auto problem = [](const Experiment& e, const std::vector<std::string>& fields) {
    try {
      search(e, fields);
    } catch (const InputError& error) {
      return error.problems().front();
    }
    return Diagnostic{};
  };
  CHECK(problem(packed(), {"pad"}).help == "one or more of room, pack, order");
  CHECK(problem(experiment({"run={schedule: 1f1b, micro_batches: 4}"}), {"order"}).message ==
        "the scenario has no data, so there are no packs to choose");
}

}  // namespace stagecraft::packs_search_test
