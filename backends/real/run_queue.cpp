// Reads from the kernel how long a thread was runnable without a core, for `Timeline::core_waits`.

#include "backends/real/run_queue.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "sim/core/from_chars.hpp"

namespace stagecraft::real {

RunQueue::RunQueue() : file_(open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

RunQueue::~RunQueue() {
  if (file_ >= 0) close(file_);
}

std::optional<double> RunQueue::seconds() const {
  std::array<char, 96> text;
  const ssize_t size = file_ >= 0 ? pread(file_, text.data(), text.size(), 0) : -1;
  if (size <= 0) return std::nullopt;
  return run_queue_seconds({text.data(), static_cast<std::size_t>(size)});
}

namespace {

/// A thread that is woken on an idle core counts as waiting until the core has left its sleep, which messages cost in
/// any case. A thread that waits for the time slice of another one waits for milliseconds.
constexpr double kWaking = 1e-4;

}  // namespace

void CoreWaitMeter::add_pause(double reading) {
  before_ = std::max(0.0, reading - std::exchange(last_, reading) - kWaking);
}

double CoreWaitMeter::finish(double reading) {
  return std::exchange(before_, 0) + std::max(0.0, reading - std::exchange(last_, reading));
}

std::optional<double> run_queue_seconds(std::string_view schedstat) {
  std::array<std::int64_t, 3> numbers;  // Nanoseconds on a core and in a queue, and the number of time slices.
  const char* at = schedstat.data();
  const char* const end = at + schedstat.size();
  for (std::int64_t& number : numbers) {
    while (at != end && *at == ' ') ++at;
    const auto [next, problem] = from_chars(at, end, number);
    if (problem != std::errc()) return std::nullopt;
    at = next;
  }
  if (numbers[2] <= 0) return std::nullopt;
  return static_cast<double>(numbers[1]) * 1e-9;
}

}  // namespace stagecraft::real
