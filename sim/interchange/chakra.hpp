#pragma once

#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft {

/// A program as execution traces of Chakra (mlcommons/chakra, et_def.proto), which ASTRA-sim plays: for each device
/// that does something one trace, its rank the place in the list. Computations take whole microseconds there.
struct ChakraTraces {
  std::vector<DeviceId> devices;    ///< Device of each rank.
  std::vector<std::string> traces;  ///< Bytes of the file of each rank.
  std::string groups;               ///< JSON: ranks of each process group; empty where there are none.
  std::vector<std::string> notes;   ///< What the traces cannot say.
};

ChakraTraces chakra_traces(const Program&);

}  // namespace stagecraft
