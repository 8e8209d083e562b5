#pragma once

#include <compare>
#include <concepts>
#include <cstdint>
#include <functional>

namespace stagecraft {

/// An index into one kind of list. One kind is never taken for another, nor for a number: `value` is the number.
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  template <std::integral Integer>
  constexpr explicit Id(Integer index) : value(static_cast<std::int32_t>(index)) {}
  friend constexpr auto operator<=>(Id, Id) = default;
  constexpr bool valid() const { return value >= 0; }
};

using LayerId = Id<struct LayerTag>;
using StageId = Id<struct StageTag>;
using DeviceId = Id<struct DeviceTag>;
using DeviceTypeId = Id<struct DeviceTypeTag>;
using RankId = Id<struct RankTag>;      ///< A pipeline rank: devices that run the same order of work.
using VertexId = Id<struct VertexTag>;  ///< A place in the network: a device or a switch.
using LinkId = Id<struct LinkTag>;
using StreamId = Id<struct StreamTag>;
using InstructionId = Id<struct InstructionTag>;

}  // namespace stagecraft
