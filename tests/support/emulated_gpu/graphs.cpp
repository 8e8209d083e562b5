// Captures and graphs, with the rules of the runtime: a wait for what was not captured, a call that may wait for the
// device or an implicit stream, and a stream that does not come back end a capture.
#include <algorithm>
#include <memory>
#include <utility>

#include "tests/support/emulated_gpu/machine.hpp"

namespace stagecraft::emulated_gpu {

void capture_when(cudaStream_t stream, std::function<std::function<bool()>()> begin) {
  State& s = state();
  const Lock lock(s.mutex);
  Item item;
  item.seconds = 1e-6;
  item.begin = std::move(begin);
  s.push(s.stream_of(stream), std::move(item));
}

namespace {

/// A launch of a graph; its nodes run in any order that they allow.
class GraphRun {
 public:
  GraphRun(State& state, CUstream_st& stream, const CUgraphExec_st& graph)
      : state_(state), stream_(stream), graph_(graph), unmet_(graph.nodes.size()), readers_(graph.nodes.size()) {
    for (int n = 0; n < static_cast<int>(graph.nodes.size()); ++n) {
      const Node& node = graph.nodes[n];
      waits_.push_back(node.item.begin ? node.item.begin() : nullptr);
      unmet_[n] = node.dependencies.size();
      for (const int before : node.dependencies) readers_[before].push_back(n);
      if (unmet_[n] == 0) be_ready(n);
    }
    end_.assign(graph.nodes.size(), 0);
  }

  bool waits_for_others() const {
    return std::any_of(waits_.begin(), waits_.end(), [](const auto& wait) { return wait != nullptr; });
  }

  /// Runs nodes until all are over, or the one that is under way waits for others and no other may start.
  bool advance() {
    while (true) {
      if (under_way_ >= 0 && waits_[under_way_]()) finish(std::exchange(under_way_, -1));
      const std::size_t able = ready_.size() + (under_way_ < 0 ? ready_to_wait_.size() : 0);
      if (able == 0) return under_way_ < 0;
      const std::size_t drawn = state_.random() % able;
      if (drawn < ready_.size())
        finish(taken_from(ready_, drawn));
      else
        under_way_ = taken_from(ready_to_wait_, drawn - ready_.size());
    }
  }

  void end() {
    for (const double e : end_) stream_.free_at = std::max(stream_.free_at, e);
  }

 private:
  void be_ready(int n) { (waits_[n] ? ready_to_wait_ : ready_).push_back(n); }

  static int taken_from(std::vector<int>& nodes, std::size_t at) {
    std::swap(nodes[at], nodes.back());
    const int n = nodes.back();
    nodes.pop_back();
    return n;
  }

  void finish(int n) {
    const Item& item = graph_.nodes[n].item;
    double start = stream_.free_at;
    for (const int before : graph_.nodes[n].dependencies) start = std::max(start, end_[before]);
    end_[n] = start + item.seconds;
    if (item.work) item.work();
    if (item.records) item.records->time = end_[n], item.records->done = true;
    for (const int reader : readers_[n])
      if (--unmet_[reader] == 0) be_ready(reader);
  }

  State& state_;
  CUstream_st& stream_;
  const CUgraphExec_st& graph_;
  std::vector<std::size_t> unmet_;  ///< Dependencies that are not over.
  std::vector<std::vector<int>> readers_;
  std::vector<double> end_;
  std::vector<std::function<bool()>> waits_;  ///< Null for nodes that do not wait for others.
  std::vector<int> ready_, ready_to_wait_;
  int under_way_ = -1;  ///< The node that has started and waits for others.
};

}  // namespace

/// Enqueues the graph as one piece of work of the stream.
void State::launch(CUstream_st& stream, const CUgraphExec_st& graph) {
  const auto run = std::make_shared<GraphRun>(*this, stream, graph);
  bool never = false;
  for (const Node& node : graph.nodes) {
    if (node.item.records) node.item.records->done = false;
    never = never || node.item.never;
  }
  if (!run->waits_for_others())
    return push(stream, {[run] { run->advance(), run->end(); }, 0, 0, nullptr, nullptr, never});
  push(stream, {[run] { run->end(); }, 0, 0, nullptr, nullptr, never, [run] { return run->advance(); }});
}

}  // namespace stagecraft::emulated_gpu

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
