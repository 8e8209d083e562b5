// The planner `explicit`: the stages as the scenario lists them, with their layers and devices. Nothing is searched;
// everything is checked.

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "sim/core/text.hpp"
#include "sim/planners/shared/group.hpp"
#include "sim/planners/shared/planner.hpp"

namespace stagecraft::planners {
namespace {

using config::Value;

const config::MapSpec& stage_fields() {
  static const config::MapSpec spec{
      "One stage: a convex part of the model and the devices that run it.",
      {config::text("name").optional().doc("Name of the stage in reports. Default: s and its number."),
       config::list("layers", config::text("layer"))
           .doc("Names of layers, or ranges `first..last` in the order of the model."),
       config::text("device").optional().doc("The device that runs it."),
       config::list("devices", config::text("device"))
           .optional()
           .doc("Several devices, one for each replica, instead of `device`."),
       share_field(),
       config::integer("micro_batch_size", 1, 1e6).fallback("1").doc("Samples of one micro-batch on this stage."),
       config::integer("consecutive", 1, 1e6)
           .fallback("1")
           .doc("k of kFkB: number of consecutive forwards, and of consecutive backwards. A number in `group` means "
                "this "
                "too, as it used to."),
       recompute_field(false, true), device_group_field(), shard_field(),
       config::integer("replicas", 1, 1e6)
           .optional()
           .doc("Replicas of the stage, to check its list of devices. Default: as many as the devices make groups.")}};
  return spec;
}

const config::MapSpec kExplicitStagesFields{
    "Stages written out by hand.",
    {config::list("stages", config::map("stage", stage_fields())).doc("The stages. Every layer is in exactly one."),
     device_group_field(), shard_field(),
     config::boolean("sequential").fallback("false").doc("Whether parallel branches run one after the other.")}};

struct WrittenStage {
  std::optional<std::string> name;
  Value layers;  ///< Names of layers, or ranges of layers.
  std::vector<DeviceId> devices;
  Share share = Share::Samples;
  int micro_batch_size = 1, consecutive = 1;
  std::optional<int> replicas;
  bool has_group = false, has_shard = false;
  PlanSpec division;  ///< Its group and its sharding, where it has them.
  std::optional<Recomputation> recompute;
  Where where, recompute_where;
};

struct ExplicitStagesOptions {
  std::vector<WrittenStage> stages;
  config::Problems problems;  ///< Problems of the devices, which are thrown together with problems of the layers.
};

WrittenStage read_stage(const Value& value, const std::string& path, const Cluster& cluster,
                        config::Problems& problems) {
  WrittenStage stage;
  stage.where = value.where;
  if (const Value* name = value.find("name")) stage.name = name->text;
  stage.layers = value.at("layers");
  const Value *device = value.find("device"), *devices = value.find("devices");
  if ((device == nullptr) == (devices == nullptr))
    problems.add(value.where, path, device ? "device and devices are both given" : "the stage has no device",
                 "write `device: name`, or `devices: [a, b]` for replicas", "devices");
  if (device) stage.devices = read_devices(*device, cluster, path + ".device", problems);
  if (devices && !device) stage.devices = read_devices(*devices, cluster, path + ".devices", problems);
  stage.share = parse_share(value.at("share").text);
  stage.micro_batch_size = config::as_int(value.at("micro_batch_size"));
  stage.consecutive = config::as_int(value.at("consecutive"));
  if (const Value* replicas = value.find("replicas")) stage.replicas = config::as_int(*replicas);
  if (const Value* group = value.find("group")) stage.has_group = true, read_group(*group, stage.division);
  if (const Value* shard = value.find("shard")) stage.has_shard = true, read_sharding(*shard, stage.division);
  stage.division.source = std::make_shared<const Value>(value);
  stage.recompute = read_recomputation(value.at("recompute"));
  stage.recompute_where = value.at("recompute").where;
  return stage;
}

PlannerOptions read_explicit_stages_options(const Value& checked, const Cluster& cluster) {
  auto read = std::make_shared<ExplicitStagesOptions>();
  if (const Value* stages = checked.find("stages"))
    for (std::size_t s = 0; s < stages->items.size(); ++s)
      read->stages.push_back(read_stage(stages->items[s], fmt::format("stages[{}]", s), cluster, read->problems));
  return read;
}

class Reader {
 public:
  explicit Reader(const PlannerInput& input)
      : input_(input),
        options_(input.options.options<ExplicitStagesOptions>()),
        problems_(options_.problems),
        owner_(input.model.layers.size(), -1) {
    for (const LayerId i : input.model.layers.ids()) {
      names_.push_back(input.model.layers[i].name);
      index_.emplace(names_.back(), i.value);
    }
  }

