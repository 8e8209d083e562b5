#pragma once

#include <cstdint>
#include <vector>

#include "backends/real/kernels.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// Weights of a device that lie side by side both in the undivided weights and in its own.
struct WeightSlice {
  std::int64_t whole = 0, part = 0, count = 0;  ///< Offsets in both.
};

/// How the rows or columns of an array lie on a tensor group. Without sequence parallelism, rows are never divided.
enum class Layout : std::uint8_t {
  Whole,    ///< Each device has all rows and columns (of its context rank).
  Rows,     ///< Sequence parallelism: each device has the next part of the rows of each sample.
  Columns,  ///< Each device has some columns, heads or words.
  Experts   ///< Each device has the rows that were sent to its experts.
};

/// Where an operation reads its inputs and leaves its output; `sequence` as in Degrees.
Layout input_layout(const Operation&, bool sequence);
Layout output_layout(const Operation&, bool sequence);
/// Whether its outputs are sums that the tensor group still has to add up.
bool makes_partial_sums(const Operation&);

/// The part of an operation that one device of a tensor and context group computes. It is an ordinary operation with
/// fewer rows, columns, heads or words, so kernels need not know of groups.
///
/// Column-divided products give each device its share of every block of columns: of Q, K and V, or of both halves of a
/// gated activation. What a row-divided product adds once, its bias, and the positions of an embedding are with the
/// first device of the group alone: its part of the sum then has them. (Megatron-LM keeps a copy on each device and
/// adds it after the sum; weights and gradients are equal.) Words are divided as equally as whole numbers allow. Each
/// rank of experts has the next part of all experts, and their products are divided over the expert-tensor group.
struct DividedOperation {
  Operation operation;
  std::vector<WeightSlice> slices;  ///< Offsets within the weights of the operation; `whole` in the undivided ones.
  int rows = 1;                     ///< Rows of a sample here; an embedding keeps the positions of all rows.
  int first_word = 0, words = 0;    ///< See Call.
};
/// `blocks`: numbers of columns of the blocks of a column-divided product, in order. `width`: bytes of a number. Throws
/// InputError for operations that cannot be divided so.
DividedOperation divide(const Operation&, const std::vector<int>& blocks, const Degrees&, const GroupPlace&,
                        std::size_t width);

/// The blocks of columns of operation `place`, from what reads it.
std::vector<int> column_blocks(const std::vector<Operation>&, int place);

}  // namespace stagecraft::real
