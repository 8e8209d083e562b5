// The order in which `interleaved`, `interleaved-zb` and `wpipe` visit chunks and micro-batches, and ops in that order,
// with whole or split backwards; `zb-h1` takes the latter with one chunk.

#include "sim/schedule/chunk_order.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {

ChunkOrder::Visit ChunkOrder::forward(int k) const {
  const int first = k / (group_ * chunks_) * group_, size = std::min(group_, micro_batches_ - first);
  const int within = k - first * chunks_;
  return {within / size, first + within % size};
}

ChunkOrder::Visit ChunkOrder::backward(int k) const {
  const Visit visit = forward(k);
  return {chunks_ - 1 - visit.chunk, visit.micro};
}

ChunkOrder chunk_order_of(const RankInput& r, std::string_view schedule, int group) {
  const int p = r.ranks, m = r.micro_batches;
  const auto leaves = [&](int size) { return m % size != 0 && m % size < p; };
  if (group == 0)
    for (group = std::min(p, m); group < m && leaves(group);) ++group;
  if (group > m || group < std::min(p, m) || leaves(group))
    throw Infeasible(
        "group",
        fmt::format("the schedule '{}' on {} cannot take {} in groups of {}", schedule, pluralize(p, "rank"),
                    pluralize(m, "micro-batch", "es"), group),
        fmt::format("leave run.schedule.group out, or choose one of at least {} that divides the micro-batches",
                    std::min(p, m)),
        group > m ? "there are not as many" : "a group of fewer micro-batches than ranks would wait for itself");
  return {r.chunks, m, group};
}

config::Field group_field() {
  return config::integer("group", 1, 1 << 20)
      .optional()
      .doc(
          "Micro-batches that a rank runs through a chunk before it turns to the next chunk; at most "
          "run.micro_batches. Default: the number of ranks, or more where the last group would otherwise have fewer "
          "micro-batches than there are ranks.");
}

void whole_backward(const ChunkOrder& order, int ahead, bool together, RankOps& ops) {
  const int total = order.size();
  ahead = std::min(ahead, total);
  for (int k = 0; k < total + ahead; ++k) {
    if (k < total) {
      const auto [chunk, micro] = order.forward(k);
      ops.forward(chunk, micro);
      if (together && k >= ahead) ops.join_next();
    }
    if (k < ahead) continue;
    const auto [chunk, micro] = order.backward(k - ahead);
    ops.backward(chunk, micro);
  }
}

void split_backward(const RankInput& r, const ChunkOrder& order, RankOps& ops) {
  const int total = order.size();
  const int ahead = std::min((r.chunks - 1) * order.group() + r.ranks - 1 - r.rank, total);
  int weights = 0;
  const auto weight = [&] {
    const auto [chunk, micro] = order.backward(weights++);
    ops.weight_gradient(chunk, micro);
  };
  for (int k = 0; k < total + ahead; ++k) {
    if (k < total) {
      const auto [chunk, micro] = order.forward(k);
      ops.forward(chunk, micro);
    }
    if (k < ahead) continue;
    const auto [chunk, micro] = order.backward(k - ahead);
    ops.input_gradient(chunk, micro);
    if (k - ahead >= r.rank) weight();
  }
  while (weights < total) weight();
}

}  // namespace stagecraft
