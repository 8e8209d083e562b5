// Forty command lines of published training runs (megatron_recipes.txt): each is read, and every option is in a note.

#include <doctest/doctest.h>

#include <fmt/core.h>

#include <algorithm>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/frameworks.hpp"
#include "sim/interchange/imports/shell_words.hpp"
#include "sim/interchange/imports/training_setup.hpp"

namespace stagecraft::megatron_recipes_test {
namespace {

constexpr int kRecipes = 40;

struct Recipe {
  std::string name;
  int devices = 0;
  std::string degrees;  ///< Tensor, context, ranks, chunks and expert.
  std::string text;     ///< The variables of the file, then the arguments.
};

std::string trimmed(const std::string& text) {
  const auto from = text.find_first_not_of(' '), to = text.find_last_not_of(' ');
  return from == std::string::npos ? "" : text.substr(from, to - from + 1);
}

std::vector<Recipe> recipes() {
  std::string variables;
  std::vector<Recipe> list;
  for (const std::string& line : split(read_file("tests/sim/interchange/megatron_recipes.txt"), '\n')) {
    if (!line.starts_with("== ")) {
      (list.empty() ? variables : list.back().text) += line + "\n";
      continue;
    }
    const std::vector<std::string> parts = split(line.substr(3), '|');
    REQUIRE(parts.size() == 4);
    list.push_back({trimmed(parts[0]), std::stoi(parts[2]), trimmed(parts[3]), variables});
  }
  return list;
}

SetupOptions options_of(const Recipe& recipe) {
  // Recipes without a vocabulary have that of GPT-2, padded.
  const bool names_one =
      recipe.text.find("vocab-size ") != std::string::npos || recipe.text.find("$BLOOM") != std::string::npos;
  return {"", "superpod-h100-256", recipe.devices, names_one ? 0 : 51200};
}

/// Options of a text after variables are replaced, without values.
std::vector<std::string> options_in(const std::string& text) {
  std::vector<std::string> names;
  for (const ShellCommand& command : read_shell(text).commands)
    for (const ShellWord& word : command)
      if (word.text.starts_with("--")) names.push_back(word.text.substr(0, word.text.find_first_of(" =\n")));
  return names;
}

/// Whether one of the notes has the whole option.
bool is_listed(const std::vector<std::string>& notes, const std::string& option) {
  for (const std::string& note : notes)
    for (std::size_t at = note.find(option); at != std::string::npos; at = note.find(option, at + 1)) {
      const std::size_t end = at + option.size();
      if (end == note.size() || note[end] == ' ' || note[end] == ',' || note[end] == ';') return true;
    }
  return false;
}

PlannedExperiment planned(const std::vector<std::string>& sets) {
  return plan_experiment(load_experiment("examples/llama-3-8b-4x8", sets));
}

}  // namespace

TEST_CASE("forty published command lines are read, and every option of them is in a note") {
  const std::vector<Recipe> list = recipes();
  CHECK(list.size() == kRecipes);
  int with_buckets = 0;
  for (const Recipe& recipe : list) {
    CAPTURE(recipe.name);
    TrainingSetup s;
    try {
      s = read_megatron(recipe.text, recipe.name, options_of(recipe));
    } catch (const InputError& error) {
      FAIL_CHECK(render(error.problems()));
      continue;
    }
    CHECK(fmt::format("{} {} {} {} {}", s.tensor, s.context, s.ranks, s.chunks, s.expert) == recipe.degrees);
    const std::vector<std::string> notes = notes_of(s);
    // What Megatron-FSDP sums after each backward stays whole.
    const bool overlaps = is_listed(options_in(recipe.text), "--overlap-grad-reduce");
    CHECK(s.gradient_buckets == (overlaps && s.shard != "weights" ? "software" : ""));
    with_buckets += !s.gradient_buckets.empty();
    for (const std::string& option : options_in(recipe.text)) {
      CAPTURE(option);
      CHECK(is_listed(notes, option));
    }
    config::Problems problems;
    static_cast<void>(config::parse_yaml(scenario_yaml(s, options_of(recipe), recipe.name), recipe.name, problems));
    CHECK(problems.empty());
  }
  CHECK(with_buckets == 12);
}

TEST_CASE("shapes and divisions that recipes write in more than one option") {
  const auto setup_of = [](const std::string& name) {
    for (const Recipe& recipe : recipes())
      if (recipe.name == name) return read_megatron(recipe.text, name, options_of(recipe));
    FAIL("there is no such recipe");
    return TrainingSetup();
  };
  const auto field = [](const TrainingSetup& s, const std::string& name) -> std::string {
    for (const auto& [key, value] : s.model)
      if (key == name) return value;
    return "";
  };
  const TrainingSetup deepseek = setup_of("bridge-deepseek-v3-gb300");  // The fields of models/deepseek-v3.yaml.
  CHECK(field(deepseek, "latent") == "{query: 1536, key_value: 512, rope: 64, nope: 128, value: 128}");
  CHECK(field(deepseek, "experts") == "{count: 256, active: 8, width: 2048, shared: 1, first_dense: 3}");
  CHECK(field(deepseek, "next_tokens") == "1");
  CHECK(deepseek.precision == "mxfp8");
  // 126 layers, embedding and loss on 8 ranks with 8 chunks are two for each of 64 stages.
  const std::string layout = setup_of("bridge-llama3.1-405b-h100").layout;
  CHECK(layout.starts_with("Et|t*2|t*2|"));
  CHECK(layout.ends_with("|t*2|tL"));
  CHECK(std::count(layout.begin(), layout.end(), '|') == 63);
  CHECK(setup_of("gpt3-uneven").layout == "Et*2|t*4|t*4|t*2L");  // Two first, two last, eight on the two between.
  const TrainingSetup bloom = setup_of("bloom-176b");
  CHECK(field(bloom, "positions") == "none");  // ALiBi.
  CHECK(field(bloom, "vocabulary") == "250880");
  CHECK(bloom.recompute == "layers");
  CHECK(is_listed(bloom.unmodeled, "--rampup-batch-size 192 16 9_765_625"));
  CHECK(setup_of("sc21-figure-17-no").recompute.empty());
  CHECK(setup_of("sc21-figure-17-yes").recompute == "layers");
  CHECK(setup_of("bridge-llama3-8b-h100").shard == "weights");
  CHECK(is_listed(setup_of("deepseek-v3-layout").unmodeled, "--fp8-recipe blockwise"));
}

TEST_CASE("layouts of recipes are the same after export and import") {
  const std::string shape =
      "--hidden-size 1024 --num-attention-heads 16 --seq-length 1024 --vocab-size 50304 "
      "--micro-batch-size 1 --global-batch-size 96 --bf16 --untie-embeddings-and-output-weights ";
  const SetupOptions machines{"", "superpod-h100-256", 8, 0};
  for (const auto& [layers, ranks, layout] : {std::tuple{12, 4, "Et*2|t*4|t*4|t*2L"},
                                              {43, 4, "Et*11|t*11|t*11|t*10L"},
                                              {45, 4, "Et|(tt|)*22L"},
                                              {61, 8, "Et*2|(tt|)*22t|(tt|)*7L"}}) {
    const std::string name = layout;  // clang 14 captures no structured binding.
    CAPTURE(name);
    const auto plan_of = [&](const std::string& arguments) {
      const TrainingSetup setup = read_megatron(arguments, "arguments", machines);
      std::string fields;
      for (const auto& [key, value] : setup.model) fields += fmt::format(", {}: {}", key, value);
      return planned(
          {"model={builder: transformer, kind: gpt" + fields + ", precision: mixed}", "cluster=superpod-h100-256",
           "plan={planner: layout, layout: \"" + setup.layout + "\", replicas: 1}",
           fmt::format("run={{schedule: {}, micro_batches: 8}}",
                       setup.chunks > 1 ? fmt::format("{{name: interleaved, chunks: {}}}", setup.chunks) : "1f1b")});
    };
    const PlannedExperiment first = plan_of(shape + fmt::format("--num-layers {} --pipeline-model-parallel-size {} "
                                                                "--pipeline-model-parallel-layout \"{}\"",
                                                                layers, ranks, layout));
    const std::string arguments = megatron_arguments(first).text;
    const PlannedExperiment again = plan_of(arguments);
    CHECK(megatron_arguments(again).text == arguments);
    REQUIRE(again.plan.stages.size() == first.plan.stages.size());
    for (const StageId s : first.plan.stages.ids())
      CHECK(again.plan.stage(s).shape.layers == first.plan.stage(s).shape.layers);
  }
}

TEST_CASE("divisions that cannot be and models that are no GPT are refused") {
  const auto refusal = [](const std::string& text) -> std::string {
    try {
      read_megatron(text, "a.sh", {"", "superpod-h100-256", 8, 51200});
    } catch (const InputError& error) {
      return render(error.problems());
    }
    return "read";
  };
  const std::string shape =
      "--num-layers 12 --hidden-size 512 --num-attention-heads 8 --seq-length 128 "
      "--pipeline-model-parallel-size 4 ";
  CHECK(refusal(shape) == "read");
  CHECK(refusal(shape + "--decoder-first-pipeline-num-layers 2").find("12 layers cannot be divided so on 4 ranks") !=
        std::string::npos);
  CHECK(refusal(shape + "--decoder-first-pipeline-num-layers 3") == "read");
  CHECK(refusal(shape + "--decoder-first-pipeline-num-layers 3 --num-virtual-stages-per-pipeline-rank 2")
            .find("12 layers cannot be divided so on 4 ranks of 2 chunks") != std::string::npos);
  CHECK(refusal(shape + "--account-for-loss-in-pipeline-split").find("cannot be divided so") != std::string::npos);
  // Two, four, four and six layers a rank; each of its two chunks has half of them.
  const std::string uneven =
      shape + "--decoder-first-pipeline-num-layers 2 --decoder-last-pipeline-num-layers 6 --num-layers 16 ";
  CHECK(read_megatron(uneven + "--num-virtual-stages-per-pipeline-rank 2", "a.sh", {"", "superpod-h100-256", 8, 51200})
            .layout == "Et|t*2|t*2|t*3|t|t*2|t*2|t*3L");
  CHECK(refusal("torchrun pretrain_bert.py " + shape).find("only GPT is read") != std::string::npos);
}

}  // namespace stagecraft::megatron_recipes_test
