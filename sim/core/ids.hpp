#pragma once

#include <concepts>
#include <cstdint>
#include <functional>

namespace stagecraft {

/// An index into one kind of list. It reads as an int, but one kind is never taken for another.
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  template <std::integral Integer>
  constexpr explicit Id(Integer index) : value(static_cast<std::int32_t>(index)) {}
  constexpr operator std::int32_t() const { return value; }
  constexpr bool valid() const { return value >= 0; }
};

using LayerId = Id<struct LayerTag>;
using StageId = Id<struct StageTag>;
using DeviceId = Id<struct DeviceTag>;
using RankId = Id<struct RankTag>;      ///< A pipeline rank: devices that run the same order of work.
using VertexId = Id<struct VertexTag>;  ///< A place in the network: a device or a switch.
using LinkId = Id<struct LinkTag>;
using StreamId = Id<struct StreamTag>;
using InstructionId = Id<struct InstructionTag>;

}  // namespace stagecraft
