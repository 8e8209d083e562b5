// The schedule `group-interleaved`: interleaved 1F1B that turns to the next chunk after few micro-batches, by default
// half the number of ranks, which needs the least memory.

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec group_interleaved_fields{
    .title = "Interleaved 1F1B in small groups.",
    .fields = {
        chunks_field(),
        config::integer("group", 1, 1 << 20)
            .optional()
            .doc("Micro-batches that a device runs through a chunk before it turns to the next chunk. Default: half "
                 "the number of ranks, which needs the least memory."),
        config::integer("recompute_chunks", 0, 1024)
            .fallback("0")
            .doc("Number of chunks on each device, from the first, that recompute. Requires plan.recompute: none.")}};

struct GroupInterleavedOptions {
  int group = 0;  ///< 0: half of the ranks, rounded up.
  int recompute_chunks = 0;
  friend bool operator==(const GroupInterleavedOptions&, const GroupInterleavedOptions&) = default;
};

void read_group_interleaved(const config::Value& map, ScheduleOptions& options) {
  options.keep(GroupInterleavedOptions{option_or(map, "group", 0), option_or(map, "recompute_chunks", 0)});
}

struct GroupInterleavedSlot {
  int time;
  bool forward;
  int chunk, micro;
};

/// When the passes of one group run on a rank: a building block that repeats every 3 * group * chunks steps of one op.
struct Block {
  int ranks, chunks, group;
  int spread = (ranks + 1) / 2;                 ///< Micro-batches between two chunks of one, at least.
  int turns = (spread + group - 1) / group;     ///< `spread` in groups.
  int runs = chunks / std::gcd(chunks, turns);  ///< Chunks until steps would collide.

  int period() const { return 3 * group * chunks; }
  int turn_of(int chunk) const { return 3 * group * (turns * chunk + chunk / runs); }
  int forward(int rank, int chunk, int index) const { return turn_of(chunk) + 3 * index + rank; }
  /// The first backward follows the last forward as soon as it can have come back: one step each hop there, two back.
  int backward(int rank, int chunk, int index) const {
    return forward(rank, chunks - 1, 0) + 3 * (ranks - 1 - rank) + 1 + turn_of(chunks - 1 - chunk) + 3 * index;
  }
};

void group_interleaved_order(const RankInput& r, RankOps& ops) {
  const auto [group, recompute] = r.in.options.as<GroupInterleavedOptions>();
  const Block block{r.ranks, r.chunks, group > 0 ? group : (r.ranks + 1) / 2};
  std::vector<GroupInterleavedSlot> slots;
  for (int micro = 0; micro < r.micro_batches; ++micro) {
    const int start = micro / block.group * block.period(), index = micro % block.group;
    for (int chunk = 0; chunk < r.chunks; ++chunk) {
      slots.push_back({start + block.forward(r.rank, chunk, index), true, chunk, micro});
      slots.push_back({start + block.backward(r.rank, chunk, index), false, chunk, micro});
    }
  }
  std::sort(slots.begin(), slots.end(),
            [](const GroupInterleavedSlot& a, const GroupInterleavedSlot& b) { return a.time < b.time; });
  for (const auto& [time, forward, chunk, micro] : slots) {
    if (forward) {
      ops.forward(chunk, micro);
      continue;
    }
    if (chunk < recompute) ops.recompute(chunk, micro);
    ops.input_gradient(chunk, micro);
    ops.weight_gradient(chunk, micro);
  }
}

}  // namespace

extern const ScheduleDef group_interleaved{
    .name = "group-interleaved",
    .summary = "Interleaved 1F1B in the smallest groups: less memory, slightly larger bubble",
    .source = "Wan et al., PipeOffload, 2025; sail-sg/zero-bubble-pipeline-parallelism, group_interleaved_1f1b.py",
    .placement = Placement::Loop,
    .chunks = {2, kManyChunks},
    .fields = &group_interleaved_fields,
    .read = read_group_interleaved,
    .rank = group_interleaved_order,
};

}  // namespace stagecraft::schedules
