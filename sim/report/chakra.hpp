#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// A program as execution traces of Chakra (mlcommons/chakra, et_def.proto), which ASTRA-sim plays: for each device
/// that does something one trace, its rank the place in the list. Computations take whole microseconds there.
struct ChakraTraces {
  std::vector<DeviceId> devices;    ///< Of each rank.
  std::vector<std::string> traces;  ///< Of each rank: the bytes of its file.
  std::string groups;               ///< JSON: who reduces gradients together; empty when nobody does.
  std::vector<std::string> notes;   ///< What is different there.
};

ChakraTraces chakra_traces(const Program&);

}  // namespace stagecraft
