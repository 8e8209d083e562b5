// Any bytes as a measured profile: it reads back as written, with times for every entry, or is refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/core/diagnostic.hpp"
#include "sim/cost/profile.hpp"
#include "sim/experiment/profiles.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/tree.hpp"

using namespace stagecraft;

namespace {

void check(const Profile& profile) {
  for (const MeasuredLayer& layer : profile.layers)
    for (const double samples : {0.5, 1.0, double(layer.samples), 1e6}) {
      const auto measured = profile.find(layer.layer, samples);
      if (!measured || !std::isfinite(measured->forward.value) || measured->forward.value < 0) std::abort();
    }
  for (const MeasuredUpdate& update : profile.updates)
    if (!profile.update(update.parameters) || !std::isfinite(profile.update(update.parameters)->value)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file;
  file.write({reinterpret_cast<const char*>(data), size});
  try {
    const Profile profile = read_profile(load_profile_file(file.path()));
    check(profile);
    const std::string text = to_yaml(profile);
    file.write(text);
    if (to_yaml(read_profile(load_profile_file(file.path()))) != text) std::abort();
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
