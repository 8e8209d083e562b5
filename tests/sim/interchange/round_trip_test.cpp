// Import, export and import again give the same experiment: for every published recipe (scenarios/recipes/recipes.csv),
// and for configurations written by hand (round_trip_cases.txt).

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include <fmt/core.h>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/interchange/recipes.hpp"
#include "tests/support/files.hpp"

namespace stagecraft::round_trip_test {
namespace {

constexpr const char* kCases = "tests/sim/interchange/round_trip_cases.txt";

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

std::string file_of(const char* name, const std::string& text) {
  const std::string file = (std::filesystem::temp_directory_path() / name).string();
  test::write_file(file, text);
  return file;
}

/// A cluster of these chips, with memory for whatever a recipe needs.
SetupOptions options_of(const Case& c) {
  const int nodes = std::max(1, (c.devices + 7) / 8);
  const std::string base = c.chip.find('b') == std::string::npos ? "superpod-h100-256" : "superpod-b200";
  return {.model = c.framework == "deepspeed" ? "gpt2-small" : "",
          .cluster = file_of("stagecraft_round_trip_cluster.yaml",
                             fmt::format("schema: cluster/1\nbase: {}\noverride: {{nodes: {}, type: {{preset: {}, "
                                         "memory: 10000 GB}}}}\n",
                                         base, nodes, c.chip)),
          .devices = c.devices};
}

TrainingSetup imported(const Case& c, const std::string& text, const SetupOptions& options) {
  if (c.framework == "torchtitan") return read_torchtitan(text, c.name, options);
  if (c.framework == "deepspeed") return read_deepspeed(text, c.name, options);
  return read_megatron(text, c.name, options);
}

FrameworkConfiguration exported(const Case& c, const PlannedExperiment& p) {
  if (c.framework == "torchtitan") return torchtitan_config(p);
  if (c.framework == "deepspeed") return deepspeed_config(p);
  return megatron_arguments(p);
}

/// "Ettt|tt" for "Et*3|t*2" and "E(tt|)*2L": a layout is the same however its repetitions are written.
std::string letters_of(std::string layout) {
  for (std::size_t close = 0; (close = layout.find(')')) != std::string::npos;) {
    const std::size_t open = layout.rfind('(', close);
    const std::string inner = layout.substr(open + 1, close - open - 1);
    std::size_t end = close + 1;
    int times = 1;
    if (end < layout.size() && layout[end] == '*') {
      std::string_view rest = std::string_view(layout).substr(end + 1);
      times = read_number(rest).value_or(1);
      end = layout.size() - rest.size();
    }
    std::string repeated;
    for (int i = 0; i < times; ++i) repeated += inner;
    layout.replace(open, end - open, repeated);
  }
  std::string letters;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout[i] != '*') {
      letters += layout[i];
      continue;
    }
    std::string_view rest = std::string_view(layout).substr(i + 1);
    const int times = read_number(rest).value_or(1);
    letters += std::string(static_cast<std::size_t>(times - 1), layout[i - 1]);
    i = layout.size() - rest.size() - 1;
  }
  return letters;
}

/// What the scenario of a setup says after every default is filled in.
std::string resolved(TrainingSetup setup, const SetupOptions& options, std::string& file) {
  setup.layout = letters_of(setup.layout);
  file = file_of("stagecraft_round_trip.yaml", scenario_yaml(setup, options, "a"));
  return config::to_yaml(load_scenario(file, {}).tree, false);
}

