// Reads the files of scenarios/predictions: published runs whose iteration was measured.

#include "sim/published/predictions.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_shape.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft {
namespace {

using config::Dimension;
using config::MapSpec;
using config::Problems;
using config::Value;

const MapSpec& latent_fields() {
  static const MapSpec spec{.title = "Multi-head latent attention.",
                            .fields = {config::integer("query", 0, 1e6).doc("Rank of queries; 0 if not compressed."),
                                       config::integer("key", 1, 1e6).doc("Rank of keys and values."),
                                       config::integer("rope", 0, 1e6).doc("Numbers of a head that are rotated."),
                                       config::integer("nope", 0, 1e6).doc("Numbers of a head that are not."),
                                       config::integer("value", 1, 1e6).doc("Numbers of a head of values.")}};
  return spec;
}

const MapSpec& expert_fields() {
  static const MapSpec spec{
      .title = "Experts of a layer.",
      .fields = {config::integer("count", 1, 1e6).doc("Routed experts."),
                 config::integer("active", 1, 1e6).doc("Routed experts of a token."),
                 config::integer("width", 1, 1e7).doc("Inner width of a routed expert."),
                 config::integer("shared", 0, 1e7).fallback("0").doc("Inner width of all shared experts together."),
                 config::integer("dense_layers", 0, 1e6).fallback("0").doc("First layers without experts.")}};
  return spec;
}

std::vector<config::Field> shape_fields() {
  using namespace config;
  return {integer("layers", 1, 1e6).doc("Layers."),
          integer("hidden", 1, 1e7).doc("Width."),
          integer("heads", 1, 1e6).doc("Attention heads."),
          integer("key_value_heads", 0, 1e6).fallback("0").doc("Heads of keys and values; 0: as many as heads."),
          integer("width", 0, 1e8).fallback("0").doc("Inner width of the feed-forward; 0: four times the width."),
          boolean("gated").fallback("false").doc("The feed-forward has a gate."),
          boolean("bias").fallback("false").doc("Products have biases although the feed-forward has a gate."),
          integer("vocabulary", 1, 1e8).doc("Words."),
          boolean("tied").fallback("true").doc("Embedding and head share their weights."),
          integer("head_width", 0, 1e6).fallback("0").doc("Numbers of a head; 0: the width over the heads."),
          boolean("query_key_norm").fallback("false").doc("Queries and keys of each head are normalized."),
          integer("window", 0, 1e8).fallback("0").doc("Tokens that every second layer looks back on; 0: all."),
          integer("next_tokens", 0, 100).fallback("0").doc("Modules that predict a token after the next."),
          map("latent", latent_fields()).optional().doc("Multi-head latent attention."),
          map("experts", expert_fields()).optional().doc("Routed experts.")};
}

std::vector<config::Field> division_fields() {
  using namespace config;
  return {
      integer("tensor", 1, 1e5).fallback("1").doc("Tensor-parallel degree."),
      boolean("sequence_parallel").fallback("false").doc("Norms and sums are divided by tokens."),
      integer("context", 1, 1e5).fallback("1").doc("Context-parallel degree."),
      integer("expert", 1, 1e5).fallback("1").doc("Expert-parallel degree."),
      integer("expert_tensor", 0, 1e5)
          .fallback("0")
          .doc("Devices that divide each expert; 0: as the framework does by default."),
      integer("stages", 1, 1e5).fallback("1").doc("Pipeline stages."),
      integer("chunks", 1, 1e3).fallback("1").doc("Chunks of each stage; above 1 the schedule is interleaved."),
      integer("replicas", 1, 1e6).fallback("1").doc("Data-parallel degree."),
      choice("shard", {"none", "optimizer", "gradients", "weights"}).fallback("none").doc("What replicas divide."),
      integer("shard_within", 0, 1e6).fallback("0").doc("Devices that divide it; 0: all replicas and context ranks."),
      boolean("ends_count").fallback("false").doc("Embedding and head count as a layer each."),
      integer("first_chunk", -1, 1e6).fallback("-1").doc("Layers of the first chunk, by a layout; -1: by a rule."),
      integer("last_chunk", -1, 1e6).fallback("-1").doc("Layers of the last chunk, by a layout; -1: by a rule."),
      boolean("whole_graphs").fallback("false").doc("One CUDA graph has the whole iteration."),
      dispatcher_field(),
      integer("micro_batch", 1, 1e6).doc("Samples of a micro-batch of one replica."),
      integer("micro_batches", 1, 1e7).doc("Micro-batches of one replica in an iteration."),
      choice("recompute", {"none", "selective", "half", "full"})
          .fallback("none")
          .doc("What backward recomputes; a list has modules, by the names of Megatron-LM.")
          .or_list_of(recomputation_modules())};
}

/// Fields that replace a member of the software stack in one run.
std::vector<config::Field> override_fields() {
  using namespace config;
  return {text("release").optional().doc("Release of the software, where facts of releases are known."),
          choice("attention", attention_words).optional().doc("How attention runs."),
          real("launch", 0, 1).optional().doc("Seconds of the host for each kernel."),
          real("fsdp_overlap", 0, 1).optional().doc("Share of what divided weights exchange that a pass hides."),
          real("tensor_overlap", 0, 1).optional().doc("Share of tensor collectives that is hidden."),
          real("expert_overlap", 0, 1).optional().doc("Share of the exchanges of experts that is hidden."),
          real("data_overlap", 0, 1).optional().doc("Share of the reduction of gradients that is hidden."),
          real("norm_traffic", 1, 100).optional().doc("Bytes of norms as a multiple of one fused kernel's."),
          boolean("fused_loss").optional().doc("Whether the loss is one kernel for each pass."),
          real("gradient_bytes", 1, 8).optional().doc("Bytes of each gradient that replicas sum."),
          real("gradient_copy_bytes", 0, 8).optional().doc("Bytes of each further copy of a gradient.")};
}

const MapSpec& run_fields() {
  static const MapSpec spec = [] {
    using namespace config;
    MapSpec run_spec{.title = "One measured run.", .fields = {}};
    const auto add = [&](std::vector<Field> fields) {
      run_spec.fields.insert(run_spec.fields.end(), fields.begin(), fields.end());
    };
    add({text("name").fallback("\"\"").doc("What distinguishes the run."),
         text("device").doc("Device type: a file of topologies/devices."),
         choice("software", software_stack_names).doc("Software stack."),
         choice("format", number_format_names).doc("Number format of matrix products."),
         quantity("card", Dimension::Bandwidth).doc("Rate of one network card for each device."),
         integer("sequence", 1, 1e9).doc("Tokens of a sample.")});
    add(shape_fields());
    add(division_fields());
    add(override_fields());
    add({real("seconds", 1e-9, 1e9).doc("Measured time of an iteration."),
         real("memory", 0, 1e6).fallback("0").doc("Measured memory of the fullest device in GiB; 0: not published."),
         boolean("whole_process").fallback("false").doc("The memory is that of nvidia-smi, not of an allocator."),
         real("workspaces", 0, 1e6).fallback("0").doc("MiB that the allocator holds for products of cuBLAS.")});
    return run_spec;
  }();
  return spec;
}

/// Adds the members of `from` to a map, replacing those that are there.
void put_all(Value& map, const std::vector<config::Member>& from) {
  for (const config::Member& m : from) {
    Value* old = map.find(m.key);
    if (old)
      *old = m.value;
    else
      map.members.push_back(m);
  }
}

/// The map of one row: what all rows have, its model, and its columns.
Value row_map(const Value& root, const Value& row, Problems& problems) {
  Value map;
  map.kind = Value::Kind::Map;
  map.where = row.where;
  const std::vector<Value>& columns = root.at("columns").items;
  if (row.items.size() != columns.size()) {
    problems.add(
        row.where, "rows",
        fmt::format("{} for {}", pluralize(std::ssize(row.items), "value"), pluralize(std::ssize(columns), "column")),
        "write one for each column", "wrong-count");
    return map;
  }
  put_all(map, root.at("run").members);
  std::vector<config::Member> cells;
  for (std::size_t i = 0; i < columns.size(); ++i) cells.push_back({columns[i].text, row.where, row.items[i]});
  put_all(map, cells);
  const Value* model = map.find("model");
  if (!model) return map;
  const Value* models = root.find("models");
  const Value* shape = models ? models->find(model->text) : nullptr;
  if (!shape)
    problems.add(model->where, "rows", fmt::format("there is no model '{}'", model->text),
                 "add it under models:", "reference");
  else
    put_all(map, shape->members);
  std::erase_if(map.members, [](const config::Member& m) { return m.key == "model"; });
  return map;
}

/// What is measured, and what a run is called: the scenario does not depend on these fields.
constexpr const char* kMeasuredFields[] = {"name", "seconds", "memory", "whole_process", "workspaces"};

MeasuredRun read_run(Value map) {
  MeasuredRun m;
  m.name = map.at("name").text;
  m.device = map.at("device").text;
  m.format = *parse_number_format(map.at("format").text);
  m.measured = Seconds{config::as_real(map.at("seconds"))};
  m.whole_process = config::as_bool(map.at("whole_process"));
  m.memory = Bytes{config::as_real(map.at("memory")) * 0x1p30};
  m.workspaces = Bytes{config::as_real(map.at("workspaces")) * 0x1p20};
  for (const char* field : kMeasuredFields)
    std::erase_if(map.members, [&](const config::Member& member) { return member.key == field; });
  m.row = std::move(map);
  return m;
}

}  // namespace

