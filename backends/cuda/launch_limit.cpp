// Keeps each stream shorter than the launch queue of the driver: before a call would block in the driver, the host
// waits here, with a time limit.

#include "backends/cuda/launch_limit.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "backends/real/clocks.hpp"

namespace stagecraft::cuda {
namespace {

/// The limit of this thread: kernels are launched deep inside of calls that know their stream only.
LaunchLimit*& current_limit() {
  thread_local LaunchLimit* limit = nullptr;
  return limit;
}

double& skipped_seconds() {
  thread_local double seconds = 0;
  return seconds;
}

bool waits_after_each_call() {
  static const bool waits = [] {
    const char* const asked = std::getenv("STAGECRAFT_CUDA_SYNC");
    return asked && std::string_view(asked) == "1";
  }();
  return waits;
}

bool happened(cudaEvent_t event) {
  const cudaError_t result = cudaEventQuery(event);
  if (result == cudaErrorNotReady) return false;
  check(result, "looking at an event");
  return true;
}

void wait_for_call(cudaStream_t stream, const char* what) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(stream, &status), what);
  if (status != cudaStreamCaptureStatusNone) return;
  at_most(60)([&] {
    const cudaError_t result = cudaStreamQuery(stream);
    if (result == cudaErrorNotReady) return false;
    check(result, what);
    return true;
  });
}

}  // namespace

double thread_seconds() { return real::steady_seconds() - skipped_seconds(); }
void skip_seconds(double seconds) { skipped_seconds() += seconds; }

LaunchLimit::~LaunchLimit() {
  forget();
  for (const auto& [gpu, events] : free_)
    for (const cudaEvent_t event : events) cudaEventDestroy(event);
}

cudaEvent_t LaunchLimit::new_mark() {
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  std::deque<cudaEvent_t>& unused = free_[gpu];
  cudaEvent_t event = nullptr;
  if (unused.empty()) {
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  } else {
    event = unused.front();
    unused.pop_front();
  }
  return event;
}

void LaunchLimit::submitted(cudaStream_t stream) {
  ++calls_;
  Stream& s = streams_[stream];
  if (++s.calls < kChunk / sharing_) return;
  s.calls = 0;
  const cudaEvent_t mark = new_mark();
  s.marks.push_back(mark);
  check(cudaEventRecord(mark, stream), "cudaEventRecord");
  if (s.marks.size() <= static_cast<std::size_t>(kMarks)) return;
  const double begin = thread_seconds();
  wait_policy_([&] { return happened(s.marks.front()); });
  waited_ += thread_seconds() - begin;
  int gpu = 0;
  check(cudaGetDevice(&gpu), "cudaGetDevice");
  free_[gpu].push_back(s.marks.front());
  s.marks.pop_front();
}

void LaunchLimit::forget() {
  for (auto& [stream, s] : streams_)
    for (const cudaEvent_t event : s.marks) cudaEventDestroy(event);
  streams_.clear();
}

LimitedLaunches::LimitedLaunches(LaunchLimit* limit) : before_(std::exchange(current_limit(), limit)) {}
LimitedLaunches::~LimitedLaunches() { current_limit() = before_; }

void submitted(cudaStream_t stream, const char* what) {
  if (waits_after_each_call()) wait_for_call(stream, what);
  if (LaunchLimit* const limit = current_limit()) limit->submitted(stream);
}

void submitted_event(cudaStream_t stream) {
  if (LaunchLimit* const limit = current_limit()) limit->submitted(stream);
}

}  // namespace stagecraft::cuda
