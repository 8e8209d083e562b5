#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "sim/core/id_vector.hpp"
#include "sim/core/quantity.hpp"
#include "sim/model/operation.hpp"

namespace stagecraft {

/// Measured or given times of a layer for one sample; they replace the roofline.
struct LayerTimes {
  Seconds forward, input_gradient, weight_gradient;
};

/// Scores, softmax and context of an attention, which selective recomputation drops and recomputes (Korthikanti et al.,
/// MLSys 2023, section 5). The amounts are for one sample, and the amounts of the layer include them.
struct AttentionCore {
  Flops forward;
  Bytes stash;
  friend bool operator==(const AttentionCore&, const AttentionCore&) = default;
};

/// One node of the network that is trained. All amounts are for one sample.
struct Layer {
  std::string name;
  std::string type;  ///< "transformer_layer", "dense", ...: only for people and importers.
  std::vector<LayerId> inputs;
  Flops forward, input_gradient, weight_gradient;
  double parameters = 0;              ///< Number of parameters it owns; tied weights are counted once.
  Bytes output;                       ///< Sent to every consumer forward; its gradient comes back with the same size.
  Bytes stash;                        ///< Bytes kept from forward to backward.
  AttentionCore core;                 ///< Zero in layers without attention.
  std::string tie;                    ///< Layers with the same word share their parameters.
  std::vector<Operation> operations;  ///< What it computes, inputs first; the last is its output. Empty: only known by
                                      ///< its amounts, so no real backend can run it.
  std::optional<LayerTimes> times;
  std::map<std::string, LayerTimes> times_on;  ///< Times by device type; if not empty, other types cannot run it.

  /// Whether its amounts follow from its operations; with tensor operations they are given.
  bool has_shapes() const;
};

/// Bytes of one number, by what it is for.
struct Precision {
  double weight = 4, gradient = 4, optimizer = 8, activation = 4;
};

/// The network that is trained: a DAG of layers, listed so that inputs come first.
struct ModelGraph {
  std::string name;
  Precision precision;
  IdVector<LayerId, Layer> layers;

  double parameters() const;
  Flops forward() const;
  std::optional<LayerId> find(const std::string& layer_name) const;
};

/// Parameters that work on one token: of routed experts only those that a token is sent to. Publishers disagree about
/// embeddings, of which a token reads one row: `with_embedding` counts them whole, otherwise they do not count, unless
/// scores are computed with them.
double active_parameters(const ModelGraph&, bool with_embedding);

/// Throws InternalError unless inputs come before their users and names are unique: the promise of every builder.
void check_graph(const ModelGraph&);

}  // namespace stagecraft
