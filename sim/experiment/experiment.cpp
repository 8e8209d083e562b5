// Makes an Experiment of a checked scenario, and variants of it that share the model, the cluster and the costs.

#include "sim/experiment/experiment.hpp"

#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/places.hpp"
#include "sim/experiment/profiles.hpp"
#include "sim/experiment/software.hpp"
#include "sim/plan/load_table.hpp"
#include "sim/schedule/slices.hpp"
#include "sim/weights/optimizer_state.hpp"

namespace stagecraft {
namespace {

using config::Value;

std::shared_ptr<const Value> part_of(const std::shared_ptr<const Value>& tree, const Value& part) {
  return {tree, &part};
}

/// The optimizer that was asked for takes the place of the two moments that models assume; mixed precision keeps its
/// 32-bit copy of the weights. The program itself charges for the momentum of bare gradients.
double optimizer_bytes(const Precision& precision, const OptimizerRule& optimizer, const WeightsRule& rule) {
  const OptimizerStateTensors state = state_tensors(optimizer.kind, rule);
  const int tensors = state.count() - state.bare;
  return precision.weight < 4 ? 4 + 4.0 * tensors : precision.weight * tensors;
}

bool same_part(const Value& a, const Value& b, std::string_view key) {
  const Value* first = a.find(key);
  const Value* second = b.find(key);
  return first && second ? same_content(*first, *second) : first == second;
}

/// The model without the losses ("loss", "softmax_xent") that no other layer reads.
ModelGraph without_losses(ModelGraph model) {
  std::set<LayerId> read;
  for (const Layer& layer : model.layers) read.insert(layer.inputs.begin(), layer.inputs.end());
  IdVector<LayerId, Layer> layers;
  IdVector<LayerId, LayerId> new_id;
  for (const LayerId id : model.layers.ids()) {
    Layer& layer = model.layers[id];
    new_id.push_back(layers.next_id());
    const bool is_loss = layer.type == "loss" || layer.type == "softmax_xent";
    if (is_loss && !layer.inputs.empty() && !read.contains(id)) continue;
    for (LayerId& input : layer.inputs) input = new_id[input];
    layers.push_back(std::move(layer));
  }
  model.layers = std::move(layers);
  return model;
}

/// Whether there is a loss to compute: forwards alone have none, unless the scenario has a task that is judged by it,
/// or lists the layers of its stages, where the loss has a place.
bool has_losses(const Experiment& e) {
  const Value* planner = e.source->at("plan").find("planner");
  return e.schedule.has_gradients() || e.has_training || (planner && planner->text == "explicit");
}

void set_model(Experiment& e) {
  with_error_context(*e.source, "model", [&](const Value& part) {
    ModelGraph model = build_model(part);
    e.model = std::make_shared<ModelGraph>(has_losses(e) ? std::move(model) : without_losses(std::move(model)));
  });
}

/// Takes over what the scenario of `previous` describes alike: the model only if its optimizer keeps as many bytes.
void share(const Experiment& previous, const Value& tree, Experiment& e) {
  const Value& earlier = *previous.source;
  const bool same_optimizer =
      e.has_training == previous.has_training &&
      (!e.has_training || optimizer_bytes(previous.model->precision, e.training.optimizer, e.weights.rule) ==
                              previous.model->precision.optimizer);
  const bool same_profile = same_part(tree, earlier, "profile");
  if (same_optimizer && has_losses(e) == has_losses(previous) && same_part(tree, earlier, "model"))
    e.model = previous.model;
  if (same_profile && same_part(tree, earlier, "cluster")) e.cluster = previous.cluster;
  const bool same_rules =
      same_part(tree, earlier, "software") && same_part(tree.at("run"), earlier.at("run"), "precision") &&
      same_part(tree.at("run"), earlier.at("run"), "collectives") &&
      same_part(tree.at("run"), earlier.at("run"), "overlap") && same_part(tree.at("run"), earlier.at("run"), "detail");
  if (e.cluster && same_rules) e.rules = previous.rules;
  if (same_profile && e.model && e.cluster && same_rules) e.costs = previous.costs;
}

/// Cuts the sequences where the schedule goes over slices of them, and counts the micro-batches of an iteration.
void set_slices(Experiment& e) {
  const Slices slices = read_slices(*e.schedule.options);
  e.run.micro_batches = config::as_int(e.source->at("run").at("micro_batches"));
  if (slices.exchange && !slices.cut)
    throw InputError(
        {{e.schedule.options->at("exchange").where, "run.schedule.exchange",
          "ranks can share the attention of slices only where sequences are cut into them", "cut: true", "loads"}});
  if (!slices.cut && e.run.packs)
    with_error_context(*e.source, "run", [&](const Value&) { require_whole_sequences(*e.run.packs, slices.slices); });
  if (slices.cut)
    with_error_context(*e.source, "run", [&](const Value&) {
      require_slices(*e.model, slices.slices);
      const PackedBatches whole = e.run.packs ? *e.run.packs : equal_packs(*e.source, *e.model);
      if (!whole.ranks.empty())
        throw InputError("slices of sequences on fewer context ranks are not simulated", "data.pack: balanced");
      if (const int tokens = tokens_of_sample(*e.model); !e.run.packs && tokens % (slices.slices * whole.pad) != 0)
        throw InputError(fmt::format("{} cannot be cut into {} equal slices of a multiple of {}",
                                     pluralize(tokens, "token"), slices.slices, pluralize(whole.pad, "token")),
                         "a number of slices that divides model.sequence");
      e.run.packs = std::make_shared<const PackedBatches>(cut(whole, slices.slices, slices.exchange));
    });
  if (e.run.packs) e.run.micro_batches = e.run.packs->micro_batches;
}

/// Replaces the model, and with it the cost table, if the optimizer keeps another number of bytes.
void set_optimizer_bytes(Experiment& e) {
  if (!e.has_training) return;
  const double bytes = optimizer_bytes(e.model->precision, e.training.optimizer, e.weights.rule);
  if (bytes == e.model->precision.optimizer) return;
  auto model = std::make_shared<ModelGraph>(*e.model);
  model->precision.optimizer = bytes;
  e.model = std::move(model);
  if (e.costs) e.costs = std::make_shared<const CostTable>(e.model, e.cluster, e.profiles, e.rules);
}

/// Where a profile says of which type of device it is; nowhere, of one that was just measured.
Where where_of_device(const Value& tree, std::size_t number) {
  const Value* written = tree.find("profile");
  if (written && written->is_list()) written = number < written->items.size() ? &written->items[number] : nullptr;
  const Value* device = written ? written->find("device") : nullptr;
  return device ? device->where : Where{};
}

/// Puts the times of profiles into a cluster that has none yet.
std::shared_ptr<const Cluster> profiled(const Profiles& profiles, const Cluster& cluster, const Value& tree) {
  auto changed = std::make_shared<Cluster>(cluster);
  for (std::size_t n = 0; n < profiles.size(); ++n) {
    apply(*profiles[n], where_of_device(tree, n), *changed);
    require_same_parts(*profiles[n], tree.at("cluster"));
  }
  return changed;
}

ScheduleSpec read_schedule(const std::shared_ptr<const Value>& tree) {
  const Value& options = tree->at("run").at("schedule");
  return {&get_from(schedules::catalog(), "schedule", options.at("name").text), part_of(tree, options)};
}

WeightsSpec read_weights(const std::shared_ptr<const Value>& tree) {
  const Value& options = tree->at("weights");
  const Value& policy = options.at("policy");
  const WeightsDef& def = get_from(weights::catalog(), "weights policy", policy.text);
  return {&def, rule_of(def, options), policy.origin == "computed", part_of(tree, options)};
}

void set_weights(Experiment& e, const WeightsSpec& weights) {
  e.weights = weights;
  e.run.lowering.keeps_momentum = state_tensors(e.training.optimizer.kind, weights.rule).first;
  set_optimizer_bytes(e);
}

}  // namespace

Experiment read_experiment(const Scenario& scenario, const Experiment* previous) {
  Experiment e;
  const auto tree = std::make_shared<const Value>(scenario.tree);
  e.source = tree;
  e.scenario_hash = scenario.hash();
  e.title = tree->at("title").text;
  Settings settings = read_settings(*tree);
  e.run = settings.run;
  e.training = settings.training;
  e.has_training = settings.has_training;
  e.profiles = settings.profiles;
  e.budget = settings.budget;
  e.schedule = read_schedule(tree);
  e.weights = read_weights(tree);
  if (previous) share(*previous, *tree, e);
  if (!e.model) set_model(e);
  set_weights(e, e.weights);
  e.run.packs = read_packs(*tree, *e.model);
  set_slices(e);
  if (!e.cluster) {
    with_error_context(*tree, "cluster",
                       [&](const Value& part) { e.cluster = std::make_shared<Cluster>(build_cluster(part)); });
    if (!e.profiles.empty()) e.cluster = profiled(e.profiles, *e.cluster, *tree);
  }
  std::vector<std::string> types;
  for (const DeviceType& type : e.cluster->types) types.push_back(type.name);
  check_prices(e.budget, types);
  if (!e.rules) e.rules = read_cost_rules(*tree, e.cluster);
  if (!e.costs) e.costs = std::make_shared<const CostTable>(e.model, e.cluster, e.profiles, e.rules);
  set_braids(e, e.schedule.def->braids);
  with_error_context(*tree, "plan", [&](const Value& part) { e.plan = read_plan_spec(part, *e.cluster); });
  return e;
}

void set_braids(Experiment& e, bool braids) {
  braids = braids && e.run.lowering.overlap;
  if (e.rules->braids == braids) return;
  auto rules = std::make_shared<CostRules>(*e.rules);
  rules->braids = braids;
  e.rules = std::move(rules);
  e.costs = std::make_shared<const CostTable>(e.model, e.cluster, e.profiles, e.rules);
}

Experiment load_experiment(const std::string& file, const std::vector<std::string>& sets) {
  return read_experiment(load_scenario(file, sets));
}

Experiment variant_of(const Experiment& experiment) {
  Experiment variant = experiment;
  variant.scenario_hash.clear();
  return variant;
}

ScheduleSpec schedule_spec(const ScheduleDef& def, std::vector<config::Member> options) {
  Value map;
  map.kind = Value::Kind::Map;
  map.members.push_back({"name", {}, Value::scalar(std::string(def.name), {})});
  for (config::Member& option : options) map.members.push_back(std::move(option));
  return {&def, std::make_shared<const Value>(checked_field("run.schedule", std::move(map)))};
}

std::vector<config::Member> options_without_placement(const ScheduleSpec& schedule) {
  std::vector<config::Member> options;
  for (const config::Member& m : schedule.options->members)
    if (m.value.origin.empty() && m.key != "name" && m.key != "placement" && m.key != "chunks") options.push_back(m);
  return options;
}

WeightsSpec weights_spec(const std::string& policy, const std::string& fidelity, const Where& where) {
  Value map;
  map.kind = Value::Kind::Map;
  map.members.push_back({"policy", {}, Value::scalar(policy, {})});
  if (!fidelity.empty()) map.members.push_back({"fidelity", where, Value::scalar(fidelity, where)});
  const auto options = std::make_shared<const Value>(checked_field("weights", std::move(map)));
  if (policy == "auto") return {nullptr, {}, true, options};
  const WeightsDef& def = get_from(weights::catalog(), "weights policy", policy);
  return {&def, rule_of(def, *options), false, options};
}

Experiment with_order(const Experiment& experiment, const ScheduleSpec& schedule, const WeightsSpec& asked) {
  WeightsSpec weights = asked;
  if (asked.automatic) {
    weights.policy = &get_from(weights::catalog(), "weights policy", schedule.def->weights);
    weights.rule = rule_of(*weights.policy, *asked.options);
  }
  config::Problems problems;
  const Where where = experiment.source->at("weights").where;
  check_weights(*weights.policy, weights.rule, *schedule.def, *schedule.options, where, problems);
  check_iterations(experiment.run.lowering.iterations, *schedule.def, *schedule.options,
                   experiment.source->at("run").at("iterations").where, problems);
  problems.throw_if_any();
  Experiment variant = variant_of(experiment);
  variant.schedule = schedule;
  if (has_losses(variant) != has_losses(experiment)) {
    set_model(variant);
    variant.costs = std::make_shared<const CostTable>(variant.model, variant.cluster, variant.profiles, variant.rules);
  }
  set_braids(variant, schedule.def->braids);
  if (read_slices(*experiment.schedule.options).cut || read_slices(*schedule.options).cut) {
    variant.run.packs = read_packs(*variant.source, *variant.model);
    set_slices(variant);
  }
  set_weights(variant, weights);
  return variant;
}

Experiment with_profile(const Experiment& experiment, Profile profile) {
  Experiment variant = variant_of(experiment);
  variant.profiles = {std::make_shared<const Profile>(std::move(profile))};
  variant.cluster = profiled(variant.profiles, *variant.cluster, *variant.source);
  variant.rules = read_cost_rules(*variant.source, variant.cluster);  // They know the links.
  variant.costs = std::make_shared<const CostTable>(variant.model, variant.cluster, variant.profiles, variant.rules);
  set_braids(variant, variant.schedule.def->braids);
  return variant;
}

}  // namespace stagecraft
