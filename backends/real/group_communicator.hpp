#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "backends/real/array.hpp"
#include "sim/core/parallel.hpp"
#include "sim/cost/profile.hpp"

namespace stagecraft::real {

/// Devices that compute the same instructions together and exchange arrays inside of them. All of them call the same
/// functions in the same order.
class GroupCommunicator {
 public:
  virtual ~GroupCommunicator() = default;
  virtual int size() const = 0;
  using UseArrays = std::function<void(std::span<const Tensor>)>;
  /// Calls use() with the arrays of all members, which are equally large, in the order of their ranks. What a member
  /// does after it returned may overwrite the array that it brought. Numbers of an array have `width` bytes; all arrays
  /// are wide, or none.
  virtual void exchange(int rank, const Tensor& array, std::size_t width, const UseArrays& use) = 0;
  /// Exchanges arrays of different sizes. `sizes` has the count of numbers of each member, because one that does not
  /// see the memory of another one has to know what will come.
  virtual void exchange_parts(int rank, const Tensor& array, std::size_t width, std::span<const std::int64_t> /*sizes*/,
                              const UseArrays& use) {
    exchange(rank, array, width, use);
  }
  using HostNumbers = std::span<const std::int32_t>;
  using UseNumbers = std::function<void(std::span<const HostNumbers>)>;
  /// Calls use() with what all members bring in host memory. No member knows the counts of the others.
  virtual void exchange_on_host(int rank, HostNumbers numbers, const UseNumbers& use);
  /// Wakes the threads that wait here when a run is to end.
  virtual void interrupt() {}
};

/// Learns how long collectives take, from the arrival of a member until it goes on.
class CollectiveWatch {
 public:
  virtual ~CollectiveWatch() = default;
  virtual void arrived() {}
  /// `numbers`: the whole array, as CollectiveCall counts it. `seconds`: by the clock of the host.
  virtual void ended(CollectiveUse, CollectiveKind, int ranks, std::int64_t numbers, double seconds) = 0;
};

/// One member of a group. A default one is alone: its communication does nothing.
struct GroupMember {
  GroupCommunicator* group = nullptr;
  int rank = 0;
  CollectiveWatch* watch = nullptr;  ///< Null outside of measurements.
  CollectiveUse measured_as = CollectiveUse::Ops;

  int size() const { return group ? group->size() : 1; }
  explicit operator bool() const { return group != nullptr; }
  /// See GroupCommunicator::exchange(), and with sizes GroupCommunicator::exchange_parts().
  void exchange(const Tensor& array, std::size_t width, const GroupCommunicator::UseArrays& use,
                std::span<const std::int64_t> sizes = {}) const;
  /// See GroupCommunicator::exchange_on_host().
  void exchange_on_host(GroupCommunicator::HostNumbers numbers, const GroupCommunicator::UseNumbers& use) const;
  /// Exchanges arrays as exchange() does, and tells the watch how long it took. `numbers`: see CollectiveWatch.
  void collective(CollectiveKind, std::int64_t numbers, const Tensor& array, std::size_t width,
                  const GroupCommunicator::UseArrays& use, std::span<const std::int64_t> sizes = {}) const;
};

/// The communicators of the tensor, context and expert groups that a device belongs to.
struct MemberGroups {
  GroupMember tensor, context, experts;
};

/// Numbers [first, first + count) of an array that a group divides, in parts as equal as whole numbers allow.
struct ShardRange {
  std::int64_t first = 0, count = 0;
};
ShardRange shard_of(std::int64_t numbers, int ranks, int rank);

/// Every member gets the sum, added up in the order of the ranks, so all of them get the same bits. In mixed precision
/// members exchange numbers of 16 bits, add them in 32 and round the sum once.
void sum_over(const GroupMember&, DeviceMemory&, const Tensor& in, const Tensor& sum);
/// Each member gets the sum of its part of an array, shard_of(numbers, ...), in place; the rest stays.
void scatter_sum(const GroupMember&, DeviceMemory&, const Tensor& array);
/// Every member gets the largest numbers.
void maximum_over(const GroupMember&, DeviceMemory&, const Tensor& in, const Tensor& largest);

/// Arrays of `samples` blocks of rows, of which the members have equal parts, in the order of their ranks.
/// gather_rows() puts the parts together; scatter_rows() sums whole arrays and keeps the rows of this member.
void gather_rows(const GroupMember&, DeviceMemory&, std::int64_t samples, const Tensor& part, const Tensor& whole);
void scatter_rows(const GroupMember&, DeviceMemory&, std::int64_t samples, const Tensor& whole, const Tensor& part);
/// The rows of this member, without communication.
void take_rows(const GroupMember&, DeviceMemory&, std::int64_t samples, const Tensor& whole, const Tensor& part);

/// Exchanges rows for heads (DeepSpeed-Ulysses). Before, each member has its rows of all columns; after, it has all
/// rows and its part of each of the blocks of columns, whose widths are given. heads_to_rows() is the way back.
void rows_to_heads(const GroupMember&, DeviceMemory&, std::int64_t samples, const std::vector<int>& blocks,
                   const Tensor& rows, const Tensor& heads);
void heads_to_rows(const GroupMember&, DeviceMemory&, std::int64_t samples, const std::vector<int>& blocks,
                   const Tensor& heads, const Tensor& rows);

/// Numbers `range` of an array of `numbers` numbers, of which each member brings its part, shard_of(numbers, ...).
void gather_range(const GroupMember&, DeviceMemory&, std::int64_t numbers, const Tensor& part, const ShardRange& range,
                  void* to);
/// Adds the sum over all members of numbers `range` of an array to this member's part of that array, as far as they lie
/// in it.
void scatter_range(const GroupMember&, DeviceMemory&, std::int64_t numbers, const Tensor& in, const ShardRange& range,
                   const Tensor& part);

}  // namespace stagecraft::real
