// Reads published configurations of training runs (scenarios/recipes/recipes.csv), and turns one into settings of a
// scenario, for `search` and for the tests of importers.

#include "sim/interchange/recipes.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_shape.hpp"

namespace stagecraft {
namespace {

constexpr int kMostRows = 10'000;

/// One row by the names of its columns.
class RecipeRow {
 public:
  RecipeRow(const std::vector<std::string>& columns, const std::string& line, Where where) : where_(std::move(where)) {
    const std::vector<std::string> values = split(line, ',');
    if (values.size() != columns.size())
      refuse(fmt::format("{} in place of {}", pluralize(std::ssize(values), "value"), columns.size()));
    for (std::size_t i = 0; i < columns.size(); ++i) values_[columns[i]] = std::string(trim(values[i]));
  }

  const std::string& text(const char* column) const {
    const auto entry = values_.find(column);
    if (entry == values_.end()) refuse(fmt::format("there is no column '{}'", column));
    return entry->second;
  }

  int number(const char* column, int fallback, int limit = 1'000'000'000) const {
    std::string_view rest = text(column);
    if (rest.empty()) return fallback;
    const std::optional<int> value = read_number(rest);
    if (!value || !rest.empty() || *value > limit)
      refuse(fmt::format("{}: '{}' is no whole number up to {}", column, text(column), limit));
    return *value;
  }

 private:
  [[noreturn]] void refuse(std::string message) const {
    throw InputError({{where_, {}, std::move(message), "a row has a value for each name of the first line", "recipe"}});
  }

