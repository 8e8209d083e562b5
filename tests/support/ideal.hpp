#pragma once

#include "backends/backend.hpp"

namespace stagecraft::backends {
extern const BackendDef ideal;
}

namespace stagecraft::test {

inline Timeline run_ideal(const Program& program, const Cluster& cluster) {
  return backends::ideal.run(program, cluster, {});
}

}  // namespace stagecraft::test
