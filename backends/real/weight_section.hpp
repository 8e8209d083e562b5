#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/real/group_communicator.hpp"
#include "backends/real/stage_net.hpp"

namespace stagecraft::real {

/// Weights of a device of which the same devices have copies: the dense layers, and the experts where they are
/// divided in another way. Where states are divided, these devices have a part of them each. Arrays of a part hold
/// the parts of all sections one after the other.
struct WeightSection {
  std::int64_t first = 0, count = 0;  ///< Numbers of the weights of the device.
  int ranks = 1, rank = 0;            ///< Among the devices with copies.
  ShardRange shard;        ///< What this device updates, counted from `first`: everything, if it is not divided.
  std::int64_t part = 0;   ///< Where that lies in an array of the parts.
  GroupMember group;       ///< The devices with copies, where they meet inside of instructions.
  bool sums_here = false;  ///< No collective of the program sums the gradients, so the update does.
};

/// Without communicators.
inline std::vector<WeightSection> weight_sections(const StageNet& net, const StageWorkload& stage, int replica) {
  std::vector<WeightSection> sections;
  std::int64_t part = 0;
  const auto add = [&](std::int64_t first, std::int64_t count, int ranks, int rank) {
    const bool divides = stage.shards(StateSharding::Optimizer);
    const ShardRange shard = divides ? shard_of(count, ranks, rank) : ShardRange{0, count};
    sections.push_back({first, count, ranks, rank, shard, part, {}, false});
    part += shard.count;
  };
  add(0, net.dense_weights, stage.data_ranks(), stage.data_rank(replica));
  if (net.weights > net.dense_weights)
    add(net.dense_weights, net.weights - net.dense_weights, stage.degrees.expert_replicas(),
        stage.place(replica).expert_replica);
  return sections;
}

/// The section that a number of the weights of a device lies in.
inline const WeightSection& section_at(std::span<const WeightSection> sections, std::int64_t number) {
  return number < sections.front().count ? sections.front() : sections.back();
}

/// Numbers of an array of the parts.
inline std::int64_t part_numbers(std::span<const WeightSection> sections) {
  return sections.back().part + sections.back().shard.count;
}

/// The array of the parts, from all weights of the device.
inline std::vector<double> parts_of(std::span<const WeightSection> sections, std::span<const double> weights) {
  std::vector<double> parts;
  for (const WeightSection& s : sections) {
    const auto first = weights.begin() + s.first + s.shard.first;
    parts.insert(parts.end(), first, first + s.shard.count);
  }
  return parts;
}

}  // namespace stagecraft::real