  Where where_;
  std::map<std::string, std::string> values_;
};

Recipe recipe_of(const RecipeRow& row) {
  constexpr int kMostDevices = 1 << 20, kMostOfPlan = 1 << 16;
  Recipe r{.name = row.text("name"), .framework = row.text("framework"), .model = row.text("model")};
  r.layers = row.number("layers", 0), r.hidden = row.number("hidden", 0), r.heads = row.number("heads", 0);
  r.experts = row.number("experts", 0), r.devices = row.number("devices", 1, kMostDevices);
  r.chip = row.text("chip"), r.precision = row.text("precision"), r.sequence = row.number("sequence", 0);
  const auto degree = [&](const char* column) { return std::max(1, row.number(column, 1, kMostOfPlan)); };
  r.tensor = degree("tensor"), r.pipeline = degree("pipeline"), r.chunks = degree("chunks");
  r.context = degree("context"), r.expert = degree("expert"), r.expert_tensor = degree("expert_tensor");
  r.context_type = row.text("context_type");
  r.micro_batch_size = row.number("micro_batch_size", 0), r.global_batch = row.number("global_batch", 0);
  r.layout = row.text("layout"), r.shard = row.text("shard"), r.recompute = row.text("recompute");
  r.dispatcher = row.text("dispatcher"), r.gradient_bytes = row.number("gradient_bytes", 0);
  for (std::string& word : split(row.text("overlap"), ' '))
    if (!word.empty()) r.overlap.push_back(std::move(word));
  r.broken_rule = row.text("accepted") == "yes" ? "" : row.text("accepted");
  r.remarks = row.text("remarks"), r.source = row.text("source");
  return r;
}

bool has_word(const std::string& text, std::string_view word) {
  const std::vector<std::string> words = split(text, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

std::string group_of(const Recipe& r) {
  std::string text;
  const auto add = [&](const char* field, const std::string& value) {
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", field, value);
  };
  if (r.tensor > 1) add("tensor", std::to_string(r.tensor)), add("sequence", "true");
  if (r.context > 1) add("context", std::to_string(r.context));
  if (r.context > 1 && !r.context_type.empty()) add("context_type", r.context_type);
  if (r.expert > 1) add("expert", std::to_string(r.expert));
  if (r.expert_tensor > 1) add("expert_tensor", std::to_string(r.expert_tensor));
  if (r.expert > 1 && r.dispatcher.starts_with("flex")) add("dispatcher", "per_node");
  return text;
}

/// The plan as a setting. Weights that are divided stay between passes with a pipeline.
std::string plan_of(const Recipe& r, int replicas) {
  std::string text = r.layout.empty() ? fmt::format("planner: balanced, stages: {}", r.pipeline * r.chunks)
                                      : fmt::format("planner: layout, layout: \"{}\"", r.layout);
  text += fmt::format(", replicas: {}", replicas);
  if (const std::string group = group_of(r); !group.empty()) text += ", group: {" + group + "}";
  if (!r.shard.empty() && r.shard != "none" && replicas * r.context > 1) text += ", shard: " + r.shard;
  if (const std::string kind = recomputation_of(r); kind != "none") text += ", recompute: " + kind;
  if (const std::string_view block = "full block "; r.recompute.starts_with(block))
    text += ", recompute_layers: " + r.recompute.substr(block.size());
  return fmt::format("{}, micro_batch_size: {}", text, r.micro_batch_size);
}

}  // namespace

std::vector<Recipe> read_recipes(std::string_view text, const std::string& file) {
  std::vector<Recipe> recipes;
  std::vector<std::string> columns;
  int number = 0;
  for (const std::string& line : split(std::string(text), '\n')) {
    ++number;
    if (line.empty() || line.starts_with('#')) continue;
    if (columns.empty()) {
      columns = split(line, ',');
      continue;
    }
    if (number > kMostRows) throw InputError(fmt::format("{} has more than {} lines", file, kMostRows));
    recipes.push_back(recipe_of({columns, line, {file, number, 1}}));
  }
  return recipes;
}

const std::vector<Recipe>& published_recipes() {
  static const std::vector<Recipe> recipes = [] {
    for (const std::string& folder : folders(FileKind::Scenario))
      if (const std::string file = folder + "/recipes/recipes.csv"; std::filesystem::is_regular_file(file))
        return read_recipes(read_file(file), file);
    return std::vector<Recipe>();
  }();
  return recipes;
}

std::string recomputation_of(const Recipe& r) {
  if (r.recompute.starts_with("full")) return "layers";
  if (r.framework == "torchtitan") return r.recompute == "selective op" ? "half" : "none";
  if (has_word(r.recompute, "norms")) return "outputs";  // DeepSeek's own trainer.
  Recomputation modules = Recomputation::None;
  for (const std::string& word : split(r.recompute, ' '))
    if (word != "core_attn") modules = modules | recomputation_module(word).value_or(Recomputation::None);
  return to_text(modules);
}

std::vector<std::string> sets_of(const Recipe& r, int devices, int global_batch) {
  const int group = r.tensor * r.context * r.pipeline, replicas = devices / group;
  if (r.micro_batch_size < 1 || replicas < 1 || devices % group != 0) return {};
  if (global_batch % (r.micro_batch_size * replicas) != 0) return {};
  if (devices / r.pipeline % (r.expert * r.expert_tensor) != 0) return {};
  const std::string schedule = r.framework == "deepseek" ? "dualpipe"
                               : r.chunks > 1            ? fmt::format("{{name: interleaved, chunks: {}}}", r.chunks)
                                                         : "1f1b";
  const auto is_on = [&](const char* feature) {
    return std::find(r.overlap.begin(), r.overlap.end(), feature) != r.overlap.end();
  };
  std::string switches;
  for (const char* feature : {"tensor", "experts"})
    switches += fmt::format("{}{}: {}", switches.empty() ? "" : ", ", feature, is_on(feature));
  return {"plan={" + plan_of(r, replicas) + "}", "run.schedule=" + schedule,
          fmt::format("run.micro_batches={}", global_batch / (r.micro_batch_size * replicas)),
          "software.overlap={" + switches + "}"};
}

}  // namespace stagecraft
