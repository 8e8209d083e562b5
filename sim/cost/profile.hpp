#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/parallel.hpp"
#include "sim/core/quantity.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Median times of one kind of layer with one number of samples, on one device. Where a group of devices divides the
/// layer, they are the times of the device's part, without the collectives of the group that MeasuredCollective has.
struct MeasuredLayer {
  std::string layer;  ///< signature() of the layer.
  int samples = 1;
  Seconds forward, input_gradient, weight_gradient;
  double spread = 0;       ///< Half the interquartile range of all three times together, divided by their median.
  double slowdown = 0;     ///< Time while all parts of a GPU run the layer, divided by the time alone; 0: not measured.
  std::string group = {};  ///< group_text() of the group that divides the layer; empty: none.
};

/// Which collectives a measurement is of: those inside of ops, or sums of gradients and gathers of weights between the
/// devices that have equal parameters.
enum class CollectiveUse : std::uint8_t { Ops, Parameters };
constexpr const char* name(CollectiveUse use) { return use == CollectiveUse::Ops ? "ops" : "parameters"; }

/// Median time of one kind of collective among `ranks` devices, from the arrival of a device until it goes on.
struct MeasuredCollective {
  CollectiveKind kind = CollectiveKind::AllReduce;
  CollectiveUse use = CollectiveUse::Ops;
  int ranks = 2;
  Bytes bytes{};  ///< The whole array, as phases_of() counts it.
  Seconds time;
};

/// Seconds of one update of `parameters` numbers, and of one prediction of them.
struct MeasuredUpdate {
  double parameters = 0;
  Seconds time, predict;
};

/// A GPU whose multiprocessors are divided, and the rate at which its memory reads and writes together.
struct MeasuredGpu {
  int multiprocessors = 0, group = 0;  ///< Number of all, and the fewest that the driver hands out.
  int parts = 1, part = 0;             ///< Virtual devices, and the multiprocessors of each.
  Bandwidth memory, memory_alone;      ///< Rate of all parts at once, and of one part while the others rest.
};

/// Measured costs of layers, updates and messages on one type of device. They belong to a machine, not to a model:
/// layers are known by their operations.
struct Profile {
  std::string title, device, machine, date, commit, backend, precision, optimizer;
  int threads = 1;  ///< Number of devices that were busy at the same time.
  std::vector<MeasuredLayer> layers;
  std::vector<MeasuredUpdate> updates;
  std::vector<MeasuredCollective> collectives;
  Seconds operation;     ///< Overhead of each op of a stage, in addition to its layers.
  std::string messages;  ///< What carried the messages on a GPU: copy, kernel or nccl; empty: not a GPU.
  Seconds latency;       ///< From the end of an op to the start of the op that waits for its message, without bytes.
  Bandwidth bandwidth;
  /// If set, layers that no group divides were timed on one part while the others rest.
  std::optional<MeasuredGpu> gpu;

  /// Times on the line through the two nearest measured numbers of samples, or in proportion to the samples with only
  /// one measured number and below all of them. Nothing when the layer was not measured in such a group.
  std::optional<MeasuredLayer> find(const std::string& layer, double samples, const std::string& group = {}) const;
  /// The time on the line through the two nearest measured sizes; with fewer bytes than the smallest one, the time of
  /// that one, because the rest is waiting. Nothing when no collective of this kind was measured among such a number.
  std::optional<Seconds> collective(CollectiveKind, CollectiveUse, int ranks, Bytes) const;
  std::optional<Seconds> update(double parameters) const;
  std::optional<Seconds> predict(double parameters) const;

 private:
  std::optional<Seconds> of_updates(double parameters, Seconds MeasuredUpdate::*member) const;
};

/// Measured costs, one for each type of device that has any.
using Profiles = std::vector<std::shared_ptr<const Profile>>;

/// The operations of a layer and the width of its numbers as one text: "fp32: linear 64x512 from 512; gelu 64x512".
/// Empty when they are not known.
std::string signature(const std::vector<Operation>& of_layer, const Precision&);

/// How a group divides layers, as one text: "tensor 2, sequence", "context 2 all_gather", "expert 4". Empty when it
/// divides nothing.
std::string group_text(const Degrees&, ContextExchange);

const config::MapSpec& profile_fields();
Profile read_profile(const config::Value& checked);
/// Serializes to YAML; read_profile() is its inverse.
std::string to_yaml(const Profile&);

}  // namespace stagecraft
