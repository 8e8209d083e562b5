#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "backends/real/kernels.hpp"
#include "sim/program/program.hpp"

// The one place that says what each kind of collective does with data: which numbers of which member become, or are
// added to, which numbers of a result. Threads, TCP, MPI and GPUs run collectives of a Program by it. Gradients and
// weights are wide in mixed precision, too; what the ranks of a pipeline exchange for a vocabulary may not be.

namespace stagecraft::real {

/// Numbers of one member's input that become, or are added to, numbers of a result.
struct ResultPart {
  int source = 0;                            ///< Rank of the member that brings the input.
  std::int64_t from = 0, to = 0, count = 0;  ///< Offsets in that input and in the result.
  bool add = false;
};

/// The steps that make the result of the member `rank`, in their order; `numbers` is the length of the whole array.
/// Sums add the inputs in the order of the members' ranks, so all backends get the same bits. The lengths of scattered
/// and gathered parts differ by one at most. An all-to-all moves parts of numbers / members, rounded down, and leaves
/// the remaining numbers as they are.
std::vector<ResultPart> result_parts(CollectiveKind, int members, int rank, std::int64_t numbers);

/// How many numbers the member `rank` brings.
std::int64_t input_numbers(CollectiveKind, int members, int rank, std::int64_t numbers);

/// Every rank gets the same result from sums or from the root, so it is computed once.
inline bool is_computed_once(CollectiveKind kind) {
  return kind == CollectiveKind::AllReduce || kind == CollectiveKind::Broadcast;
}

/// Where the input and the result of a member are.
struct MemberArrays {
  Tensor input, output;
};

/// Input and output in one whole array: a member's scattered part lies at its place, as in the in-place forms of NCCL.
MemberArrays in_place(CollectiveKind, int members, int rank, Tensor whole, std::size_t width);

/// Does one step of a result.
void write_part(Kernels&, const ResultPart&, Tensor input, Tensor output);

/// The arrays of the members of collectives, and who computes there.
class CollectiveArrays {
 public:
  virtual ~CollectiveArrays() = default;
  virtual std::int64_t numbers(const CollectiveCall&) = 0;  ///< Size of the whole array; known for all collectives.
  virtual MemberArrays arrays(InstructionId member) = 0;    ///< The member must be in this process.
  virtual Kernels* kernels_of(InstructionId member) = 0;    ///< Null for members of other processes.
};

/// A collective whose members are all here. The kernels of the first one do everything.
void run_collective(const Program&, const CollectiveCall&, CollectiveArrays&);
/// The results of the members that are here, from what all members bring.
void finish_collective(const Program&, const CollectiveCall&, CollectiveArrays&, std::span<const void* const> inputs);

/// Adds numbers of all members of an all-reduce in the order of their ranks. All of it is in plain memory.
void add_up(Kernels&, std::span<const void* const> parts, std::size_t bytes, bool is_wide, void* sum);
/// Copies the sum of an all-reduce, which is in plain memory, to the members that are here.
void finish_sum(const CollectiveCall&, CollectiveArrays&, const void* sum);

/// A copy of an array until the end of its scope.
class ScratchCopy {
 public:
  ScratchCopy(Kernels&, Tensor);
  ~ScratchCopy();
  ScratchCopy(const ScratchCopy&) = delete;
  ScratchCopy& operator=(const ScratchCopy&) = delete;
  const Tensor& tensor() const { return copy_; }

 private:
  Kernels& kernels_;
  Tensor copy_;
};

/// What has to be copied before a collective that works in place overwrites it too early: everything that a member
/// brings to an all-to-all, and what it brings to its own part of a reduce-scatter; else nothing.
Tensor overwritten_early(CollectiveKind, int rank, const MemberArrays&);

/// The step with the copy in place of what was overwritten.
struct SafeStep {
  ResultPart part;
  Tensor input;
};
SafeStep safe_step(CollectiveKind, int rank, const ResultPart&, Tensor input, const ScratchCopy* copy_of_source);

}  // namespace stagecraft::real
