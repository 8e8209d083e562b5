#pragma once

#include <utility>

#include "backends/cuda/driver.hpp"
#include "backends/cuda/launch_limit.hpp"

namespace stagecraft::cuda {

/// A graph that can be launched again and again.
class Graph {
 public:
  Graph() = default;
  /// Captures what `work` enqueues, which begins and ends on `stream`. Capture ends when `work` throws.
  template <class Work>
  Graph(cudaStream_t stream, Work&& work) {
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
    cudaGraph_t graph = nullptr;
    try {
      const LimitedLaunches not_at_all(nullptr);  // Captured work is in no queue.
      std::forward<Work>(work)();
    } catch (...) {
      if (cudaStreamEndCapture(stream, &graph) == cudaSuccess && graph) cudaGraphDestroy(graph);
      cudaGetLastError();  // Clears the error, or a later call would be blamed.
      throw;
    }
    check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    const cudaError_t status = cudaGraphInstantiate(&executable_, graph, cudaGraphInstantiateFlagUseNodePriority);
    cudaGraphDestroy(graph);
    check(status, "cudaGraphInstantiate");
  }
  Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}
  Graph& operator=(Graph&&) = delete;
  ~Graph() {
    if (executable_) cudaGraphExecDestroy(executable_);
  }
  /// Uploads the graph, which otherwise its first launch does.
  void upload(cudaStream_t stream) const { check(cudaGraphUpload(executable_, stream), "cudaGraphUpload"); }
  void launch(cudaStream_t stream) const {
    check(cudaGraphLaunch(executable_, stream), "cudaGraphLaunch");
    submitted(stream, "cudaGraphLaunch");
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

class Event {
 public:
  explicit Event(unsigned flags = cudaEventDisableTiming) {
    check(cudaEventCreateWithFlags(&event_, flags), "cudaEventCreate");
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event() { cudaEventDestroy(event_); }
  void record(cudaStream_t stream) const {
    check(cudaEventRecord(event_, stream), "cudaEventRecord");
    submitted_event(stream);
  }
  void hold_up(cudaStream_t stream) const {
    check(cudaStreamWaitEvent(stream, event_, 0), "cudaStreamWaitEvent");
    submitted_event(stream);
  }
  bool over() const {
    const cudaError_t result = cudaEventQuery(event_);
    if (result == cudaErrorNotReady) return false;
    check(result, "looking at an event");
    return true;
  }
  double milliseconds_since(const Event& earlier) const {
    float ms = 0;
    check(cudaEventElapsedTime(&ms, earlier.event_, event_), "cudaEventElapsedTime");
    return ms;
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Memory of the device.
class Block {
 public:
  explicit Block(std::size_t bytes) { check(cudaMalloc(&data_, bytes), "cudaMalloc"); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  ~Block() { cudaFree(data_); }
  template <class T>
  T* as() const {
    return static_cast<T*>(data_);
  }

 private:
  void* data_ = nullptr;
};

}  // namespace stagecraft::cuda
