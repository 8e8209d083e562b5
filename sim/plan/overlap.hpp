#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sim/cost/load.hpp"
#include "sim/plan/plan.hpp"

namespace stagecraft {

/// Samples [low, high) that one replica of a stage handles in one micro-batch, counted through the iterations.
struct SampleRange {
  std::int64_t low = 0, high = 0;
};

/// Whether the replica has a part in the micro-batch.
inline bool takes_part(const Stage& stage, int micro, int replica) {
  return stage.share == Share::Samples || micro % stage.turns() == replica;
}

inline SampleRange samples_of(const Stage& stage, int micro, int replica) {
  const std::int64_t size = stage.micro_batch_size, replicas = stage.replicas();
  const std::int64_t start = micro * size;
  if (stage.share == Share::MicroBatches) return {start, takes_part(stage, micro, replica) ? start + size : start};
  return {start + size * replica / replicas, start + size * (replica + 1) / replicas};
}

/// Number of samples that a replica handles of each micro-batch that it has a part in.
inline std::int64_t samples_at_once(const Stage& stage, int replica) {
  const SampleRange share = samples_of(stage, replica % stage.turns(), replica);
  return share.high - share.low;
}

/// The load of a replica in those micro-batches, in the mean where they differ.
inline Load load_at_once(const Stage& stage, int replica) {
  Load load = stage.mean_load;
  load.samples *= static_cast<double>(samples_at_once(stage, replica));
  return load;
}

/// Replicas [first, end).
struct ReplicaRange {
  int first = 0, end = 0;
};

/// The replicas that have a part in the micro-batch.
inline ReplicaRange replicas_of(const Stage& stage, int micro) {
  if (stage.share == Share::MicroBatches) return {micro % stage.turns(), micro % stage.turns() + 1};
  return {0, stage.replicas()};
}

/// The replicas whose part of the micro-batch ends after `sample`, which is in the micro-batch or before it.
inline ReplicaRange replicas_from(const Stage& stage, int micro, std::int64_t sample) {
  ReplicaRange range = replicas_of(stage, micro);
  const std::int64_t within = sample - micro * static_cast<std::int64_t>(stage.micro_batch_size);
  if (stage.share == Share::MicroBatches || within <= 0) return range;
  // The samples of replica r end before number size * (r + 1) / replicas, rounded down.
  const std::int64_t size = stage.micro_batch_size;
  range.first = static_cast<int>(((within + 1) * range.end + size - 1) / size - 1);
  return range;
}

/// Calls visit(micro, replica, samples) for every piece of `other` that shares samples with one piece of `stage`;
/// `samples` is the SampleRange that both share. With equal sizes and no replicas, only the same micro-batch does.
template <class Visit>
void for_each_shared_range(const Stage& stage, int micro, int replica, const Stage& other, Visit&& visit) {
  if (stage.micro_batch_size == other.micro_batch_size && stage.leaders.size() == 1 && other.leaders.size() == 1) {
    const std::int64_t low = std::int64_t{micro} * stage.micro_batch_size;
    visit(micro, 0, SampleRange{low, low + stage.micro_batch_size});
    return;
  }
  const SampleRange samples = samples_of(stage, micro, replica);
  const int size = other.micro_batch_size;
  for (auto m = static_cast<int>(samples.low / size); static_cast<std::int64_t>(m) * size < samples.high; ++m) {
    const ReplicaRange there = replicas_from(other, m, samples.low);
    for (int r = there.first; r < there.end; ++r) {
      const SampleRange theirs = samples_of(other, m, r);
      if (theirs.low >= samples.high) break;
      const std::int64_t low = std::max(samples.low, theirs.low), high = std::min(samples.high, theirs.high);
      if (low < high) visit(m, r, SampleRange{low, high});
    }
  }
}

/// Like for_each_shared_range(), but visit(micro, replica, samples) gets the number of shared samples.
template <class Visit>
void for_each_overlap(const Stage& stage, int micro, int replica, const Stage& other, Visit&& visit) {
  for_each_shared_range(stage, micro, replica, other, [&](int m, int r, SampleRange shared) {
    visit(m, r, static_cast<int>(shared.high - shared.low));
  });
}

/// Numbers the pieces (stage, micro-batch, replica) of all iterations. A replica without a part in a micro-batch has no
/// piece of it. After the pieces of each stage there is a gap: all stages run an op at about the same time, and where
/// the number of micro-batches is a power of two, equal micro-batches of many stages would otherwise be in the same few
/// sets of the processor's cache.
class PieceIndex {
 public:
  PieceIndex(const Plan& plan, int iterations);
  std::size_t index(StageId stage, int micro, int replica) const {
    const std::size_t each = each_[stage];
    return base_[stage] + static_cast<std::size_t>(micro) * each + (each > 1 ? static_cast<std::size_t>(replica) : 0);
  }
  std::size_t size() const { return size_; }

 private:
  IdVector<StageId, std::size_t> base_, each_;  ///< First piece of each stage, and its number of pieces a micro-batch.
  std::size_t size_ = 0;
};

/// Edges that leave and enter each stage, as indices into plan.edges.
struct EdgeLists {
  IdVector<StageId, std::vector<int>> out, in;
  explicit EdgeLists(const Plan& plan);
};

/// Position of a device in a list; -1 if the list does not have it.
int place_of(const std::vector<DeviceId>& devices, DeviceId);
/// Which replica of its stage a device is: -1 when the stage does not run there.
inline int replica_on(const Stage& stage, DeviceId device) {
  if (stage.leaders.size() == 1) return stage.leaders.front() == device ? 0 : -1;
  return place_of(stage.leaders, device);
}

}  // namespace stagecraft