  Plan read() {
    const std::vector<WrittenStage>& stages = options_.stages;
    for (std::size_t s = 0; s < stages.size(); ++s) add_stage(stages[s], fmt::format("stages[{}]", s));
    const Where where = input_.options.where("stages");
    if (stages.empty()) problems_.add(where, "stages", "there is no stage", {}, "stages");
    check_all_placed(where);
    problems_.throw_if_any();
    check_convex();
    problems_.throw_if_any();
    return std::move(plan_);
  }

 private:
  void add_stage(const WrittenStage& written, const std::string& path) {
    Stage stage;
    stage.name = written.name.value_or(fmt::format("s{}", plan_.stage_count()));
    if (!stage_names_.insert(stage.name).second)
      problems_.add(written.where, path, fmt::format("another stage is called '{}' too", stage.name), {}, "duplicate");
    for (std::size_t i = 0; i < written.layers.items.size(); ++i)
      add_layers(written.layers.items[i], fmt::format("{}.layers[{}]", path, i), stage);
    if (written.layers.items.empty())
      problems_.add(written.layers.where, path + ".layers", "the stage has no layers", {}, "layers");
    place(written, path, stage);
    stage.share = written.share;
    stage.micro_batch_size = written.micro_batch_size;
    if (stage.share == Share::Samples) stage.micro_batch_size *= stage.replicas();
    stage.group = written.consecutive;
    stage.shape.recomputation = recomputations(written.recompute, written.recompute_where, input_.model).front();
    plan_.stages.push_back(std::move(stage));
  }

  /// How the stage is divided: as it says, or else as the plan says.
  PlanSpec division_of(const WrittenStage& written) const {
    const PlanSpec& plan = input_.options;
    PlanSpec division = written.division;
    if (!written.has_group) {
      division.group = plan.group;
      division.order = plan.order;
      division.within_node = plan.within_node;
      division.exchange = plan.exchange;
      division.dispatcher = plan.dispatcher;
      division.overlaps_shared = plan.overlaps_shared;
    }
    if (!written.has_shard) {
      division.sharding = plan.sharding;
      division.shard_within = plan.shard_within;
      division.reshard = plan.reshard;
    }
    return division;
  }

  void place(const WrittenStage& written, const std::string& path, Stage& stage) {
    PlanSpec division = division_of(written);
    const int count = static_cast<int>(std::ssize(written.devices)), group = division.group.group();
    division.replicas = std::max(1, count / group);
    const std::vector<LayerId> layers = std::move(stage.shape.layers);
    stage.shape = division.shape(static_cast<int>(std::ssize(options_.stages)));
    stage.shape.layers = layers;
    stage.shape.degrees.pipeline = 1;  // The stage lists its devices.
    stage.divides_itself = written.has_group || written.has_shard;
    if (count % group != 0)
      return problems_.add(written.where, path + ".devices",
                           fmt::format("{} cannot be divided into groups of {}", pluralize(count, "device"), group),
                           fmt::format("list a multiple of {}", group), "group");
    if (written.replicas && *written.replicas * group != count)
      problems_.add(written.where, path + ".replicas",
                    fmt::format("{} in groups of {} make {}, not {}", pluralize(count, "device"), group,
                                pluralize(count / group, "replica"), *written.replicas),
                    fmt::format("list {}", pluralize(std::int64_t{*written.replicas} * group, "device")), "replicas");
    stage.place_on(written.devices);
    if (stage.divides_itself && count > 0) check_own_group(input_, stage, division, path);
    check_nodes(written, path, stage);
  }

  /// Costs take it that groups fill nodes as the order of ranks says; a list of devices may say otherwise.
  void check_nodes(const WrittenStage& written, const std::string& path, const Stage& stage) {
    const CostRules& rules = input_.costs.rules();
    if (!rules.software.prices) return;
    const Degrees& d = stage.shape.degrees;
    const std::pair<Axis, GroupShape> expected[] = {{Axis::Tensor, tensor_group(d, rules.node)},
                                                    {Axis::Context, context_group(d, rules.node)}};
    for (const auto& [axis, shape] : expected)
      for (const std::vector<DeviceId>& group : stage.dense.groups({axis})) {
        const int fullest = most_on_a_node(group, input_.cluster);
        if (fullest >= shape.local()) continue;
        problems_.add(
            written.where, path + ".devices",
            fmt::format("the {} group of {} has {} on a node, and costs count {}",
                        axis == Axis::Tensor ? "tensor" : "context", input_.cluster.devices[group.front()].name,
                        pluralize(fullest, "device"), shape.local()),
            "list the devices node by node, with the order of ranks in group.order", "group");
        return;
      }
  }

