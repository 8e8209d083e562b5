// Refuses platform files in a build without SimGrid.

#include "backends/platform.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {

Platform read_simgrid_platform(const std::string& file, const std::vector<std::string>&, std::size_t) {
  throw BackendError(file +
                     " is read by SimGrid, which this is not built with: install libsimgrid-dev and configure again");
}

}  // namespace stagecraft
