// Any bytes as a sweep: points with one value for each varied path, no two of them equal, or refused.

#include <cstdint>
#include <cstdlib>
#include <set>

#include "sim/core/diagnostic.hpp"
#include "sim/sweep/points.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace stagecraft;

namespace {

constexpr int kMost = 500;  // Points, so that the next input has its turn.
// A schedule that needs more stages than the base has sets it.
constexpr const char* kFollows = "plan.stages";

void check(const Sweep& sweep) {
  const std::vector<std::string> paths = paths_of(sweep);
  const std::set<std::string> axis_paths(paths.begin(), paths.end());
  if (axis_paths.size() != paths.size() || paths.empty() || sweep.limit < 1) std::abort();
  std::vector<Diagnostic> warnings;
  const std::vector<Point> points = points_of(sweep, warnings);
  if (points.size() > static_cast<std::size_t>(sweep.limit)) std::abort();
  for (std::size_t p = 0; p < points.size(); ++p) {
    if (points[p].number != static_cast<int>(p) + 1) std::abort();
    std::set<std::string> set;
    for (const config::Member& m : points[p].settings)
      if (!(axis_paths.contains(m.key) || m.key == kFollows) || !set.insert(m.key).second) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  file.write({reinterpret_cast<const char*>(data), size});
  try {
    Sweep sweep = load_sweep(file.path());
    sweep.limit = std::min(sweep.limit, kMost);
    check(sweep);
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
