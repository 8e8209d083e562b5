// Any bytes as what costs from shapes are made of. The first byte chooses: output of nccl-tests, a device type,
// measured collectives, or measured runs. What is accepted has times that are numbers above zero, or it is refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/cluster/collective_curve.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/cost/kernel.hpp"
#include "sim/published/predictions.hpp"
#include "tests/fuzz/memory_file.hpp"

using namespace stagecraft;

namespace {

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const CollectiveCurve& curve) {
  for (const CollectiveCurve::Point& point : curve.points) {
    const auto time = curve.time_of(point.bytes);
    require(time && std::isfinite(time->value) && time->value > 0);
  }
}

void check(const Accelerator& device) {
  const Kernel product{.kind = KernelKind::Product, .m = 1000, .n = 1000, .k = 1000, .format = device.wide_format()};
  const double time = time_of(product, device).value;
  require(std::isfinite(time) && time > 0);
}

void check(const PredictionSet& set) {
  for (const MeasuredRun& m : set.runs) {
    double layers = 0;
    for (const double count : layers_per_stage(m.run)) layers += count;
    require(std::isfinite(layers) && m.measured.value > 0 && m.run.devices() > 0);
  }
}

void read(std::uint8_t choice, std::string_view text) {
  static fuzz::MemoryFile file;
  if (choice % 4 == 0) return check(read_nccl_tests(text, "log", CollectiveKind::AllReduce));
  file.write(text);
  if (choice % 4 == 1) return check(load_accelerator(file.path()));
  if (choice % 4 == 3) return check(load_predictions(file.path()));
  for (const CollectiveCurve& curve : load_collective_curves(file.path())) check(curve);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    read(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
  return 0;
}