int MeasuredRun::count(const char* field) const { return config::as_int(row.at(field)); }

int MeasuredRun::devices() const { return count("stages") * count("tensor") * count("context") * count("replicas"); }

Bytes MeasuredRun::process_memory() const {
  if (!whole_process) return workspaces;
  const int tensor = count("tensor"), stages = count("stages"), neighbors = std::min(2, stages - 1);
  double mebibytes = 544.0 * neighbors;
  for (const int ranks : {tensor, count("replicas") * count("context"), tensor * stages})
    if (ranks > 1) mebibytes += ranks == 2 ? 544 : 688;
  return workspaces + Bytes{mebibytes * 0x1p20};
}

const MapSpec& prediction_fields() {
  using namespace config;
  static const MapSpec spec{
      .title = "Measured iterations of one publication, which simulations predict.",
      .fields = {
          choice("schema", {"predictions/1"}).doc("Kind and version of the file."),
          text("title").doc("Title for people."), text("source").doc("Authors, title, where and when."),
          text("calibration").doc("Which constants of the model were fitted to these rows."),
          text("peers").fallback("\"\"").doc("Errors that other simulators publish for runs of this source."),
          choice("ablation", {"none", "large", "small"})
              .fallback("none")
              .doc("Accepted and ignored: groups of runs by which terms of a formula were judged that is gone."),
          table("run", any("value")).doc("Fields that all rows have."),
          table("models", table("shape", any("value"))).optional().doc("Shapes that rows name as `model`."),
          list("columns", text("field")).positional().doc("The fields of each row."),
          list("rows", list("row", any("value")).positional()).positional().doc("Values of the columns, a run each.")}};
  return spec;
}

