// The schedule `looped-bfs`: all micro-batches through one chunk, then through the next.

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec looped_bfs_fields{
    .title = "All micro-batches through one chunk, then through the next.",
    .fields = {chunks_field(), config::choice("backward", std::vector<std::string>{"forward", "reverse"})
                                   .fallback("forward")
                                   .doc("Order of the micro-batches in backward: the order of forward (the paper), or "
                                        "the last first (PyTorch's LoopedBFS).")}};

struct LoopedBfsOptions {
  bool reverse = false;
  friend bool operator==(const LoopedBfsOptions&, const LoopedBfsOptions&) = default;
};

void read_looped_bfs(const config::Value& map, ScheduleOptions& options) {
  options.keep(LoopedBfsOptions{option_is(map, "backward", "reverse")});
}

// Weights of a chunk are needed once forward and once backward, which suits weights that are gathered for use.
void looped_bfs_order(const RankInput& r, RankOps& ops) {
  const bool reverse = r.in.options.as<LoopedBfsOptions>().reverse;
  const int m = r.micro_batches;
  for (int chunk = 0; chunk < r.chunks; ++chunk)
    for (int i = 0; i < m; ++i) ops.forward(chunk, i);
  for (int chunk = r.chunks; chunk-- > 0;)
    for (int i = 0; i < m; ++i) ops.backward(chunk, reverse ? m - 1 - i : i);
}

}  // namespace

extern const ScheduleDef looped_bfs{
    .name = "looped-bfs",
    .summary =
        "All micro-batches through one chunk, then through the next: few gathers of weights, all activations in memory",
    .source = "Lamy-Poirier, Breadth-First Pipeline Parallelism, MLSys 2023",
    .placement = Placement::Loop,
    .chunks = {1, kManyChunks},
    .fields = &looped_bfs_fields,
    .read = read_looped_bfs,
    .rank = looped_bfs_order,
};

}  // namespace stagecraft::schedules
