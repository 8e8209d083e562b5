// The last end of a Timeline.

#include "sim/program/timeline.hpp"

#include <algorithm>

namespace stagecraft {

Seconds Timeline::last_end() const { return {end.empty() ? 0.0 : *std::max_element(end.begin(), end.end())}; }

}  // namespace stagecraft