  void add_layers(const Value& name, const std::string& path, Stage& stage) {
    const std::string& text = name.text;
    const std::size_t dots = text.find("..");
    const int whole = dots == std::string::npos ? look_up(text, name.where, path) : -1;
    const int first = dots == std::string::npos ? whole : look_up(text.substr(0, dots), name.where, path);
    const int last = dots == std::string::npos ? whole : look_up(text.substr(dots + 2), name.where, path);
    if (first < 0 || last < 0) return;
    if (last < first)
      problems_.add(name.where, path, fmt::format("'{}' comes after '{}' in the model", names_[first], names_[last]),
                    fmt::format("write {}..{}", names_[last], names_[first]), "range");
    for (int layer = first; layer <= last; ++layer) take(layer, name.where, path, stage);
  }

  void take(int layer, const Where& place, const std::string& path, Stage& stage) {
    int& owner = owner_[layer];
    if (owner >= 0) {
      const bool same = owner == plan_.stage_count();
      const std::string where = same ? "this stage" : fmt::format("stage '{}'", plan_.stages[StageId{owner}].name);
      problems_.add(place, path, fmt::format("layer '{}' is already in {}", names_[layer], where),
                    "every layer is in exactly one stage", "layer-twice");
      return;
    }
    owner = plan_.stage_count();
    stage.shape.layers.push_back(LayerId{layer});
  }

  int look_up(const std::string& name, const Where& where, const std::string& path) {
    const auto it = index_.find(std::string(trim(name)));
    if (it != index_.end()) return it->second;
    std::string help = suggest(name, names_);
    if (help.empty())
      help = fmt::format("they are called {} to {}; stagecraft show FILE --what model lists them", names_.front(),
                         names_.back());
    problems_.add(where, path, fmt::format("the model has no layer '{}'", name), help, "unknown-layer");
    ++unknown_;
    return -1;
  }

  void check_all_placed(const Where& where) {
    std::vector<std::string> missing;
    for (std::size_t i = 0; i < owner_.size(); ++i)
      if (owner_[i] < 0) missing.push_back("'" + names_[i] + "'");
    if (missing.size() <= unknown_) return;  // A misspelt name is reported once.
    const std::size_t count = missing.size();
    if (count > 8) missing.resize(8), missing.push_back("...");
    problems_.add(where, "stages",
                  fmt::format("{} in no stage: {}", count == 1 ? "1 layer is" : fmt::format("{} layers are", count),
                              join(missing)),
                  "every layer is in exactly one stage", "layer-missing");
  }

  void check_convex() {
    Plan trial = plan_;
    add_data_edges(trial, input_.model);
    const std::vector<int> cycle = shortest_cycle(trial.graph());
    if (cycle.empty()) return;
    std::string names;
    for (int s : cycle) names += "'" + trial.stages[StageId{s}].name + "' -> ";
    names += "'" + trial.stages[StageId{cycle.front()}].name + "'";
    std::string reasons;
    for (std::size_t i = 0; i < cycle.size(); ++i)
      reasons += need_of(trial, cycle[i], cycle[(i + 1) % cycle.size()]) + (i + 1 < cycle.size() ? ", and " : "");
    problems_.add(options_.stages[cycle.front()].where, fmt::format("stages[{}]", cycle.front()),
                  fmt::format("the stages wait for each other in a circle: {} ({})", names, reasons),
                  "a path between two layers of a stage may not leave the stage: move one of these layers", "cycle");
  }

  /// "'d1' of 'inner' needs 'd0' of 'outer'".
  std::string need_of(const Plan& plan, int from, int to) const {
    for (LayerId layer : plan.stages[StageId{to}].shape.layers)
      for (LayerId input : input_.model.layers[layer].inputs)
        if (owner_[input.value] == from)
          return fmt::format("'{}' of '{}' needs '{}' of '{}'", names_[layer.value], plan.stages[StageId{to}].name,
                             names_[input.value], plan.stages[StageId{from}].name);
    return {};
  }

  const PlannerInput& input_;
  const ExplicitStagesOptions& options_;
  Plan plan_;
  config::Problems problems_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, int> index_;
  std::vector<int> owner_;  ///< Stage of each layer, or -1.
  std::unordered_set<std::string> stage_names_;
  std::size_t unknown_ = 0;  ///< Names of layers that are not there.
};

Planned plan_explicit(const PlannerInput& input) {
  Plan plan = Reader(input).read();
  finish_plan(plan, input, input.options.sequential);
  return {{}, std::move(plan)};
}

}  // namespace

extern const PlannerDef explicit_stages{
    .name = "explicit",
    .summary = "The stages as they are written in the file.",
    .source = "no search",
    .fields = &kExplicitStagesFields,
    .plan = plan_explicit,
    .read = read_explicit_stages_options,
};

}  // namespace stagecraft::planners
