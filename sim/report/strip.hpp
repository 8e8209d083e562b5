#pragma once

#include <string>

#include "sim/program/program.hpp"
#include "sim/timeline/timeline.hpp"

namespace stagecraft {

/// A timeline among others that are drawn below each other on one time scale; of each the first iteration.
struct Strip {
  std::string title;
  const Program& program;
  const Timeline& timeline;
};

}  // namespace stagecraft
