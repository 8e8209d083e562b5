// What planners share: make_plan(), the edges, samples and checks of a finished plan, the options `devices`, `share`
// and `recompute`, and how a heuristic is reported.

#include "sim/planners/shared/planner.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>

#include "sim/core/text.hpp"
#include "sim/plan/device_ranges.hpp"
#include "sim/planners/shared/bounds.hpp"
#include "sim/planners/shared/group.hpp"

namespace stagecraft {
namespace {

bool keeps_core(const Layer& layer) { return layer.core.stash.value > 0; }

void refuse_forwards_alone(const PlannerDef& def, const Where& where) {
  std::vector<std::string> others;
  for (const PlannerDef* planner : planners::catalog())
    if (planner->training_alone.empty()) others.emplace_back(planner->name);
  throw InputError(
      {{where, "plan.planner",
        fmt::format("the planner '{}' {}, and the schedule runs forwards alone", def.name, def.training_alone),
        fmt::format("planner: {}; or a schedule that trains", join(others)), "forwards"}});
}

}  // namespace

Planned make_plan(const PlannerInput& input) {
  const PlannerDef& def = *input.options.planner;
  if (!input.trains && !def.training_alone.empty()) refuse_forwards_alone(def, input.options.where("planner"));
  return def.plan(input);
}

MemoryUnits kept_memory(const PlannerInput& input, const MemoryUnits& units) {
  return input.trains ? units : MemoryUnits{.weights = units.weights};
}

void add_data_edges(Plan& plan, const ModelGraph& model) {
  IdVector<LayerId, StageId> stage_of(model.layers.size());
  for (const StageId s : plan.stages.ids())
    for (LayerId layer : plan.stages[s].shape.layers) stage_of[layer] = s;

  // A tensor that several layers of one stage read is sent there once.
  std::set<std::pair<LayerId, StageId>> sent;
  std::map<std::pair<StageId, StageId>, StageEdge> edges;
  for (const LayerId i : model.layers.ids()) {
    for (LayerId input : model.layers[i].inputs) {
      const StageId from = stage_of[input], to = stage_of[i];
      if (!from.valid() || !to.valid() || from == to || !sent.emplace(input, to).second) continue;
      StageEdge& edge = edges.try_emplace({from, to}, StageEdge{.from = from, .to = to}).first->second;
      edge.bytes += model.layers[input].output;
      if (!has_rows_of_tokens(model.layers[input])) edge.of_sample += model.layers[input].output;
    }
  }
  // Each device of a group sends its part, to the device in its place. Between groups of g and h devices each of the g
  // has 1/g of the array to send, and each of the h gets 1/h of it, from or to several, over its own card: the smaller
  // group is busy for 1/min(g, h).
  const auto group = [&](StageId s) { return plan.stages[s].shape.degrees.group(); };
  for (auto& [ends, edge] : edges) {
    const int parts = std::min(group(ends.first), group(ends.second));
    edge.bytes = edge.bytes / parts, edge.of_sample = edge.of_sample / parts;
    plan.edges.push_back(edge);
  }
}

std::string room_text(const PlannerInput& input, Bytes room) {
  if (input.options.memory) return to_text(room);
  const DeviceType* first = nullptr;
  for (const DeviceId d : available_devices(input)) {
    const DeviceType& type = input.cluster.type_of(d);
    if (type.usable_memory() != room) continue;
    if (first && first->memory_reserve != type.memory_reserve) return to_text(room);
    first = &type;
  }
  return first ? usable_text(room, first->memory_reserve) : to_text(room);
}

void count_samples(Plan& plan, const PlannerInput& input) {
  int largest = 1;
  for (const Stage& stage : plan.stages) largest = std::max(largest, stage.micro_batch_size);
  if (largest > std::numeric_limits<int>::max() / input.micro_batches)
    throw InputError(
        fmt::format("{} micro-batches of {} samples are more than can be counted", input.micro_batches, largest),
        fmt::format("at most {} samples in an iteration", std::numeric_limits<int>::max()));
  plan.mini_batch = input.micro_batches * largest;
}

void finish_plan(Plan& plan, const PlannerInput& input, bool sequential) {
  for (Stage& stage : plan.stages) {
    const auto& layers = stage.shape.layers;
    if (stage.shape.recomputes_attention() &&
        std::none_of(layers.begin(), layers.end(), [&](LayerId l) { return keeps_core(input.model.layers[l]); }))
      stage.shape.recomputation = stage.shape.recomputation & kModulesOfOperations;
  }
  count_samples(plan, input);
  check_group(input, plan);
  add_data_edges(plan, input.model);
  if (sequential) make_sequential(plan);
  check_plan(plan);
}

void set_heuristic(PlannerReport& report, const PlannerInput& input, const std::string& how) {
  const bounds::Bound bound = bounds::work({.costs = input.costs,
                                            .devices = available_devices(input),
                                            .micro_batch = input.options.micro_batch_size,
                                            .micro_batches = input.micro_batches});
  report.model_limit = bound.each;
  report.limit_reason = bound.reason + "; a heuristic: " + how;
  report.heuristic = how;
}

std::vector<DeviceId> read_devices(const config::Value& names, const Cluster& cluster, const std::string& path,
                                   config::Problems& problems) {
  std::vector<std::string> device_names;
  std::unordered_map<std::string_view, DeviceId> by_name;
  for (const Device& device : cluster.devices) {
    by_name.emplace(device.name, DeviceId{device_names.size()});
    device_names.push_back(device.name);
  }
  std::vector<DeviceId> devices;
  const auto look_up_one = [&](const std::string& name, const Where& where, const std::string& place) {
    const auto it = by_name.find(name);
    if (it == by_name.end())
      problems.add(where, place, fmt::format("the cluster has no device '{}'", name), suggest(name, device_names),
                   "unknown-device");
    else
      devices.push_back(it->second);
    return it != by_name.end();
  };
  const auto look_up = [&](const config::Value& name, const std::string& place) {
    if (by_name.contains(name.text)) return devices.push_back(by_name.at(name.text));
    for (const std::string& one : expand_device_range(name.text))
      if (!look_up_one(one, name.where, place)) return;  // One message for a range.
  };
  if (names.is_scalar()) look_up(names, path);
  for (std::size_t i = 0; i < names.items.size(); ++i) look_up(names.items[i], fmt::format("{}[{}]", path, i));
  return devices;
}

std::vector<DeviceId> available_devices(const PlannerInput& input) {
  if (input.options.devices) return *input.options.devices;
  std::vector<DeviceId> devices;
  for (const DeviceId d : input.cluster.devices.ids()) devices.push_back(d);
  return devices;
}

std::vector<DeviceId> distinct_devices(const PlannerInput& input) {
  std::vector<DeviceId> devices = available_devices(input);
  const std::set<DeviceId> different(devices.begin(), devices.end());
  if (!devices.empty() && different.size() == devices.size()) return devices;
  throw InputError({{input.options.where("devices"), "plan.devices",
                     devices.empty() ? "there is no device to use" : "a device is named twice",
                     "name each device once, or leave plan.devices out", "devices"}});
}

config::Field recompute_field(bool automatic, bool by_layers) {
  std::vector<std::string> words{"none", "selective", "full"};
  std::string doc =
      "Which activations backward computes again, to save memory. none: it computes none again. selective: the inside "
      "of each attention (scores, softmax, context), one layer at a time. full: the whole forward of the stage, before "
      "its backward.";
  if (by_layers) {
    words.emplace_back("layers");
    words.emplace_back("half");
    words.emplace_back("outputs");
    doc +=
        " layers: the forward of each layer inside its backward, after its gradient has arrived, as Megatron-LM's "
        "full recomputation does. half: half of each kernel of a layer there, and half of what the layer keeps, as "
        "torchtitan's selective recomputation by operation does. outputs: with `software`, norms, activations and the "
        "up-projections of latent attention there, as DeepSeek-V3 does and Megatron-LM with recompute-modules "
        "layernorm, moe_act and mla_up_proj. A list of modules, by the names that Megatron-LM has for them, with "
        "`software`: core_attn is selective; layernorm, moe_act and mla_up_proj are the norms of a layer, activations "
        "of "
        "experts and up-projections of latent attention; mlp, moe and shared_experts run again as a whole with their "
        "collectives, which are dense layers, layers of experts, and shared experts alone.";
  }
  if (automatic) {
    words.insert(words.begin(), "auto");
    doc += " auto: the fastest choice that fits.";
  }
  const std::string fallback = words.front();
  config::Field field = config::choice("recompute", std::move(words)).fallback(fallback).doc(doc);
  return by_layers ? field.or_list_of(recomputation_modules()) : field;
}

std::optional<Recomputation> read_recomputation(const config::Value& checked) {
  if (!checked.is_list()) return parse_recomputation(checked.text);
  Recomputation modules = Recomputation::None;
  for (const config::Value& module : checked.items)
    modules = modules | recomputation_module(module.text).value_or(Recomputation::None);
  return modules;
}

std::vector<Recomputation> recomputations(const ModelGraph& model) {
  if (std::any_of(model.layers.begin(), model.layers.end(), keeps_core))
    return {Recomputation::None, Recomputation::Selective, Recomputation::Full};
  return {Recomputation::None, Recomputation::Full};
}

std::vector<Recomputation> recomputations(std::optional<Recomputation> asked, const Where& where,
                                          const ModelGraph& model) {
  if (asked && *asked != Recomputation::Selective) return {*asked};  // Planners ask for each stage of a large model.
  std::vector<Recomputation> possible = recomputations(model);
  if (!asked) return possible;
  if (std::find(possible.begin(), possible.end(), *asked) == possible.end())
    throw InputError({{where, "recompute", "no layer of the model keeps the inside of an attention",
                       "write none, full, layers, half or outputs; with flash_attention, which most software stacks "
                       "have, nothing of "
                       "it is kept",
                       "recompute"}});
  return {*asked};
}

std::vector<Recomputation> recomputations(const PlanSpec& options, const ModelGraph& model) {
  return recomputations(options.recompute, options.where("recompute"), model);
}

config::Field share_field() {
  return config::choice("share", {"samples", "micro_batches"})
      .fallback("samples")
      .doc(
          "What replicas divide among them. samples: the samples of each micro-batch. micro_batches: whole "
          "micro-batches, round-robin (PipeDream).");
}

Share parse_share(std::string_view word) { return word == "samples" ? Share::Samples : Share::MicroBatches; }

}  // namespace stagecraft
