#include "backends/cuda/patience.hpp"

#include <sstream>

#include "backends/real/pause.hpp"

namespace stagecraft::cuda {
namespace {

/// Without fmt: the first look has to run where that is not.
std::string stuck_for(double seconds) {
  std::ostringstream text;
  text.precision(3);
  text << "the GPU has not ended its work within " << seconds << " s, so it is stuck";
  return text.str();
}

}  // namespace

Until at_most(double seconds) {
  return [seconds](const std::function<bool()>& done) {
    real::Nap nap;
    for (const double begin = real::steady_seconds(); !done(); nap())
      if (real::steady_seconds() - begin > seconds) throw BackendError(stuck_for(seconds));
  };
}

bool over(cudaStream_t stream) {
  const cudaError_t result = cudaStreamQuery(stream);
  if (result == cudaErrorNotReady) return false;
  check(result, "waiting for the device");
  return true;
}

bool ended(cudaStream_t stream) noexcept try {
  at_most(10)([&] { return over(stream); });
  return true;
} catch (...) {
  return false;
}

}  // namespace stagecraft::cuda
