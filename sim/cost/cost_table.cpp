// Seconds of every layer and update on every device type (measured, given, by kernels, or by a roofline), and what they
// read and write in a memory that devices share.

#include "sim/cost/cost_table.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/stage_cost.hpp"

namespace stagecraft {
namespace {

/// Limits the memory of the cache: with packed sequences each micro-batch may have a different load.
constexpr std::size_t kMostKnownPasses = 10000;

// A rate of zero is unknown, so it sets no limit.
double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

Seconds roofline(const DeviceType& type, double flops, double bytes) {
  return Seconds{
             std::max(seconds(flops, type.peak.value * type.efficiency), seconds(bytes, type.memory_bandwidth.value))} +
         type.launch;
}

const LayerTimes& times_on(const Layer& layer, const std::string& type) {
  const auto it = layer.times_on.find(type);
  if (it != layer.times_on.end()) return it->second;
  std::vector<std::string> types;
  for (const auto& [name, times] : layer.times_on) types.push_back(name);
  throw InputError(fmt::format("layer '{}' has no times for devices of the type '{}'", layer.name, type),
                   fmt::format("it has them for {}", join(types)));
}

/// What has to be read and written while all parts of a carved GPU (MIG) run a layer, so that they slow each other as
/// measured: its time alone times the slowdown, at a part's share of the memory, but never more than one part alone can
/// move in its time. Where no slowdown was seen, no more than that share.
Bytes measured_traffic(const MeasuredGpu& gpu, const MeasuredLayer& layer, Seconds alone, Bytes counted) {
  const Bytes share{gpu.memory.value / gpu.parts * alone.value};
  const Bytes limit{std::min(gpu.memory, gpu.memory_alone).value * alone.value};
  return std::min(limit, layer.slowdown > 1 + layer.spread ? share * layer.slowdown : std::min(counted, share));
}

LayerCost scaled(const LayerTimes& times, double by) {
  return {times.forward * by, times.input_gradient * by, times.weight_gradient * by};
}

IdVector<DeviceTypeId, std::shared_ptr<const Profile>> by_type(const Profiles& profiles, const Cluster& cluster) {
  IdVector<DeviceTypeId, std::shared_ptr<const Profile>> of_type(cluster.types.size());
  for (const DeviceTypeId type : cluster.types.ids())
    for (const std::shared_ptr<const Profile>& profile : profiles)
      if (cluster.types[type].name == profile->device) of_type[type] = profile;
  return of_type;
}

std::shared_ptr<const CostRules> with_profiles(CostRules rules,
                                               IdVector<DeviceTypeId, std::shared_ptr<const Profile>> profiles,
                                               const Precision& precision) {
  rules.profiles = std::move(profiles);
  const bool has_collectives = std::any_of(rules.profiles.begin(), rules.profiles.end(),
                                           [](const auto& p) { return p && !p->collectives.empty(); });
  if (has_collectives) {  // They were measured on gradients and weights as the model keeps them.
    rules.software.gradient_bytes = precision.gradient;
    rules.software.gathered_bytes = precision.weight;
  }
  return std::make_shared<const CostRules>(std::move(rules));
}

/// A pointer that owns nothing.
template <class T>
std::shared_ptr<const T> borrowed(const T* object) {
  return {std::shared_ptr<const T>(), object};
}

/// The part of its forward that a backward of a layer without shapes repeats.
double recomputed_share(Recomputation recomputation, const LayerCost& cost) {
  if (recomputation == Recomputation::Full || recomputation == Recomputation::Layers) return 1;
  if (recomputation == Recomputation::Half) return 0.5;
  return recomputes(recomputation, Recomputation::Selective) ? cost.core : 0;
}

}  // namespace

CostTable::CostTable(const ModelGraph& model, const Cluster& cluster, const Profile* profile)
    : CostTable(borrowed(&model), borrowed(&cluster), profile ? Profiles{borrowed(profile)} : Profiles{}) {}

CostTable::CostTable(std::shared_ptr<const ModelGraph> shared_model, std::shared_ptr<const Cluster> shared_cluster,
                     const Profiles& profiles, std::shared_ptr<const CostRules> rules)
    : model_(std::move(shared_model)),
      cluster_(std::move(shared_cluster)),
      profiles_(by_type(profiles, *cluster_)),
      rules_(rules ? std::move(rules) : rules_without_software(*cluster_)),
      weights_(model_->layers.size()),
      shares_memory_(cluster_->types.size()) {
  const ModelGraph& model = *model_;
  const Cluster& cluster = *cluster_;
  for (const Device& d : cluster.devices) shares_memory_[d.type] |= d.memory.valid();
  if (!profiles.empty() && rules_->software.prices) rules_ = with_profiles(*rules_, profiles_, model.precision);
  if (!profiles.empty())
    for (const Layer& layer : model.layers) signatures_.push_back(signature(layer.operations, model.precision));
  for (const LayerId i : model.layers.ids()) alike_.push_back(first_alike(i));
  std::map<std::string, double> tied;
  for (const Layer& layer : model.layers)
    if (!layer.tie.empty()) tied[layer.tie] = std::max(tied[layer.tie], layer.parameters);
  for (const LayerId i : model.layers.ids()) {
    const Layer& layer = model.layers[i];
    // A layer with tied weights owns none, yet it reads them all.
    weights_[i] = layer.tie.empty() ? layer.parameters : tied[layer.tie];
  }
}

CostTable CostTable::of_forwards_alone() const {
  CostTable costs = *this;
  costs.forwards_alone_ = true;
  return costs;
}

CostTable CostTable::of_packs(const Load& mean) const {
  CostTable costs = *this;
  costs.sample_ = mean;
  return costs;
}

LayerCost CostTable::at(LayerId id, DeviceTypeId device_type, const Load& load) const {
  LayerCost cost = trained_cost(id, device_type, load);
  if (!forwards_alone_) return cost;
  cost.input_gradient = cost.weight_gradient = cost.joint_saving = {};
  cost.traffic.input_gradient = cost.traffic.weight_gradient = {};
  return cost;
}

/// The cost of the layer in a run that trains.
LayerCost CostTable::trained_cost(LayerId id, DeviceTypeId device_type, const Load& load) const {
  if (load.samples > 0 && has_shapes(id, {}, device_type, load)) return at(id, StageShape{}, device_type, load);
  const Layer& layer = model_->layers[id];
  const DeviceType& type = cluster_->types[device_type];
  if (load.samples <= 0) return {};
  if (layer.times || !layer.times_on.empty()) require_whole_samples(layer, load);
  if (!layer.times_on.empty()) return scaled(times_on(layer, type.name), load.samples);
  if (layer.times) return scaled(*layer.times, load.samples / type.speed);

  LayerCost cost;
  if (layer.core.forward.value > 0)
    cost.core =
        layer.core.forward / layer.forward * core_factor(layer, load) / flops_factor(layer, Pass::Forward, load);
  const Profile* profile = profile_of(device_type);
  const auto measured = this->measured(id, {}, device_type, load);
  const bool shares = shares_memory_[device_type] != 0;
  if (measured) {
    // Contention for memory is simulated only where devices share it; elsewhere times are measured with all parts busy.
    const double busy = shares || measured->slowdown <= 0 ? 1 : measured->slowdown;
    cost = {busy * measured->forward, busy * measured->input_gradient, busy * measured->weight_gradient};
  }
  const auto pass = [&](Pass kind, Flops flops, double bytes_per_weight, Seconds& time, Bytes& traffic) {
    const Bytes counted = moved(id, flops, bytes_per_weight, load);
    if (!measured) time = roofline(type, flops.value * load.samples * flops_factor(layer, kind, load), counted.value);
    if (shares)
      traffic = measured && profile->gpu ? measured_traffic(*profile->gpu, *measured, time, counted)
                                         : in_time(counted.value, time, device_type);
  };
  const Precision& p = model_->precision;
  const bool copies = !layer.inputs.empty() && weights_[id] == 0;
  Traffic& traffic = cost.traffic;
  if (layer.forward.value > 0 || !layer.inputs.empty())
    pass(Pass::Forward, layer.forward, p.weight, cost.forward, traffic.forward);
  if (layer.input_gradient.value > 0 || copies || cost.input_gradient.value > 0)
    pass(Pass::InputGradient, layer.input_gradient, p.weight, cost.input_gradient, traffic.input_gradient);
  if (layer.weight_gradient.value > 0 || cost.weight_gradient.value > 0)
    pass(Pass::WeightGradient, layer.weight_gradient, p.gradient, cost.weight_gradient, traffic.weight_gradient);
  return cost;
}

bool CostTable::may_have_shapes(const Layer& layer) const {
  return rules_->software.prices && layer.has_shapes() && !layer.times && layer.times_on.empty();
}

/// Looks at the earlier layers that are the first of their kind.
LayerId CostTable::first_alike(LayerId id) const {
  const Layer& layer = model_->layers[id];
  if (!may_have_shapes(layer)) return id;
  for (const LayerId earlier : alike_.ids()) {
    const Layer& other = model_->layers[earlier];
    if (alike_[earlier] == earlier && may_have_shapes(other) && other.operations == layer.operations &&
        other.inputs.empty() == layer.inputs.empty() && reads_data(other) == reads_data(layer))
      return earlier;
  }
  return id;
}

/// What a group or divided states exchange in the passes of a layer has another time, which shapes tell.
bool CostTable::has_shapes(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load) const {
  const Layer& layer = model_->layers[id];
  return may_have_shapes(layer) &&
         (shape.degrees.divides() || shape.sums_each_pass() || !measured(id, shape, type, load));
}

std::optional<MeasuredLayer> CostTable::measured(LayerId id, const StageShape& shape, DeviceTypeId type,
                                                 const Load& load) const {
  const Profile* profile = profile_of(type);
  if (!profile || !load.has_whole_samples()) return std::nullopt;
  auto layer = profile->find(signatures_[id], load.samples, group_text(shape.degrees, shape.exchange));
  if (layer && reads_data(model_->layers[id])) layer->input_gradient = {};
  return layer;
}

LayerCost CostTable::at(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load) const {
  if (load.samples <= 0) return {};
  if (!has_shapes(id, shape, type, load)) {
    if (shape.degrees.divides())
      throw InputError(fmt::format("layer '{}' is known by its amounts or times alone, so a group cannot divide it",
                                   model_->layers[id].name),
                       "a model that lists its operations, or a group of one device");
    return at(id, type, load);
  }
  const EachPass<PassCost> passes = this->passes(id, shape, type, load);
  LayerCost cost{.forward = passes.forward.time.total(),
                 .input_gradient = passes.input_gradient.time.total(),
                 .weight_gradient = passes.weight_gradient.time.total()};
  cost.joint_saving = cost.input_gradient + cost.weight_gradient - passes.backward.time.total();
  if (cost.forward.value > 0) cost.core = passes.recompute.time.total() / cost.forward;
  return cost;
}

Traffic CostTable::traffic(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load) const {
  if (has_shapes(id, {}, type, load)) return {};
  const LayerCost cost = at(id, type, load);
  Traffic traffic = cost.traffic;
  if (!shape.recomputes_all()) traffic.input_gradient += recomputed_share(shape.recomputation, cost) * traffic.forward;
  return traffic;
}

EachPass<PassCost> CostTable::passes(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load,
                                     const MinTime& min_time) const {
  EachPass<PassCost> passes = trained_passes(id, shape, type, load, min_time);
  if (forwards_alone_) passes.input_gradient = passes.weight_gradient = passes.backward = passes.recompute = {};
  return passes;
}

EachPass<PassCost> CostTable::passes_by_shape(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load,
                                              const MinTime& min_time) const {
  const auto times = measured(id, shape, type, load);
  return passes_of(model_->layers[id].operations, shape, *rules_, type, model_->precision, load,
                   times ? &*times : nullptr, min_time);
}

/// The passes of the layer in a run that trains.
EachPass<PassCost> CostTable::trained_passes(LayerId id, const StageShape& shape, DeviceTypeId type, const Load& load,
                                             const MinTime& min_time) const {
  if (has_shapes(id, shape, type, load)) {
    if (min_time) return passes_by_shape(id, shape, type, load, min_time);
    StageShape of_layer = shape;
    of_layer.layers.clear();
    const std::tuple key{alike(id), type, load, std::move(of_layer)};
    {
      const std::lock_guard lock(known_->mutex);
      if (const auto it = known_->passes.find(key); it != known_->passes.end()) return it->second;
    }
    EachPass<PassCost> passes = passes_by_shape(id, shape, type, load, {});
    const std::lock_guard lock(known_->mutex);
    if (known_->passes.size() < kMostKnownPasses) known_->passes.emplace(key, passes);
    return passes;
  }
  const LayerCost cost = at(id, shape, type, load);
  const auto other = [](Seconds time) {
    PassCost pass;
    pass.time.other = time;
    return pass;
  };
  return {.forward = other(cost.forward),
          .input_gradient = other(cost.input_gradient),
          .weight_gradient = other(cost.weight_gradient),
          .backward = other(cost.backward()),
          .recompute = other(recomputed_share(shape.recomputation, cost) * cost.forward)};
}

/// A pass without flops is a look-up or a copy: it touches rows of the weights, not all of them.
Bytes CostTable::moved(LayerId layer, Flops flops, double bytes_per_weight, const Load& load) const {
  Bytes arrays = output_of_sample(model_->layers[layer], load);
  for (const LayerId input : model_->layers[layer].inputs) arrays += output_of_sample(model_->layers[input], load);
  return Bytes{(flops.value > 0 ? weights_[layer] * bytes_per_weight : 0) + arrays.value * load.samples};
}

/// True if the layer reads only data of the task: no layer needs that gradient, and real backends do not compute it.
bool CostTable::reads_data(const Layer& layer) const {
  return std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](LayerId id) {
    const auto& operations = model_->layers[id].operations;
    return operations.size() == 1 && operations.front().kind == OperationKind::Input;
  });
}

