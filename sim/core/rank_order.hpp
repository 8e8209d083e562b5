#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "sim/core/enum_array.hpp"

namespace stagecraft {

/// What the rank of a device counts: the axes of a mesh, and the ranks of the pipeline. Experts number the devices of a
/// stage again, where Tensor is their expert-tensor axis and Data their replicas.
enum class RankAxis : std::uint8_t { Tensor, Context, Expert, Data, Pipeline };

using RankSizes = EnumArray<RankAxis, int, 5>;

/// The order in which the ranks of a cluster are numbered: between neighbors the first axis differs (Megatron-LM's
/// RankGenerator).
struct RankOrder {
  std::array<RankAxis, 5> axes = {RankAxis::Tensor, RankAxis::Context, RankAxis::Expert, RankAxis::Data,
                                  RankAxis::Pipeline};
  int written = 5;  ///< Axes after these were left out, which is allowed where they have one rank.

  /// Distance between neighbors on an axis: the product of the sizes of the axes before it.
  int stride(RankAxis axis, const RankSizes& sizes) const {
    int stride = 1;
    for (const RankAxis before : axes) {
      if (before == axis) break;
      stride *= sizes[before];
    }
    return stride;
  }

  friend bool operator==(const RankOrder&, const RankOrder&) = default;
};

/// "tp-cp-ep-dp-pp", as Megatron-LM writes it; axes that were left out come last.
std::string to_text(const RankOrder&);
/// Nothing where a word is unknown or comes twice.
std::optional<RankOrder> parse_rank_order(std::string_view text);
/// "tp".
std::string_view to_text(RankAxis);

}  // namespace stagecraft
