#include "sim/cost/cost_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

// A rate of zero means that nobody gave one, so it sets no limit.
double seconds(double amount, double rate) { return rate > 0 ? amount / rate : 0; }

Seconds roofline(const DeviceType& type, double flops, double bytes) {
  return Seconds{
             std::max(seconds(flops, type.peak.value * type.efficiency), seconds(bytes, type.memory_bandwidth.value))} +
         type.launch;
}

const LayerTimes& times_on(const Layer& layer, const std::string& type) {
  const auto found = layer.times_on.find(type);
  if (found != layer.times_on.end()) return found->second;
  std::vector<std::string> types;
  for (const auto& [name, times] : layer.times_on) types.push_back(name);
  throw InputError(fmt::format("layer '{}' has no times for devices of the type '{}'", layer.name, type),
                   fmt::format("it has them for {}", join(types)));
}

LayerCost scaled(const LayerTimes& times, double by) {
  return {times.forward * by, times.input_gradient * by, times.weight_gradient * by};
}

}  // namespace

CostTable::CostTable(const ModelGraph& model, const Cluster& cluster, const Profile* profile)
    : model_(&model),
      cluster_(&cluster),
      profile_(profile),
      weights_(model.layers.size()),
      moved_(model.layers.size()) {
  if (profile)
    for (const Layer& layer : model.layers) signatures_.push_back(signature(layer, model.precision));
  std::map<std::string, double> tied;
  for (const Layer& layer : model.layers)
    if (!layer.tie.empty()) tied[layer.tie] = std::max(tied[layer.tie], layer.parameters);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    // A layer with tied weights owns none, yet it reads them all.
    weights_[i] = layer.tie.empty() ? layer.parameters : tied[layer.tie];
    moved_[i] = layer.output;
    for (LayerId input : layer.inputs) moved_[i] += model.layers[static_cast<std::size_t>(input)].output;
  }
}

LayerCost CostTable::at(LayerId id, int device_type, double samples) const {
  const auto i = static_cast<std::size_t>(id);
  const Layer& layer = model_->layers[i];
  const DeviceType& type = cluster_->types[static_cast<std::size_t>(device_type)];
  if (samples <= 0) return {};
  if (!layer.times_on.empty()) return scaled(times_on(layer, type.name), samples);
  if (layer.times) return scaled(*layer.times, samples / type.speed);

  if (const Profile* profile = profile_of(device_type))
    if (const auto measured = profile->find(signatures_[i], samples))
      return {measured->forward, reads_data(layer) ? Seconds{0} : measured->input_gradient, measured->weight_gradient};

  // A pass without flops is a look-up or a copy: it touches rows of the weights, not all of them.
  const auto pass = [&](Flops flops, double bytes_per_weight) {
    const double dense = flops.value > 0 ? weights_[i] * bytes_per_weight : 0;
    return roofline(type, flops.value * samples, dense + moved_[i].value * samples);
  };
  const Precision& precision = model_->precision;
  const bool copies = !layer.inputs.empty() && weights_[i] == 0;
  LayerCost cost;
  if (layer.forward.value > 0 || !layer.inputs.empty()) cost.forward = pass(layer.forward, precision.weight);
  if (layer.input_gradient.value > 0 || copies) cost.input_gradient = pass(layer.input_gradient, precision.weight);
  if (layer.weight_gradient.value > 0) cost.weight_gradient = pass(layer.weight_gradient, precision.gradient);
  return cost;
}

/// Nobody needs the gradient of data, and a real backend does not compute it.
bool CostTable::reads_data(const Layer& layer) const {
  return std::all_of(layer.inputs.begin(), layer.inputs.end(), [&](LayerId id) {
    const auto& operations = model_->layers[static_cast<std::size_t>(id)].operations;
    return operations.size() == 1 && operations.front().kind == OperationKind::Input;
  });
}

const Profile* CostTable::profile_of(int device_type) const {
  return profile_ && cluster_->types[static_cast<std::size_t>(device_type)].name == profile_->device ? profile_
                                                                                                     : nullptr;
}

Seconds CostTable::operation(int device_type) const {
  const Profile* profile = profile_of(device_type);
  return profile ? profile->operation : Seconds{0};
}

Seconds CostTable::update(double parameters, int device_type) const {
  if (const Profile* profile = profile_of(device_type))
    if (const auto measured = profile->update(parameters)) return *measured;
  const Precision& p = model_->precision;
  const DeviceType& type = cluster_->types[static_cast<std::size_t>(device_type)];
  // Gradients are read; weights and optimizer state are read and written.
  return Seconds{seconds(parameters * (p.gradient + 2 * p.weight + 2 * p.optimizer), type.memory_bandwidth.value)};
}

Seconds CostTable::touch(double parameters, int device_type) const {
  // A prediction reads the weights and what the optimizer keeps, and writes weights.
  if (const Profile* profile = profile_of(device_type))
    if (const auto predicted = profile->predict(parameters); predicted && predicted->value > 0)
      return *predicted / (2 + model_->precision.optimizer / model_->precision.weight);
  const DeviceType& type = cluster_->types[static_cast<std::size_t>(device_type)];
  return Seconds{seconds(parameters * model_->precision.weight, type.memory_bandwidth.value)};
}

}  // namespace stagecraft
