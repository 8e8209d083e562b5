// The names of kinds of recomputation, and the shape of a part of the vocabulary.

#include "sim/cost/stage_shape.hpp"

#include <utility>

#include "sim/core/enum_array.hpp"

namespace stagecraft {
namespace {

constexpr EnumArray<Recomputation, std::string_view, 6> kRecomputations = {"none",   "selective", "full",
                                                                           "layers", "half",      "outputs"};

}  // namespace

std::string_view to_text(Recomputation r) { return kRecomputations[r]; }

std::optional<Recomputation> parse_recomputation(std::string_view word) {
  for (const Recomputation r : {Recomputation::None, Recomputation::Selective, Recomputation::Full,
                                Recomputation::Layers, Recomputation::Half, Recomputation::Outputs})
    if (to_text(r) == word) return r;
  return {};
}

StageShape vocabulary_shape(const StageShape& stage) {
  StageShape shape = stage;
  shape.layers = std::exchange(shape.vocabulary, {});
  shape.degrees.tensor *= stage.vocabulary_ranks;
  shape.recomputation = Recomputation::None;
  return shape;
}

}  // namespace stagecraft
