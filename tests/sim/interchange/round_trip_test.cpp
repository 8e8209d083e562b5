// Import, export and import again give the same experiment: for every published recipe (scenarios/recipes/recipes.csv),
// and for configurations written by hand (round_trip_cases.txt).

#include <doctest/doctest.h>

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/bridge_recipe.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/plan/layout_letters.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::round_trip_test {
namespace {

constexpr const char* kCases = "tests/sim/interchange/round_trip_cases.txt";
constexpr const char* kFunctions = "tests/sim/interchange/torchtitan_configurations.py";

struct Case {
  std::string name, framework, chip, text;
  int devices = 0;
};

std::vector<std::string> parts_of(const std::string& line, std::size_t limit) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t bar = 0; parts.size() + 1 < limit && (bar = line.find(" | ", at)) != std::string::npos; at = bar + 3)
    parts.push_back(line.substr(at, bar - at));
  parts.push_back(line.substr(at));
  return parts;
}

/// A cluster of these chips, with memory for whatever a recipe needs.
SetupOptions options_of(const Case& c) {
  const int nodes = std::max(1, (c.devices + 7) / 8);
  const std::string base = c.chip.find('b') == std::string::npos ? "superpod-h100-256" : "superpod-b200";
  const char* const model = c.name.ends_with("-experts") ? "mixtral-8x7b" : "gpt2-small";
  const char* const host = c.name.starts_with("offloaded")
                               ? "host: {memory: 100 TiB, bandwidth: 400 GB/s, down: {bandwidth: 50 GB/s}}\n"
                               : "";
  return {
      .model = c.framework == "deepspeed" ? model : "",
      .cluster = test::own_file("round_trip_cluster.yaml",
                                fmt::format("schema: cluster/1\nbase: {}\noverride: {{nodes: {}, type: {{preset: {}, "
                                            "memory: 10000 GB}}}}\n{}",
                                            base, nodes, c.chip, host)),
      .devices = c.devices};
}

TrainingSetup imported(const Case& c, const std::string& text, const SetupOptions& options) {
  if (c.framework.starts_with("torchtitan")) return read_torchtitan(text, c.name, options);
  if (c.framework == "deepspeed") return read_deepspeed(text, c.name, options);
  if (c.framework == "bridge") return read_bridge(text, c.name, options);
  return read_megatron(text, c.name, options);
}

FrameworkConfiguration exported(const Case& c, const PlannedExperiment& p) {
  if (c.framework == "torchtitan") return torchtitan_config(p);
  if (c.framework == "torchtitan-python") return torchtitan_function(p);
  if (c.framework == "deepspeed") return deepspeed_config(p);
  if (c.framework == "bridge") return bridge_overrides(p);
  return megatron_arguments(p);
}

/// A layout is the same however its repetitions are written.
std::string letters_of(const std::string& layout) {
  return join(stages_of_layout(layout, [](std::size_t, const std::string& why) { throw InputError(why); }), "|");
}

/// What the scenario of a setup says after every default is filled in.
std::string resolved(TrainingSetup setup, const SetupOptions& options, std::string& file) {
  setup.layout = letters_of(setup.layout);
  file = test::own_file("round_trip.yaml", scenario_yaml(setup, options, "a"));
  return config::to_yaml(load_scenario(file, {}).tree, false);
}

/// "same", or what is refused, or the first lines that differ.
std::string round_trip(const Case& c) {
  try {
    SetupOptions options = options_of(c);
    if (c.framework == "torchtitan-python") options.config = c.text;
    const std::string given = options.config.empty() ? c.text : read_file(kFunctions);
    std::string file;
    const std::string first = resolved(imported(c, given, options), options, file);
    const PlannedExperiment planned = plan_experiment(load_experiment(file, {}));
    const std::string text = exported(c, planned).text;
    options.config.clear();  // What is exported has one function.
    const std::string again = resolved(imported(c, text, options), options, file);
    if (first == again) return "same";
    const std::vector<std::string> a = split(first, '\n'), b = split(again, '\n');
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i)
      if (a[i] != b[i]) return a[i] + " / " + b[i];
    return "one is longer";
  } catch (const InputError& error) {
    return error.problems().front().code + ": " + error.problems().front().message;
  } catch (const Infeasible& error) {
    return error.what();
  }
}

bool has(const Recipe& r, const char* feature) {
  return std::find(r.overlap.begin(), r.overlap.end(), feature) != r.overlap.end();
}

