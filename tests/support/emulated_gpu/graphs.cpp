// Captures and graphs, with the rules of the runtime: a wait for what was not captured, a call that may wait for the
// device or an implicit stream, and a stream that does not come back end a capture.
#include <algorithm>

#include "tests/support/emulated_gpu/machine.hpp"

using namespace stagecraft::emulated_gpu;

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  State& s = state();
  const Lock lock(s.mutex);
  CUstream_st& on = s.stream_of(stream);
  if (on.graph || &on == &s.legacy) return fail(cudaErrorStreamCaptureUnsupported);
  s.graphs.push_back(std::make_unique<CUgraph_st>());
  on.graph = s.graphs.back().get();
  on.graph->streams = {&on};
  on.last.clear();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  State& s = state();
  const Lock lock(s.mutex);
  CUstream_st& on = s.stream_of(stream);
  *graph = nullptr;
  if (!on.graph) return fail(cudaErrorIllegalState);
  CUgraph_st& capture = *on.graph;
  if (capture.streams.front() != &on) return fail(s.invalidate(cudaErrorStreamCaptureUnmatched));
  capture.open = false;
  // Every stream must have joined the first one: its last nodes come before the last nodes of the first stream.
  std::vector<bool> joined(capture.nodes.size(), false);
  std::vector<int> open = on.last;
  while (!open.empty()) {
    const int n = open.back();
    open.pop_back();
    if (joined[n]) continue;
    joined[n] = true;
    for (const int b : capture.nodes[n].dependencies) open.push_back(b);
  }
  for (CUstream_st* const other : capture.streams) other->graph = nullptr;
  if (capture.invalid) return fail(cudaErrorStreamCaptureInvalidated);
  if (!std::all_of(joined.begin(), joined.end(), [](bool j) { return j; })) return fail(cudaErrorStreamCaptureUnjoined);
  *graph = &capture;
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  const CUgraph_st* const graph = state().stream_of(stream).graph;
  *status = !graph           ? cudaStreamCaptureStatusNone
            : graph->invalid ? cudaStreamCaptureStatusInvalidated
                             : cudaStreamCaptureStatusActive;
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long) {
  State& s = state();
  const Lock lock(s.mutex);
  s.executables.push_back(std::make_unique<CUgraphExec_st>());
  s.executables.back()->nodes = graph->nodes;
  *executable = s.executables.back().get();
  return cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) { return cudaSuccess; }
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  State& s = state();
  const Lock lock(s.mutex);
  if (s.broken) return fail(cudaErrorIllegalAddress);
  s.launch(s.stream_of(stream), *executable);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t) { return cudaSuccess; }
cudaError_t cudaGraphDestroy(cudaGraph_t) { return cudaSuccess; }
