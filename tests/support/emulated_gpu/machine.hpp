#pragma once

#include <cuda.h>

#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <vector>

#include "tests/support/emulated_gpu/streams.hpp"

namespace stagecraft::emulated_gpu {

/// One recording of an event. Those who wait for it hold it, whatever is recorded later.
struct Record {
  bool done = false;
  double time = 0;
  int device = 0;
  CUgraph_st* graph = nullptr;  ///< Being captured; `node` is the last of its stream then.
  int node = -1;
};

struct Item {
  std::function<void()> work;  ///< Empty: nothing but the waiting and the recording.
  double seconds = 0, earliest = 0;
  std::shared_ptr<Record> waits_for, records;
  bool never = false;
  std::function<bool()> ready = {};                   ///< Asked again and again; empty: at once.
  std::int64_t sequence = 0;                          ///< Items get numbers in the order of the calls.
  std::function<std::function<bool()>()> begin = {};  ///< In a graph: see capture_when().
};

struct Node {
  Item item;
  std::vector<int> dependencies;
};

}  // namespace stagecraft::emulated_gpu

struct CUgraph_st {
  std::vector<stagecraft::emulated_gpu::Node> nodes;
  std::vector<CUstream_st*> streams;  ///< Streams in the capture; the first began it.
  bool open = true, invalid = false;
};

struct CUgraphExec_st {
  std::vector<stagecraft::emulated_gpu::Node> nodes;
};

struct CUstream_st {
  int device = 0, importance = 0;
  int connection = -1;  ///< The hardware queue that it shares with other streams; -1: it has its own.
  bool blocking = false, alive = true;
  const CUgreenCtx_st* partition = nullptr;
  std::deque<stagecraft::emulated_gpu::Item> items;
  double free_at = 0;
  CUgraph_st* graph = nullptr;  ///< The graph that its work is captured into, or null.
  std::vector<int> last;        ///< Nodes that its next node waits for.
};

struct CUevent_st {
  unsigned flags = 0;
  int device = 0;
  bool alive = true;
  std::shared_ptr<stagecraft::emulated_gpu::Record> latest;
};

struct CUgreenCtx_st {
  int device = 0;
  std::vector<unsigned> multiprocessors;  ///< Their numbers.
  bool alive = true;
};

namespace stagecraft::emulated_gpu {

struct Allocation {
  std::unique_ptr<char[]> bytes;
  std::size_t size = 0;
  bool host = false, freed = false;
  int device = 0;
};

/// Everything that a process knows of its GPUs.
class State {
 public:
  explicit State(const Machine& m) : machine(m), random(m.seed) { legacy.blocking = true; }

  CUstream_st* new_stream(int on, bool blocking);
  CUstream_st& stream_of(cudaStream_t);  ///< Misuse for one that was destroyed.
  CUevent_st& event_of(cudaEvent_t) const;

  void push(CUstream_st&, Item);
  void record(CUevent_st&, CUstream_st&, bool node_of_graph);
  cudaError_t wait(CUstream_st&, const CUevent_st&);
  /// Ends all captures that are under way, and is why.
  cudaError_t invalidate(cudaError_t);
  /// Not cudaSuccess for a call that no thread may make while it captures, and for every call after a kernel crashed:
  /// that error is sticky.
  cudaError_t unsafe() {
    if (broken) return cudaErrorIllegalAddress;
    return capturing() ? invalidate(cudaErrorStreamCaptureUnsupported) : cudaSuccess;
  }
  bool capturing() const;
  void launch(CUstream_st&, const CUgraphExec_st&);

  bool step();  ///< Runs one item of one stream; false when none can go on.
  /// What goes on while the host looks: up to seven items, and twice as many with each look that follows at once,
  /// because a host that waits naps between two looks.
  void run_random_steps();
  /// Runs until it is so; Misuse when that never comes.
  template <class Done>
  void run_until(Done&& done) {
    while (!done())
      if (!step() && !waits_for_others()) throw Misuse("waiting for work that never ends");
  }
  bool idle() const;

  void* allocate(std::size_t bytes, bool host);
  void free(void*, bool host);
  /// The allocation in use that holds all of these bytes, or null.
  const Allocation* holds(const void*, std::size_t bytes) const;

  Machine machine;
  std::mt19937_64 random;
  std::recursive_mutex mutex;
  int current = 0;  ///< Device.
  double host_time = 0;
  std::int64_t waits = 0, blocks = 0, blocked_calls = 0, submitted = 0, attentions = 0, gelus = 0;
  int most_streams = 0;
  std::map<std::size_t, std::int64_t> products;  ///< By algorithm.
  double product_seconds = 0;                    ///< Their total.
  int looks = 0;                                 ///< Since work was enqueued.
  bool broken = false;                           ///< A kernel crashed.
  CUstream_st legacy;
  std::vector<std::unique_ptr<CUstream_st>> streams;
  std::map<cudaEvent_t, std::unique_ptr<CUevent_st>> events;  ///< Also those that are no longer alive.
  std::vector<std::unique_ptr<CUgraph_st>> graphs;
  std::vector<std::unique_ptr<CUgraphExec_st>> executables;
  std::vector<std::unique_ptr<CUgreenCtx_st>> contexts;
  std::vector<CUgreenCtx_st*> pushed;                                ///< Contexts that are current, the last one first.
  std::vector<std::unique_ptr<std::vector<unsigned>>> descriptions;  ///< Multiprocessors to make contexts of.
  std::map<const char*, Allocation> allocations;

 private:
  void run(CUstream_st&);
  bool waits_for_others() const;  ///< Whether a stream is at work that another process may let go on; naps if so.
  bool ready(const CUstream_st&) const;
  bool first_of_connection(const CUstream_st&) const;
  void wait_for_room(const CUstream_st&);
};

State& state();
/// Returns the error and stores it for cudaGetLastError().
cudaError_t fail(cudaError_t);
using Lock = std::lock_guard<std::recursive_mutex>;

}  // namespace stagecraft::emulated_gpu
