#pragma once

#include <cstdint>
#include <functional>

namespace stagecraft {

/// An index into one kind of list. It reads as an int, but one kind is never taken for another.
template <class Tag>
struct Id {
  std::int32_t value = -1;

  constexpr Id() = default;
  constexpr explicit Id(std::int64_t index) : value(static_cast<std::int32_t>(index)) {}
  constexpr operator std::int32_t() const { return value; }
  constexpr bool valid() const { return value >= 0; }
};

using LayerId = Id<struct LayerTag>;
using StageId = Id<struct StageTag>;
using DeviceId = Id<struct DeviceTag>;
using VertexId = Id<struct VertexTag>;  ///< A place in the network: a device or a switch.
using LinkId = Id<struct LinkTag>;
using StreamId = Id<struct StreamTag>;
using InstructionId = Id<struct InstructionTag>;

}  // namespace stagecraft