/// "same", or what is refused, or the first lines that differ.
std::string round_trip(const Case& c) {
  try {
    const SetupOptions options = options_of(c);
    std::string file;
    const std::string first = resolved(imported(c, c.text, options), options, file);
    const PlannedExperiment planned = plan_experiment(load_experiment(file, {}));
    const std::string text = exported(c, planned).text;
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

std::map<std::string, std::string> models() {
  std::map<std::string, std::string> list;
  for (const std::string& line : split(read_file(kCases), '\n'))
    if (const auto parts = parts_of(line, 3); parts.size() == 3 && parts[0] == "model") list[parts[1]] = parts[2];
  return list;
}

bool has(const Recipe& r, const char* feature) {
  return std::find(r.overlap.begin(), r.overlap.end(), feature) != r.overlap.end();
}

/// How the layers of a recipe are divided, in the shortest words of Megatron-LM.
std::string division_of(const Recipe& r) {
  if (r.pipeline * r.chunks == 1) return "";
  std::vector<std::ptrdiff_t> counts;
  for (const std::string& stage : split(letters_of(r.layout), '|'))
    counts.push_back(std::count(stage.begin(), stage.end(), 't'));
  const bool alike = std::all_of(counts.begin() + 1, counts.end() - 1, [&](auto n) { return n == counts[1]; });
  const std::string chunks = r.chunks > 1 ? fmt::format(" --num-virtual-stages-per-pipeline-rank {}", r.chunks) : "";
  const bool has_module = r.layout.find('m') != std::string::npos;
  if (!has_module && alike && counts.front() == counts[1] && counts.back() == counts[1]) return chunks;
  if (!has_module && alike && counts.size() > 2 && counts.front() == counts[1] - 1 && counts.back() == counts[1] - 1)
    return " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split" + chunks;
  return fmt::format(" --pipeline-model-parallel-layout '{}'", r.layout);
}

std::string recomputation_words(const Recipe& r) {
  const std::vector<std::string> words = split(r.recompute, ' ');
  if (words.front() == "full")
    return fmt::format(" --recompute-granularity full --recompute-method {} --recompute-num-layers {}", words[1],
                       words[2]);
  if (words.front() != "selective") return "";
  return " --recompute-granularity selective --recompute-modules " + r.recompute.substr(10);
}

std::string expert_words(const Recipe& r) {
  if (r.experts == 0) return "";
  std::string text =
      fmt::format(" --expert-model-parallel-size {} --expert-tensor-parallel-size {}", r.expert, r.expert_tensor);
  const std::vector<std::string> words = split(r.dispatcher, ' ');
  text += " --moe-token-dispatcher-type " + words.front();
  if (words.size() > 1) text += " --moe-flex-dispatcher-backend " + words[1];
  return text;
}

std::string precision_words(const Recipe& r) {
  std::string text = " --bf16";
  if (r.precision == "fp8") text += " --fp8-format hybrid --fp8-recipe tensorwise";
  if (r.precision == "mxfp8") text += " --fp8-format e4m3 --fp8-recipe mxfp8";
  if (r.precision == "nvfp4") text += " --fp4-format e2m1 --fp4-recipe nvfp4";
  return text + (r.gradient_bytes == 2 ? " --grad-reduce-in-bf16" : "");
}

/// Arguments of Megatron-LM, which stand for the unpublished words of Meta too.
std::string megatron_words(const Recipe& r, const std::string& model) {
  std::string text =
      model +
      " --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
      "--attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion";
  if (r.model != "gpt-oss-120b") text += " --disable-bias-linear";
  if (r.layout.find('m') != std::string::npos) text += " --mtp-num-layers 1";
  text += fmt::format(" --seq-length {} --micro-batch-size {} --global-batch-size {}", r.sequence, r.micro_batch_size,
                      r.global_batch);
  text += fmt::format(" --tensor-model-parallel-size {} --pipeline-model-parallel-size {}{}", r.tensor, r.pipeline,
                      division_of(r));
  if (r.tensor > 1) text += " --sequence-parallel";
  if (r.context > 1) text += fmt::format(" --context-parallel-size {}", r.context);
  if (!r.context_type.empty()) text += " --cp-comm-type " + r.context_type;
  text += expert_words(r) + precision_words(r) + recomputation_words(r);
  text += r.shard == "optimizer" ? " --use-distributed-optimizer"
                                 : fmt::format(
                                       " --use-megatron-fsdp --ckpt-format fsdp_dtensor "
                                       "--data-parallel-sharding-strategy {}",
                                       r.shard == "gradients" ? "optim_grads" : "optim_grads_params");
  for (const auto& [feature, option] : {std::pair{"tensor", "tp-comm-overlap"},
                                        {"gradients", "overlap-grad-reduce"},
                                        {"weights", "overlap-param-gather"},
                                        {"experts", "overlap-moe-expert-parallel-comm"},
                                        {"weight_gradients", "delay-wgrad-compute"}})
    if (has(r, feature)) text += fmt::format(" --{}", option);
  if (r.remarks.find("gather in the optimizer step") != std::string::npos)
    text += " --overlap-param-gather-with-optimizer-step";
  if (r.remarks.find("embedding gradients deferred") != std::string::npos) text += " --defer-embedding-wgrad-compute";
  return text;
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
Case case_of(const Recipe& r, const std::map<std::string, std::string>& shapes) {
  const bool titan = r.framework == "torchtitan";
  return {r.name, titan ? "torchtitan" : "megatron", r.precision == "nvfp4" ? "b200" : r.chip,
          titan ? torchtitan_words(r) : megatron_words(r, shapes.at(r.model)), r.devices};
}

}  // namespace

TEST_CASE("published recipes are the same after export and import, and those that break a rule are refused by it") {
  const std::vector<Recipe>& recipes = published_recipes();
  REQUIRE(recipes.size() == 131);
  const std::map<std::string, std::string> shapes = models();
  int same = 0, refused = 0;
  for (const Recipe& r : recipes) {
    if (r.framework == "deepseek") continue;
    CAPTURE(r.name);
    const std::string result = round_trip(case_of(r, shapes));
    if (r.broken_rule.empty())
      CHECK(result == "same");
    else
      CHECK(result.starts_with(r.broken_rule + ": "));
    ++(r.broken_rule.empty() ? same : refused);
  }
  CHECK(same == 125);
  CHECK(refused == 5);
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
    if (line.empty() || line.starts_with('#') || line.starts_with("model | ")) continue;
    const auto parts = parts_of(line, 4);
    REQUIRE(parts.size() == 4);
    Case c{parts[0], parts[1], parts[0].find("fp4") == std::string::npos ? "h100-sxm" : "b200", parts[3],
           std::stoi(parts[2])};
    if (c.name == "mxfp8") c.chip = "b200";
    if (c.text.starts_with("model.")) std::replace(c.text.begin(), c.text.end(), ' ', '\n');
    CAPTURE(c.name);
    CHECK(round_trip(c) == "same");
    ++count;
  }
  CHECK(count == 30);
}

}  // namespace stagecraft::round_trip_test