namespace {

constexpr double kMostDevices = 1e8;

void check_division(const Value& row, const Value& map, Problems& problems) {
  const int first = config::as_int(map.at("first_chunk")), last = config::as_int(map.at("last_chunk"));
  const int between = config::as_int(map.at("layers")) - first - last;
  const int chunks = config::as_int(map.at("stages")) * config::as_int(map.at("chunks")) - 2;
  if (first >= 0 && last >= 0 && (chunks < 0 || between < 0 || (chunks == 0 ? between > 0 : between % chunks != 0)))
    problems.add(
        row.where, "rows",
        fmt::format("{} cannot be divided into {}", pluralize(between, "layer"), pluralize(chunks, "equal chunk")),
        "the first and the last chunk, and equal ones between them, have all layers", "layout");
  double devices = 1;
  for (const char* axis : {"tensor", "context", "replicas", "stages"}) devices *= config::as_real(map.at(axis));
  if (devices > kMostDevices)
    problems.add(row.where, "rows", fmt::format("{:.3g} devices are beyond any machine", devices), {}, "range");
}

}  // namespace

PredictionSet read_predictions(const Value& root) {
  PredictionSet set;
  set.title = root.at("title").text;
  set.source = root.at("source").text;
  set.calibration = root.at("calibration").text;
  set.peers = root.at("peers").text;
  for (const Value& row : root.at("rows").items) {
    Problems problems;
    Value map = row_map(root, row, problems);
    problems.throw_if_any();
    map = config::check(map, run_fields(), "rows", problems);
    if (problems.empty()) check_division(row, map, problems);
    problems.throw_if_any();
    set.runs.push_back(read_run(std::move(map)));
  }
  return set;
}

PredictionSet load_predictions(const std::string& given) {
  const std::string named = find_file(FileKind::Predictions, given, "");
  if (named.empty() && !std::filesystem::exists(given))
    throw InputError("there is no file '" + given + "' of measured runs",
                     suggest_file(FileKind::Predictions, given, ""));
  const std::string file = named.empty() ? given : named;
  Problems problems;
  Value root = config::parse_yaml_file(file, problems);
  problems.throw_if_any();
  root = config::check(root, prediction_fields(), "", problems);
  problems.throw_if_any();
  PredictionSet set = read_predictions(root);
  set.name = std::filesystem::path(file).stem().string();
  return set;
}

std::vector<PredictionSet> load_all_predictions() {
  std::vector<PredictionSet> sets;
  for (const NamedFile& file : named_files(FileKind::Predictions)) sets.push_back(load_predictions(file.path));
  return sets;
}

}  // namespace stagecraft
