// Ends long computations of a thread where they call stop_point(), once the innermost StopScope says so.

#include "sim/core/stop_point.hpp"

#include <utility>

namespace stagecraft {
namespace {

thread_local const StopScope* innermost = nullptr;

}  // namespace

StopScope::StopScope(std::function<bool()> asked) : asked_(std::move(asked)), outer_(innermost) { innermost = this; }

StopScope::~StopScope() { innermost = outer_; }

void stop_point() {
  if (innermost != nullptr && innermost->asked_()) throw Stopped();
}

}  // namespace stagecraft
