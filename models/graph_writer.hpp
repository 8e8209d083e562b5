#pragma once

#include <string>
#include <vector>

#include "models/operations.hpp"
#include "sim/model/builder.hpp"
#include "sim/model/model_graph.hpp"

// Makes the ModelGraph of a builder: usual layers, and bytes from numbers. Writes it as a file of the builder `listed`.

namespace stagecraft {

/// Amounts of one layer for one sample, counted in numbers; GraphWriter makes bytes of them.
struct LayerAmounts {
  double parameters = 0;
  double forward = 0, input_gradient = 0, weight_gradient = 0;  ///< Floating-point operations.
  double output = 0, stash = 0;                                 ///< Numbers.
  std::string tie = {};
  double core_forward = 0, core_stash = 0;  ///< Operations and numbers of the AttentionCore.
};

/// A layer with weights: the gradients of its input and of its weights each cost as much as its forward.
LayerAmounts weighted(double parameters, double forward, double output, double stash);
/// rows x inputs times inputs x outputs, with a bias; 2 operations for a multiplication and an addition.
LayerAmounts dense(double rows, double inputs, double outputs);
LayerAmounts layer_norm(double rows, double width);
/// Softmax and cross-entropy over `classes` at each row: five operations forward, one backward.
LayerAmounts cross_entropy(double rows, double classes);
/// Three operations for each number forward, one backward.
LayerAmounts square_error(double numbers);
LayerAmounts source(double output);
/// The amounts of a layer from its operations: the sums of their parameters and floating-point operations, the output
/// of the last one, and the arrays that they stash.
LayerAmounts amounts_of(const Operations&);

/// `precision: fp32|fp64|mixed`, which every builder has.
config::Field precision_field();
Precision read_precision(const config::Value& checked);

/// Adds layers one after the other.
class GraphWriter {
 public:
  GraphWriter(std::string name, const config::Value& checked);

  LayerId add(const std::string& name, std::string type, std::vector<LayerId> inputs, LayerAmounts amounts,
              Operations operations = {});
  /// From here on operations have the same rows for each sample, because it has no tokens.
  void set_without_tokens() { per_token_ = false; }
  Layer& layer(LayerId id) { return model_.layers[id]; }
  ModelGraph finish();

 private:
  ModelGraph model_;
  bool per_token_ = true;
};

/// A model/1 file of the builder `listed`, with comments first and a note after each layer; reading it gives the same
/// model.
std::string listed_model_yaml(const ModelGraph&, const std::string& title, const std::vector<std::string>& comments,
                              const std::vector<std::string>& notes);

}  // namespace stagecraft
