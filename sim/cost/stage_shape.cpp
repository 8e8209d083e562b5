// The names of kinds of recomputation.

#include "sim/cost/stage_shape.hpp"

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

}  // namespace stagecraft
