// Any bytes as a platform file of SimGrid, which reads it in a process of its own: a cluster file that is taken, or
// refused, whatever becomes of that process.

#include <cstdint>
#include <cstdlib>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/run/scenario.hpp"
#include "sim/run/simgrid_xml.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace stagecraft;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file, written;
  file.write({reinterpret_cast<const char*>(data), size});
  const Where where{"<memory>", 1, 1};
  try {
    const config::Value cluster =
        platform_cluster(file.path(), {{"memory", where, config::Value::scalar("16 GiB", where)}});
    if (build_cluster(cluster).devices.empty()) std::abort();
    written.write(config::to_yaml(cluster, false));
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
    return 0;
  }
  try {
    static_cast<void>(load_cluster_file(written.path()));
  } catch (const InputError&) {
    std::abort();
  }
  return 0;
}
