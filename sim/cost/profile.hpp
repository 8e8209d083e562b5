#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/config/fields.hpp"
#include "sim/core/quantity.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Seconds of one kind of layer with one number of samples: medians.
struct MeasuredLayer {
  std::string layer;  ///< signature() of it.
  int samples = 1;
  Seconds forward, input_gradient, weight_gradient;
  double spread = 0;    ///< Half the distance between the quartiles of all three together, over their median.
  double slowdown = 0;  ///< Its time while all parts of a GPU run it, over that alone; 0: not measured.
};

/// Seconds of one update of so many numbers, and of one prediction of them.
struct MeasuredUpdate {
  double parameters = 0;
  Seconds time, predict;
};

/// A GPU whose multiprocessors are divided, and what its memory reads and writes together.
struct MeasuredGpu {
  int multiprocessors = 0, group = 0;  ///< All, and the fewest that the driver gives away.
  int parts = 1, part = 0;             ///< Virtual devices, and the multiprocessors of each.
  Bandwidth memory, memory_alone;      ///< All parts at once; one while the others rest.
};

/// What layers, updates and messages cost on one type of device, as measured. Figures of a machine, not of a model:
/// layers are known by their operations.
struct Profile {
  std::string title, device, machine, date, commit, backend, precision, optimizer;
  int threads = 1;  ///< Devices that were busy at the same time.
  std::vector<MeasuredLayer> layers;
  std::vector<MeasuredUpdate> updates;
  Seconds operation;  ///< Of each op of a stage, beside its layers.
  Seconds latency;    ///< From the end of an op to the start of the one that its message lets go, without bytes.
  Bandwidth bandwidth;
  std::optional<MeasuredGpu> gpu;  ///< Times of layers are then those of one part while the others rest.

  /// On the line through the two nearest numbers of samples that were measured; in proportion where there is one, and
  /// below all of them. Nothing when the layer was not measured.
  std::optional<MeasuredLayer> find(const std::string& layer, double samples) const;
  std::optional<Seconds> update(double parameters) const;
  std::optional<Seconds> predict(double parameters) const;

 private:
  std::optional<Seconds> of_updates(double parameters, Seconds MeasuredUpdate::*member) const;
};

/// The operations of a layer and the width of its numbers as one text: "fp32: linear 64x512 from 512; gelu 64x512".
/// Empty when they are not known.
std::string signature(const std::vector<Operation>& of_layer, const Precision&);

const config::MapSpec& profile_fields();
Profile read_profile(const config::Value& checked);
/// As a file that reads back to the same.
std::string to_yaml(const Profile&);

}  // namespace stagecraft