const Profile* CostTable::profile_of(DeviceTypeId device_type) const { return profiles_[device_type].get(); }

Seconds CostTable::operation(DeviceTypeId device_type) const {
  const Profile* profile = profile_of(device_type);
  return profile ? profile->operation : Seconds{0};
}

Seconds CostTable::update(double parameters, DeviceTypeId device_type) const {
  if (forwards_alone_) return {};
  if (const Profile* profile = profile_of(device_type))
    if (const auto measured = profile->update(parameters)) return *measured;
  const DeviceType& type = cluster_->types[device_type];
  return Seconds{seconds(update_bytes(parameters), type.memory_bandwidth.value)};
}

/// Gradients are read; weights and optimizer state are read and written.
double CostTable::update_bytes(double parameters) const {
  const Precision& p = model_->precision;
  return parameters * (p.gradient + 2 * p.weight + 2 * p.optimizer);
}

Bytes CostTable::update_traffic(double parameters, DeviceTypeId device_type) const {
  return in_time(update_bytes(parameters), update(parameters, device_type), device_type);
}

Bytes CostTable::touch_traffic(double parameters, DeviceTypeId device_type) const {
  return in_time(parameters * model_->precision.weight, touch(parameters, device_type), device_type);
}

/// What was measured to be quicker than memory was in a cache.
Bytes CostTable::in_time(double bytes, Seconds time, DeviceTypeId device_type) const {
  if (!shares_memory_[device_type]) return {};
  return Bytes{std::min(bytes, time.value * cluster_->types[device_type].memory_bandwidth.value)};
}

Seconds CostTable::touch(double parameters, DeviceTypeId device_type) const {
  // A prediction reads the weights and what the optimizer keeps, and writes weights.
  if (const Profile* profile = profile_of(device_type))
    if (const auto predicted = profile->predict(parameters); predicted && predicted->value > 0)
      return *predicted / (2 + model_->precision.optimizer / model_->precision.weight);
  const DeviceType& type = cluster_->types[device_type];
  return Seconds{seconds(parameters * model_->precision.weight, type.memory_bandwidth.value)};
}

}  // namespace stagecraft
