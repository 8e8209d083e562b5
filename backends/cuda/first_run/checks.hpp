#pragma once

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <vector>

#include "backends/cuda/capture.hpp"
#include "backends/cuda/partitions.hpp"

/// What has to be known of a GPU before a pipeline runs on it. Each check gives what it saw, and leaves the device as
/// it was.
namespace stagecraft::cuda::first_run {

using Json = nlohmann::ordered_json;

Json device_facts();
Json clocks();           ///< Resolution of events and of the clock that all multiprocessors share.
Json carving();          ///< Whether partitions keep apart, launched one by one and captured.
Json events();           ///< Whether an event of one partition holds up another, and the primary context.
Json side_by_side();     ///< Whether partitions work at the same time.
Json gaps();             ///< What a launch and an edge between streams cost, with and without a graph.
Json copies();           ///< Bandwidth by bytes, blocks and partitions at work; through the level-two cache too.
Json ceilings();         ///< What cuBLASLt reaches on the whole GPU with large squares, by precision.
Json matrix_products();  ///< cuBLASLt in partitions, with its own idea of their size and with ours.
Json own_messages();     ///< Messages between partitions by a kernel and by the driver, also during other work.
Json several_gpus();     ///< All-reduces of NCCL over all of them, and what graphs may hold between two.
Json messages();         ///< NCCL from a partition to another: speed, and whose multiprocessors it takes.

/// Milliseconds that `work` takes on `stream`, where it begins and ends: the median of seven, after two to warm up.
inline double milliseconds(cudaStream_t stream, const std::function<void()>& work) {
  std::vector<double> seen;
  for (int i = 0; i < 9; ++i) {
    const Event begin(cudaEventDefault), end(cudaEventDefault);
    begin.record(stream);
    work();
    end.record(stream);
    check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    if (i >= 2) seen.push_back(end.milliseconds_since(begin));
  }
  std::sort(seen.begin(), seen.end());
  return seen[seen.size() / 2];
}

/// `work(i)` on each of these streams at once, between a fork from and a join to the first.
inline void together(const std::vector<cudaStream_t>& streams, const std::function<void(std::size_t)>& work) {
  std::vector<Event> joins(streams.size());
  const Event fork;
  fork.record(streams.front());
  for (std::size_t i = 1; i < streams.size(); ++i) fork.hold_up(streams[i]);
  for (std::size_t i = 0; i < streams.size(); ++i) work(i);
  for (std::size_t i = 1; i < streams.size(); ++i) {
    joins[i].record(streams[i]);
    joins[i].hold_up(streams.front());
  }
}

inline std::vector<cudaStream_t> compute_streams(const Partitions& partitions) {
  std::vector<cudaStream_t> streams;
  for (const Partitions::Partition& part : partitions.parts()) streams.push_back(part.compute);
  return streams;
}

}  // namespace stagecraft::cuda::first_run