/// The TOML file of torchtitan 0.2.2.
std::string torchtitan_words(const Recipe& r) {
  std::string text = fmt::format("[model]\nname = \"llama3\"\nflavor = \"{}\"\n", r.model == "llama-3-8b"    ? "8B"
                                                                                  : r.model == "llama-3-70b" ? "70B"
                                                                                                             : "405B");
  if (r.precision == "fp8") text += "converters = [\"quantize.linear.float8\"]\n";
  const int local = r.pipeline > 1 ? r.global_batch / r.replicas() : r.micro_batch_size;
  text += fmt::format(
      "[training]\nlocal_batch_size = {}\nseq_len = {}\n[parallelism]\ntensor_parallel_degree = {}\n"
      "context_parallel_degree = {}\npipeline_parallel_degree = {}\n",
      local, r.sequence, r.tensor, r.context, r.pipeline);
  if (r.pipeline > 1)
    text += fmt::format("pipeline_parallel_schedule = \"{}\"\n", r.chunks > 1 ? "Interleaved1F1B" : "1F1B");
  if (has(r, "tensor")) text += "enable_async_tensor_parallel = true\n";
  const std::vector<std::string> mode = split(r.recompute, ' ');
  text += fmt::format("[activation_checkpoint]\nmode = \"{}\"\n", mode.front());
  if (mode.size() > 1) text += fmt::format("selective_ac_option = \"{}\"\n", mode[1]);
  return text + "[compile]\nenable = true\n";
}

/// Every GPU has a node of its own library preset; H100 with HBM2e has no superpod of its own.
Case case_of(const Recipe& r) {
  const bool titan = r.framework == "torchtitan";
  return {r.name, titan ? "torchtitan" : "megatron", r.precision == "nvfp4" ? "b200" : r.chip,
          titan ? torchtitan_words(r) : megatron_words(r), r.devices};
}

}  // namespace

TEST_CASE("published recipes are the same after export and import, and those that break a rule are refused by it") {
  const std::vector<Recipe>& recipes = published_recipes();
  REQUIRE(recipes.size() == 131);
  int same = 0, refused = 0;
  for (const Recipe& r : recipes) {
    if (r.framework == "deepseek") continue;
    CAPTURE(r.name);
    const std::string result = round_trip(case_of(r));
    if (r.broken_rule.empty())
      CHECK(result == "same");
    else
      CHECK(result.starts_with(r.broken_rule + ": "));
    ++(r.broken_rule.empty() ? same : refused);
  }
  CHECK(same == 125);
  CHECK(refused == 5);
}

TEST_CASE("recipes of Megatron-Bridge are the same after export as a recipe with overrides, and import") {
  int count = 0;
  for (const Recipe& r : published_recipes()) {
    const std::string name = split(r.source, ' ').back();
    if (!name.ends_with("_config") || !r.broken_rule.empty()) continue;
    CAPTURE(name);
    Case c = case_of(r);
    c.framework = "bridge", c.text = name;
    CHECK(round_trip(c) == "same");
    ++count;
  }
  CHECK(count > 90);
}

TEST_CASE("a model that no recipe of Megatron-Bridge trains is not exported as one of its size") {
  const PlannedExperiment planned =
      plan_experiment(load_experiment("examples/llama-3-8b-4x8", {"model=llama-2-7b", "software=megatron-core"}));
  CHECK_THROWS_WITH_AS(bridge_overrides(planned), doctest::Contains("trains 'llama-2-7b'"), InputError);
}

// DeepSeek's trainer is not published, and no framework here has its schedule.
TEST_CASE("a recipe with DualPipe is exported to no framework, which says why") {
  const auto& recipes = published_recipes();
  const auto deepseek =
      std::find_if(recipes.begin(), recipes.end(), [](const Recipe& r) { return r.framework == "deepseek"; });
  REQUIRE(deepseek != recipes.end());
  std::vector<std::string> sets = sets_of(*deepseek, deepseek->devices, deepseek->global_batch);
  sets.insert(sets.begin(), {fmt::format("run.global_batch={}", deepseek->global_batch),
                             "model={base: deepseek-v3, override: {sequence: 4096}}",
                             "cluster={base: superpod-h100-256, nodes: 256, override: {type: {preset: h800}}}"});
  const PlannedExperiment planned = plan_experiment(load_experiment("examples/llama-3-8b-4x8", sets));
  CHECK(planned.plan.stages.size() == 32);
  CHECK_THROWS_WITH_AS(megatron_arguments(planned), doctest::Contains("does not run the schedule 'dualpipe'"),
                       InputError);
}

TEST_CASE("configurations written by hand are the same after export and import") {
  int count = 0;
  for (const std::string& line : split(read_file(kCases), '\n')) {
    if (line.empty() || line.starts_with('#')) continue;
    const auto parts = parts_of(line, 4);
    REQUIRE(parts.size() == 4);
    Case c{parts[0], parts[1], parts[0].find("fp4") == std::string::npos ? "h100-sxm" : "b200", parts[3],
           std::stoi(parts[2])};
    if (c.name.find("mxfp8") != std::string::npos) c.chip = "b200";
    if (c.text.starts_with("model.")) std::replace(c.text.begin(), c.text.end(), ' ', '\n');
    CAPTURE(c.name);
    CHECK(round_trip(c) == "same");
    ++count;
  }
  CHECK(count == 65);
}

}  // namespace stagecraft::round_trip_test
