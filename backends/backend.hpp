#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "sim/cluster/cluster.hpp"
#include "sim/core/catalog.hpp"
#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

struct RunOptions {
  std::uint64_t seed = 1;
  Seconds timeout{0};  ///< Of wall time; zero: none.
};

/// One way to execute a Program: one directory in backends/. The program has passed check_program().
struct BackendDef {
  std::string_view name, summary, source;
  Clock clock = Clock::Simulated;
  std::string (*version)();  ///< Of the library behind it; empty when there is none.
  std::string (*why_not)();  ///< Empty when it can run here; else one sentence.
  Timeline (*run)(const Program&, const Cluster&, const RunOptions&);
};

namespace backends {
Catalog<BackendDef> all();
}

}  // namespace stagecraft
