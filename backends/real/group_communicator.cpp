// Collectives of a group of devices inside of their instructions, on whatever carries their arrays: sums, gathers,
// scatters, and rows exchanged for heads.

#include "backends/real/group_communicator.hpp"

#include <algorithm>

#include "backends/real/clocks.hpp"

namespace stagecraft::real {

void GroupCommunicator::exchange_on_host(int rank, HostNumbers numbers, const UseNumbers& use) {
  const Tensor own_numbers{const_cast<std::int32_t*>(numbers.data()), 1, std::ssize(numbers)};
  exchange(rank, own_numbers, sizeof(std::int32_t), [&](std::span<const Tensor> members) {
    std::vector<HostNumbers> of_members;
    for (const Tensor& m : members)
      of_members.emplace_back(static_cast<const std::int32_t*>(m.data), static_cast<std::size_t>(m.size()));
    use(of_members);
  });
}

void GroupMember::exchange(const Tensor& array, std::size_t width, const GroupCommunicator::UseArrays& use,
                           std::span<const std::int64_t> sizes) const {
  if (!group) return use({&array, 1});
  sizes.empty() ? group->exchange(rank, array, width, use) : group->exchange_parts(rank, array, width, sizes, use);
}

void GroupMember::exchange_on_host(GroupCommunicator::HostNumbers numbers,
                                   const GroupCommunicator::UseNumbers& use) const {
  group ? group->exchange_on_host(rank, numbers, use) : use({&numbers, 1});
}

void GroupMember::collective(CollectiveKind kind, std::int64_t numbers, const Tensor& array, std::size_t width,
                             const GroupCommunicator::UseArrays& use, std::span<const std::int64_t> sizes) const {
  if (!watch || !group) return exchange(array, width, use, sizes);
  watch->arrived();
  const double begin = steady_seconds();
  exchange(array, width, use, sizes);
  watch->ended(measured_as, kind, size(), numbers, steady_seconds() - begin);
}

ShardRange shard_of(std::int64_t numbers, int ranks, int rank) {
  const std::int64_t first = numbers * rank / ranks;
  return {first, numbers * (rank + 1) / ranks - first};
}

namespace {

char* number_at(void* data, std::int64_t numbers, std::size_t width) {
  return static_cast<char*>(data) + numbers * static_cast<std::int64_t>(width);
}

Tensor part_of(const Kernels& kernels, const Tensor& array, std::int64_t first, std::int64_t count) {
  return {number_at(array.data, first, width_of(kernels, array)), 1, count, array.is_wide};
}

void copy_numbers(Kernels& kernels, const Tensor& from, const Tensor& to) {
  kernels.copy(from.data, to.data, bytes_of(kernels, to));
}

/// to = the sum of arrays, in their order. Numbers of 16 bits are added in 32, so that their sum is rounded once.
void add_in_order(DeviceMemory& memory, std::span<const Tensor> arrays, const Tensor& to) {
  Kernels& kernels = memory.kernels();
  const bool rounds_each = kernels.width() == kMixedWidth && !to.is_wide && arrays.size() > 2;
  Array wide;
  if (rounds_each) {
    wide = Array(memory, to.rows, to.columns, Use::Activations, NumberWidth::Wide);
    kernels.zero(wide.data(), bytes_of(kernels, wide.tensor()));
  } else {
    copy_numbers(kernels, arrays[0], to);
  }
  const Tensor sum = rounds_each ? wide.tensor() : to;
  for (const Tensor& next : arrays.subspan(rounds_each ? 0 : 1))
    kernels.add({next.data, to.rows, to.columns, to.is_wide}, sum);
  if (rounds_each) kernels.narrow(sum, to);
}

/// Numbers [first, first + count) of each array.
std::vector<Tensor> parts_of(const Kernels& kernels, std::span<const Tensor> arrays, std::int64_t first,
                             std::int64_t count) {
  std::vector<Tensor> parts;
  for (const Tensor& array : arrays) parts.push_back(part_of(kernels, array, first, count));
  return parts;
}

/// Numbers of one sample in an array of whole samples.
std::int64_t sample_size(const Tensor& array, std::int64_t samples) { return array.size() / samples; }

}  // namespace

void sum_over(const GroupMember& member, DeviceMemory& memory, const Tensor& in, const Tensor& sum) {
  member.collective(CollectiveKind::AllReduce, in.size(), in, width_of(memory.kernels(), in),
                    [&](std::span<const Tensor> all_members) { add_in_order(memory, all_members, sum); });
}

void scatter_sum(const GroupMember& member, DeviceMemory& memory, const Tensor& array) {
  Kernels& kernels = memory.kernels();
  const std::size_t width = width_of(kernels, array);
  const ShardRange shard = shard_of(array.size(), member.size(), member.rank);
  if (shard.count == 0) return member.exchange(array, width, [](auto) {});
  member.collective(CollectiveKind::ReduceScatter, array.size(), array, width, [&](std::span<const Tensor> arrays) {
    const Array sum(memory, 1, shard.count, Use::Gradients);
    add_in_order(memory, parts_of(kernels, arrays, shard.first, shard.count), sum.tensor());
    copy_numbers(kernels, sum.tensor(), part_of(kernels, array, shard.first, shard.count));
  });
}

void maximum_over(const GroupMember& member, DeviceMemory& memory, const Tensor& in, const Tensor& largest) {
  Kernels& kernels = memory.kernels();
  member.collective(CollectiveKind::AllReduce, in.size(), in, width_of(kernels, in),
                    [&](std::span<const Tensor> all_members) {
                      copy_numbers(kernels, all_members[0], largest);
                      for (const Tensor& next : all_members.subspan(1)) kernels.maximum(next, largest);
                    });
}

void gather_rows(const GroupMember& member, DeviceMemory& memory, std::int64_t samples, const Tensor& part,
                 const Tensor& whole) {
  Kernels& kernels = memory.kernels();
  const std::int64_t each = sample_size(part, samples);
  member.collective(
      CollectiveKind::AllGather, whole.size(), part, width_of(kernels, part), [&](std::span<const Tensor> parts) {
        std::int64_t next = 0;
        for (std::int64_t s = 0; s < samples; ++s)
          for (const Tensor& from : parts) {
            copy_numbers(kernels, part_of(kernels, from, s * each, each), part_of(kernels, whole, next, each));
            next += each;
          }
      });
}

void scatter_rows(const GroupMember& member, DeviceMemory& memory, std::int64_t samples, const Tensor& whole,
                  const Tensor& part) {
  Kernels& kernels = memory.kernels();
  const std::int64_t each = sample_size(part, samples);
  member.collective(CollectiveKind::ReduceScatter, whole.size(), whole, width_of(kernels, whole),
                    [&](std::span<const Tensor> wholes) {
                      for (std::int64_t s = 0; s < samples; ++s)
                        add_in_order(memory, parts_of(kernels, wholes, (s * member.size() + member.rank) * each, each),
                                     part_of(kernels, part, s * each, each));
                    });
}

void take_rows(const GroupMember& member, DeviceMemory& memory, std::int64_t samples, const Tensor& whole,
               const Tensor& part) {
  Kernels& kernels = memory.kernels();
  const std::int64_t each = sample_size(part, samples);
  for (std::int64_t s = 0; s < samples; ++s)
    copy_numbers(kernels, part_of(kernels, whole, (s * member.size() + member.rank) * each, each),
                 part_of(kernels, part, s * each, each));
}

namespace {

/// Calls visit(first row with all columns, its first column, first row with a part of the columns, its first column,
/// count of columns) for all numbers that the rows of member `of_rows` and the columns of member `of_columns` have in
/// common: as many rows, one after the other, as a sample has on a member.
template <class Visit>
void for_each_common(const GroupMember& group, std::int64_t samples, const std::vector<int>& blocks,
                     std::int64_t rows_of_sample, int of_rows, int of_columns, Visit&& visit) {
  const std::int64_t size = group.size();
  for (std::int64_t s = 0; s < samples; ++s) {
    std::int64_t begin = 0, next = 0;
    for (const std::int64_t block : blocks) {
      const std::int64_t each = block / size;
      visit(s * rows_of_sample, begin + of_columns * each, (s * size + of_rows) * rows_of_sample, next, each);
      begin += block;
      next += each;
    }
  }
}

}  // namespace

void rows_to_heads(const GroupMember& member, DeviceMemory& memory, std::int64_t samples,
                   const std::vector<int>& blocks, const Tensor& rows, const Tensor& heads) {
  Kernels& kernels = memory.kernels();
  const std::size_t width = kernels.width();
  const std::int64_t count = rows.rows / samples;
  member.collective(CollectiveKind::AllToAll, rows.size(), rows, width, [&](std::span<const Tensor> members) {
    for (int m = 0; m < member.size(); ++m)
      for_each_common(member, samples, blocks, count, m, member.rank,
                      [&](std::int64_t row, std::int64_t column, std::int64_t to_row, std::int64_t to, std::int64_t n) {
                        kernels.copy_rows(number_at(members[m].data, row * rows.columns + column, width), rows.columns,
                                          number_at(heads.data, to_row * heads.columns + to, width), heads.columns,
                                          count, n);
                      });
  });
}

void heads_to_rows(const GroupMember& member, DeviceMemory& memory, std::int64_t samples,
                   const std::vector<int>& blocks, const Tensor& heads, const Tensor& rows) {
  Kernels& kernels = memory.kernels();
  const std::size_t width = kernels.width();
  const std::int64_t count = rows.rows / samples;
  member.collective(CollectiveKind::AllToAll, rows.size(), heads, width, [&](std::span<const Tensor> members) {
    for (int m = 0; m < member.size(); ++m)
      for_each_common(
          member, samples, blocks, count, member.rank, m,
          [&](std::int64_t row, std::int64_t to, std::int64_t from_row, std::int64_t column, std::int64_t n) {
            kernels.copy_rows(number_at(members[m].data, from_row * heads.columns + column, width), heads.columns,
                              number_at(rows.data, row * rows.columns + to, width), rows.columns, count, n);
          });
  });
}

void gather_range(const GroupMember& member, DeviceMemory& memory, std::int64_t numbers, const Tensor& part,
                  const ShardRange& range, void* to) {
  Kernels& kernels = memory.kernels();
  const std::size_t width = width_of(kernels, part);
  std::vector<std::int64_t> sizes;
  for (int rank = 0; rank < member.size(); ++rank) sizes.push_back(shard_of(numbers, member.size(), rank).count);
  const auto put_together = [&](std::span<const Tensor> parts) {
    for (int rank = 0; rank < member.size(); ++rank) {
      const ShardRange shard = shard_of(numbers, member.size(), rank);
      const std::int64_t low = std::max(shard.first, range.first);
      const std::int64_t high = std::min(shard.first + shard.count, range.first + range.count);
      if (low >= high) continue;
      const void* const from = number_at(parts[rank].data, low - shard.first, width);
      void* const there = number_at(to, low - range.first, width);
      if (from != there) kernels.copy(from, there, static_cast<std::size_t>(high - low) * width);
    }
  };
  member.collective(CollectiveKind::AllGather, range.count, part, width, put_together, sizes);
}

void scatter_range(const GroupMember& member, DeviceMemory& memory, std::int64_t numbers, const Tensor& in,
                   const ShardRange& range, const Tensor& part) {
  Kernels& kernels = memory.kernels();
  member.collective(CollectiveKind::ReduceScatter, range.count, in, width_of(kernels, in),
                    [&](std::span<const Tensor> arrays) {
                      const ShardRange shard = shard_of(numbers, member.size(), member.rank);
                      const std::int64_t low = std::max(shard.first, range.first);
                      const std::int64_t high = std::min(shard.first + shard.count, range.first + range.count);
                      if (low >= high) return;
                      const Array sum(memory, 1, high - low, Use::Gradients);
                      add_in_order(memory, parts_of(kernels, arrays, low - range.first, high - low), sum.tensor());
                      kernels.add(sum.tensor(), part_of(kernels, part, low - shard.first, high - low));
                    });
}

}  // namespace stagecraft::real
