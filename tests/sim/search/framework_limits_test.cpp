// A search offers what the training framework of the scenario runs, and shows published recipes beside it.

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "sim/core/text.hpp"
#include "sim/diagnosis/framework_check.hpp"
#include "sim/experiment/run.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/search/choices.hpp"
#include "sim/search/framework_limits.hpp"
#include "sim/search/policies.hpp"

namespace stagecraft::framework_limits_test {
namespace {

using Strings = std::vector<std::string>;
const std::string kFile = "scenarios/examples/search-groups.yaml";

/// Eight layers of Llama 3 8B on a node of eight H100.
Strings sets_for(const std::string& software, const Strings& more = {}) {
  Strings sets{"model={base: llama-3-8b, override: {layers: 8, sequence: 4096}}",
               "cluster={base: superpod-h100-256, override: {nodes: 1}}",
               "plan={planner: balanced, stages: 1, replicas: 8}",
               "run={schedule: 1f1b, global_batch: 16, precision: bf16}", "software=" + software};
  sets.insert(sets.end(), more.begin(), more.end());
  return sets;
}

ChoiceTable searched(const Strings& sets, int simulations = 200) {
  ChoiceOptions options;
  options.max_simulations = simulations;
  return search_choices(load_experiment(kFile, sets), options, [](const SearchProgress&) {});
}

std::set<StateSharding> states_of(const ChoiceTable& table, const Strings& sets) {
  std::set<StateSharding> states;
  for (const Choice& c : table.front) {
    Strings joined = sets;
    joined.insert(joined.end(), c.sets.begin(), c.sets.end());
    const PlannedExperiment planned = plan_experiment(load_experiment(kFile, joined));
    CAPTURE(join(c.sets, "; "));
    CHECK(framework_refusals(planned).empty());
    states.insert(planned.experiment.plan.sharding);
  }
  return states;
}

bool mentions(const ChoiceTable& table, const std::string& words) {
  return std::any_of(table.reasons.begin(), table.reasons.end(),
                     [&](const std::string& line) { return line.find(words) != std::string::npos; });
}

}  // namespace

TEST_CASE("an order of work is searched for unless a training framework would have to run it") {
  for (const auto& entry :
       {std::pair("none", true), {"plain", true}, {"megatron-core", false}, {"torchtitan", false}}) {
    const std::string software = entry.first;
    CAPTURE(software);
    const std::vector<SchedulingPolicy> policies =
        scheduling_policies({}, {}, load_experiment(kFile, sets_for(software)).software());
    CHECK(std::any_of(policies.begin(), policies.end(),
                      [](const SchedulingPolicy& p) { return p.name() == "synthesised"; }) == entry.second);
  }
}

TEST_CASE("every row of a search is a plan that the framework accepts, with the states that it divides") {
  const Strings megatron = sets_for("megatron-core"), titan = sets_for("torchtitan");
  const ChoiceTable with_megatron = searched(megatron), with_titan = searched(titan);
  REQUIRE(with_megatron.front.size() > 1);
  for (const StateSharding s : states_of(with_megatron, megatron)) CHECK(s <= StateSharding::Optimizer);
  CHECK(mentions(with_megatron, "ZeRO-2 and ZeRO-3, which Megatron-LM runs as Megatron-FSDP alone"));
  REQUIRE(with_titan.front.size() > 1);
  for (const StateSharding s : states_of(with_titan, titan))
    CHECK((s == StateSharding::None || s == StateSharding::Weights));
}

TEST_CASE("Megatron-FSDP divides weights where the scenario or its software asks for it") {
  const auto shardings = [](const Strings& sets) {
    return FrameworkLimits(load_experiment(kFile, sets), false).shardings();
  };
  const std::vector<StateSharding> every_state{StateSharding::None, StateSharding::Optimizer, StateSharding::Gradients,
                                               StateSharding::Weights};
  CHECK(shardings(sets_for("megatron-fsdp")) == every_state);
  CHECK(shardings(sets_for("megatron-core", {"plan.shard=weights"})) == every_state);
  CHECK(shardings(sets_for("megatron-core", {"plan.shard=optimizer"})).size() == 2);
  CHECK(shardings(sets_for("plain")) == every_state);
}

TEST_CASE("switches of overlap that the framework has are tried, and are in the options of a row") {
  const FrameworkLimits core(load_experiment(kFile, sets_for("megatron-core")), false);
  CHECK(core.switches() == std::vector<Overlap>{Overlap::Tensor, Overlap::Experts});
  CHECK(FrameworkLimits(load_experiment(kFile, sets_for("plain")), false).switches().empty());
  const Strings sets = sets_for("megatron-core");
  const ChoiceTable table = searched(sets);
  CHECK(mentions(table, "tried on in plans that the framework runs so: software.overlap.tensor"));
  int with_tensor_group = 0;
  for (const Choice& c : table.front) {
    const bool has_group = c.plan_words.find("TP ") != std::string::npos;
    const std::string settings = join(c.sets, "; ");
    CHECK((settings.find("software.overlap={tensor: true") != std::string::npos) == has_group);
    with_tensor_group += has_group;
  }
  CHECK(with_tensor_group > 0);
}

// The recipe is of Megatron-Bridge for eight H100, and the batch its own.
TEST_CASE("published recipes for the model and the chip begin the search, so that its answer is no worse") {
  const Strings sets{"model=llama-3-8b", "cluster={base: superpod-h100-256, override: {nodes: 1}}",
                     "plan={planner: balanced, stages: 1, replicas: 8}",
                     "run={schedule: 1f1b, global_batch: 128, precision: bf16}",
                     "software={base: megatron-core, gradient_bytes: 2}"};
  const ChoiceTable table = searched(sets, 10);
  REQUIRE(!table.published.empty());
  CHECK(table.published.front().name.find("bridge-llama3-8b-8gpu-h100-bf16") != std::string::npos);
  REQUIRE(!table.front.empty());
  for (const PublishedChoice& p : table.published) {
    CAPTURE(p.name + ": " + p.why_not);
    if (p.why_not.empty()) CHECK(table.front.front().amount <= p.choice.amount);
  }
  CHECK(searched(sets_for("megatron-core"), 5).published.empty());  // No recipe is for eight layers.
}

// Megatron-Bridge trains Llama 3 70B on 64 B300 with Megatron-FSDP.
TEST_CASE("a recipe with Megatron-FSDP is shown beside the rows, and is none of them") {
  const Strings sets{"model=llama-3-70b", "cluster={base: superpod-b200, override: {nodes: 8, type: {preset: b300}}}",
                     "plan={planner: balanced, stages: 1, replicas: 8, group: {tensor: 8, sequence: true}}",
                     "run={schedule: 1f1b, global_batch: 256, precision: bf16}", "software=megatron-core"};
  const ChoiceTable table = searched(sets, 1);
  const auto recipe = std::find_if(table.published.begin(), table.published.end(), [](const PublishedChoice& p) {
    return p.name.find("bridge-llama3-70b-64gpu-b300-bf16") != std::string::npos;
  });
  REQUIRE(recipe != table.published.end());
  CHECK(recipe->choice.plan_words.find("ZeRO-3") != std::string::npos);
  CHECK_FALSE(recipe->is_offered);
  for (const Choice& c : table.front) CHECK(c.group.find("ZeRO-3") == std::string::npos);
}

}  // namespace stagecraft::framework_limits_test
