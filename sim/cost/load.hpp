#pragma once

#include <compare>

#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// What one micro-batch gives a device to do: a number of samples, and how these differ from samples of the model's own
/// length where sequences are packed. `rows` and `pairs` are factors and not counts, because the operations of a model
/// have different rows: words, copies for experts, patches, one row of a pooled head. All factors are exactly 1 for
/// whole samples.
struct Load {
  double samples = 1;
  double rows = 1;   ///< Tokens of a sample over the model's.
  double pairs = 1;  ///< Pairs of a query and a key in a sample over the model's: the sum of the squares of the lengths
                     ///< of its sequences over the square of the model's length.
  double exchanged = 1;  ///< What the ranks of a context group exchange, over what they would if all of them divided
                         ///< each sequence.

  /// Whether each sample is one sequence of the model's length.
  bool has_whole_samples() const { return rows == 1 && pairs == 1 && exchanged == 1; }
  /// Rows of an operation, and these over its rows for whole samples. An operation on samples has as many whatever the
  /// tokens.
  double rows_factor(const Operation& op) const { return op.per_token ? rows : 1; }
  double rows_of(const Operation& op) const { return samples * op.rows * rows_factor(op); }

  friend auto operator<=>(const Load&, const Load&) = default;
};

inline Load whole_samples(double samples) { return {.samples = samples}; }

/// InputError for packed sequences, of a layer that is known by its amounts or times: these are for whole samples.
void require_whole_samples(const Layer&, const Load&);

// Factors on amounts of whole samples, exactly 1 where all samples are whole. The factor of a layer is a mean over its
// operations; InputError where it lists none and sequences are packed.

/// Pairs that an attention computes. Sequences count as equally long where a window limits what each row looks at.
double pairs_factor(const Operation& attention, const Load&);
/// Floating-point operations of a pass.
double flops_factor(const Layer&, Pass, const Load&);
/// Floating-point operations of the AttentionCore.
double core_factor(const Layer&, const Load&);
/// An array that operations keep.
double kept_factor(const std::vector<Operation>&, const KeptArray&, const Load&);

/// Whether the output of a layer has a row for each token, so that it grows with them; a loss is one number.
bool has_rows_of_tokens(const Layer&);
/// Output for one sample of the load. A loss has one number, however many tokens a sample has.
Bytes output_of_sample(const Layer&, const Load&);

}  // namespace stagecraft
