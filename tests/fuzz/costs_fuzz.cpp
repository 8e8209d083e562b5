// Any bytes as what costs from shapes are made of. The first byte chooses: output of nccl-tests, a device type,
// measured collectives, measured runs, or a table of runs to fit. What is accepted has times that are numbers above
// zero and a fit with finite constants, or it is refused.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "sim/cluster/collective_curve.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/cost/kernel.hpp"
#include "sim/published/calibration.hpp"
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
    require(m.measured.value > 0 && m.devices() > 0);
  }
}

/// What `calibrate` makes of a log.
void check_fit(const CollectiveCurve& curve) {
  check(curve);
  const CurveFit constants = fit(curve);
  for (const double number : {constants.alpha.value, constants.rate.value, constants.root})
    require(std::isfinite(number) && number >= 0);
}

/// What `calibrate` makes of a table, of which more rows than a few, and large ones, cost time and find nothing new.
void check_fit(PredictionSet set) {
  constexpr std::size_t kMostRuns = 4;
  constexpr double kMostWork = 1e4;
  std::erase_if(set.runs, [](const MeasuredRun& m) {
    double work = 1;
    for (const char* factor : {"layers", "stages", "chunks", "replicas", "tensor", "context", "micro_batches"})
      work *= m.count(factor);
    return work > kMostWork;
  });
  if (set.runs.size() > kMostRuns) set.runs.erase(set.runs.begin() + kMostRuns, set.runs.end());
  static const Accelerator device = load_accelerator(STAGECRAFT_ROOT "/topologies/devices/h100-sxm.yaml");
  for (const Fit& fit : fit_shares(set, device))
    for (const FormatFacts& format : fit.applied(device).formats)
      require(format.share >= 0 && format.share <= 1 + 1e-9);
  for (const Fit::Number& n : fit_together(set, device, {FreeNumber::Share, FreeNumber::Card}).numbers)
    require(std::isfinite(n.factor) && n.factor > 0);
}

void read(std::uint8_t choice, std::string_view text) {
  static fuzz::MemoryFile file;
  if (choice % 5 == 0) return check_fit(read_nccl_tests(text, "log", CollectiveKind::AllReduce));
  file.write(text);
  if (choice % 5 == 1) {
    const Accelerator device = load_accelerator(file.path());
    if (device.has_kernels()) check(device);
    return;
  }
  if (choice % 5 == 3) return check(load_predictions(file.path()));
  if (choice % 5 == 4) return check_fit(read_runs_csv(file.path(), "h100-sxm"));
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
