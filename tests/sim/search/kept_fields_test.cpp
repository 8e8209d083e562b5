// A search keeps what the scenario says of its plan and its run, but for what it varies itself.

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/override.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/search/choices.hpp"

namespace stagecraft::kept_fields_test {
namespace {

using Strings = std::vector<std::string>;

/// A value that is not the default of its field, and the part of a plan that the field is about: there it has to be
/// found again in every row.
struct FieldCase {
  std::string path, value;
  std::string needs = {};  ///< A part of the printed plan without which the field says nothing; empty: always.
  bool chain = false;      ///< The model has no costs from shapes.

  std::string file() const { return fmt::format("scenarios/examples/{}.yaml", chain ? "quickstart" : "search-groups"); }
};

const std::vector<FieldCase> kFields = {
    {"plan.share", "micro_batches"},
    {"plan.sequential", "true"},
    {"plan.group.expert_tensor", "2"},
    {"plan.group.context_type", "all_gather"},
    {"plan.group.dispatcher", "per_node"},
    {"plan.group.shared_overlap", "true"},
    {"plan.group.within", "node"},
    {"plan.group.order", "tp-cp-ep-pp-dp"},
    {"plan.shard.within", "2", "shard: {state"},
    {"plan.shard.reshard", "true", "state: weights"},
    {"run.iterations", "7"},
    {"run.overlap", "false"},
    {"run.transfers", "eager"},
    {"run.buffers", "8"},
    {"run.streams", "pair"},
    {"run.sends", "shared"},
    {"run.compute", "emulated"},
    {"run.time_dilation", "3"},
    {"run.gpu.messages", "nccl"},
    {"run.precision", "fp16"},
    {"run.collectives", "flows"},
    {"run.detail", "layers"},
    {"run.gradient_buckets", "8 MiB"},
    {"run.seed", "9"},
    {"plan.share", "micro_batches", {}, true},
    {"plan.sequential", "true", {}, true},
    {"plan.group.order", "tp-cp-ep-pp-dp", {}, true},
    {"run.overlap", "false", {}, true},
};

/// What a search varies itself, sets or refuses; and what names the planner.
const Strings kVaried = {
    "plan.planner",       "plan.stages",           "plan.replicas",    "plan.placement",    "plan.micro_batch_size",
    "plan.recompute",     "plan.recompute_layers", "plan.devices",     "plan.group.tensor", "plan.group.sequence",
    "plan.group.context", "plan.group.expert",     "plan.shard.state", "run.schedule",      "run.micro_batches",
    "run.global_batch",   "plan.vocabulary",       "run.loads"};

Strings base_of(const FieldCase& field) {
  if (field.chain)
    return {"model={builder: mlp, widths: [64, 64, 256, 64, 64, 64]}",
            "cluster={generator: uniform, devices: 4, type: any, types: {any: {peak: 1 TFLOP/s, memory: 1 GiB, "
            "memory_bandwidth: 100 GB/s}}, link: {bandwidth: 1 GB/s, latency: 1 us}}",
            "software=none", "plan={planner: balanced, stages: 2, micro_batch_size: 2}", "run.micro_batches=4"};
  const bool sharded = field.path.starts_with("plan.shard.");
  return {
      "model={builder: transformer, kind: gpt, layers: 4, hidden: 512, heads: 8, feed_forward: 256, sequence: 16384, "
      "vocabulary: 1024, norm: rms, gated: true, bias: false, positions: rotary, flash_attention: true, precision: "
      "mixed, experts: {count: 8, active: 2, width: 256, shared: 2}}",
      "cluster={base: superpod-h100-256, override: {nodes: 2, gpus: 2}}", "software=plain",
      fmt::format("plan={{planner: balanced, stages: 2, replicas: 2, shard: {{state: {}}}, group: {{}}}}",
                  sharded ? "weights" : "none"),
      "run.global_batch=8"};
}

std::string value_at(const config::Value& tree, const std::string& path) {
  const config::Value* value = config::get_path(tree, path);
  return value ? value->text : "(default)";
}

/// Paths of all fields of a map, with the fields of maps in it.
void add_paths(const config::MapSpec& spec, const std::string& prefix, Strings& paths) {
  for (const config::Field& f : spec.fields)
    if (f.kind == config::Field::Kind::Map)
      add_paths(*f.map, prefix + f.name + ".", paths);
    else
      paths.push_back(prefix + f.name);
}

}  // namespace

TEST_CASE("every row of a search has each field of the scenario's plan and run that the search does not vary") {
  for (const FieldCase& field : kFields) {
    CAPTURE(field.path);
    CAPTURE(field.chain);
    const std::string file = field.file();
    Strings sets = base_of(field);
    sets.push_back(field.path + "=" + field.value);
    const Scenario scenario = load_scenario(file, sets);
    REQUIRE(value_at(scenario.tree, field.path) == field.value);
    const ChoiceTable table = search_choices(
        read_experiment(scenario), {.schedules = {"1f1b"}, .front_simulations = field.needs.empty() ? 8 : 1000},
        [](const SearchProgress&) {});
    REQUIRE(!table.front.empty());
    int rows = 0;
    for (const Choice& row : table.front) {
      if (row.sets.front().find(field.needs) == std::string::npos || row.planner != "balanced") continue;
      CAPTURE(row.sets.front());
      Strings with_row = sets;
      with_row.insert(with_row.end(), row.sets.begin(), row.sets.end());
      CHECK(value_at(load_scenario(file, with_row).tree, field.path) == field.value);
      ++rows;
    }
    CHECK(rows > 0);
  }
}

TEST_CASE("the fields above, and those that a search varies, are all fields of a plan by balanced and of a run") {
  Strings paths;
  const config::MapSpec& scenario = scenario_fields();
  add_paths(*get_from(planners::catalog(), "planner", "balanced").fields, "plan.", paths);
  add_paths(*scenario.find("run")->map, "run.", paths);
  for (const char* field : {"within", "reshard", "state"}) paths.push_back(std::string("plan.shard.") + field);
  for (const std::string& path : paths) {
    if (path == "plan.shard") continue;  // A variant, whose fields are listed.
    CAPTURE(path);
    const bool tested = std::any_of(kFields.begin(), kFields.end(), [&](const FieldCase& f) {
      return f.path == path || (path.starts_with("run.gpu.") && f.path.starts_with("run.gpu."));
    });
    CHECK((tested || std::find(kVaried.begin(), kVaried.end(), path) != kVaried.end()));
  }
}

TEST_CASE("a search keeps the options of the scenario's planner and of its schedule") {
  const auto rows_of = [](const Strings& more, const ChoiceOptions& options) {
    const FieldCase chain{.path = {}, .value = {}, .chain = true};
    Strings sets = base_of(chain);
    sets.insert(sets.end(), more.begin(), more.end());
    return search_choices(load_experiment(chain.file(), sets), options, [](const SearchProgress&) {});
  };
  int planned = 0;
  const ChoiceTable planners = rows_of({"plan={planner: piper, micro_batch_size: 2, cuts: listed, bandwidth: 2 GB/s, "
                                        "memory: 600 MiB}"},
                                       {.schedules = {"1f1b"}});
  for (const Choice& row : planners.front) {
    if (row.planner != "piper") continue;
    CAPTURE(row.sets.front());
    CHECK(row.sets.front().find("cuts: listed") != std::string::npos);
    CHECK(row.sets.front().find("bandwidth: \"2 GB/s\"") != std::string::npos);
    CHECK(row.sets.front().find("memory: 629145600 B") != std::string::npos);
    ++planned;
  }
  MESSAGE(planned << " rows of piper");
  const ChoiceTable schedules =
      rows_of({"run.schedule={name: zb-1p, memory: 2}"}, {.schedules = {"zb-1p"}, .front_simulations = 8});
  REQUIRE(!schedules.front.empty());
  for (const Choice& row : schedules.front) CHECK(row.sets[1] == "run.schedule={name: zb-1p, memory: 2}");
}

TEST_CASE("a search keeps the weights policy of the scenario, with its options") {
  struct WeightsCase {
    std::string weights, schedule;
    Strings schedules = {}, policies = {};  ///< What the search is asked to try.
    std::string policy = {};                ///< In every row; empty: one of `policies`.
    Strings options = {};
    std::string without = {};  ///< A schedule that does not go with the weights.
  };
  const std::vector<WeightsCase> cases = {
      {"{policy: pipeoptim, fidelity: as_released}",
       "pipedream",
       {},
       {},
       "pipeoptim",
       {"fidelity=as_released"},
       "1f1b"},
      {"{policy: pipemare, shrink_updates: 7}",
       "pipedream",
       {"pipedream", "2bw", "gpipe"},
       {},
       "pipemare",
       {"shrink_updates=7"}},
      {"stash", "1f1b", {"1f1b", "gpipe"}, {}, "stash"},
      {"flush", "1f1b", {"1f1b", "pipedream"}, {}, "flush", {}, "pipedream"},
      {"{policy: custom, forward_weights: predict, predictor: {horizon: exact, direction: momentum}}",
       "pipedream",
       {"pipedream"},
       {},
       "custom",
       {"forward_weights=predict", "predictor.horizon=exact"}},
      {"{policy: pipeoptim, fidelity: as_released}",
       "pipedream",
       {"pipedream"},
       {"pipeoptim", "spectrain"},
       {},
       {"fidelity=as_released"}}};
  for (const WeightsCase& c : cases) {
    CAPTURE(c.weights);
    const FieldCase chain{.path = {}, .value = {}, .chain = true};
    Strings sets = base_of(chain);
    for (const std::string& set :
         {"weights=" + c.weights, "run.schedule=" + c.schedule, std::string("run.iterations=5")})
      sets.push_back(set);
    const ChoiceTable table =
        search_choices(load_experiment(chain.file(), sets),
                       {.schedules = c.schedules, .weights = c.policies, .front_simulations = 8, .max_orders = 0},
                       [](const SearchProgress&) {});
    REQUIRE(!table.front.empty());
    for (const Choice& row : table.front) {
      CAPTURE(row.sets.back());
      Strings with_row = sets;
      with_row.insert(with_row.end(), row.sets.begin(), row.sets.end());
      const config::Value tree = load_scenario(chain.file(), with_row).tree;
      CHECK(value_at(tree, "weights.policy") == row.weights);
      if (!c.policy.empty()) CHECK(row.weights == c.policy);
      CHECK(row.schedule != c.without);
      for (const std::string& option : c.options) {
        const std::size_t equals = option.find('=');
        CHECK(value_at(tree, "weights." + option.substr(0, equals)) == option.substr(equals + 1));
      }
    }
    const std::string sentence = fmt::format("go with the scenario's weights {} (--set weights=auto)", c.policy);
    CHECK((table.reasons.back().find(sentence) != std::string::npos) == !c.without.empty());
  }
}

TEST_CASE("schedules none of which goes with the weights of the scenario are refused with the reason") {
  const FieldCase chain{.path = {}, .value = {}, .chain = true};
  Strings sets = base_of(chain);
  for (const char* set : {"weights=pipeoptim", "run.schedule=pipedream", "run.iterations=5"}) sets.emplace_back(set);
  try {
    search_choices(load_experiment(chain.file(), sets), {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
    FAIL("1f1b was tried");
  } catch (const InputError& error) {
    CHECK(error.problems().front().message.find("'pipeoptim' looks as far ahead as if the pipeline never drained") !=
          std::string::npos);
    CHECK(error.problems().front().help.find("--set weights=auto") != std::string::npos);
  }
}

TEST_CASE("the recomputation of the scenario is tried too, and other values that are not are named") {
  Strings sets = base_of({.path = {}, .value = {}});
  sets.emplace_back("plan.recompute=outputs");
  sets.emplace_back("plan.group.dispatcher=per_node");
  const ChoiceTable table = search_choices(load_experiment("scenarios/examples/search-groups.yaml", sets),
                                           {.schedules = {"1f1b"}}, [](const SearchProgress&) {});
  REQUIRE(!table.reasons.empty());
  const std::string& line = table.reasons.back();
  CAPTURE(line);
  CHECK(line.starts_with("not tried: "));
  for (const char* phrase :
       {"stages that the planner balanced does not make", "numbers of devices other than 2 and 4", "recompute: full;",
        "plan.group.dispatcher", "plan.group.expert_tensor", "plan.shard.within",
        "orders of work that are searched for", "other schedules (--schedules)"})
    CHECK_MESSAGE(line.find(phrase) != std::string::npos, phrase);
  CHECK(line.find("outputs") == std::string::npos);
}

}  // namespace stagecraft::kept_fields_test
