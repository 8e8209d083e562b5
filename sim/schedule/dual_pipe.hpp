#pragma once

#include <array>

#include "sim/schedule/layout.hpp"

namespace stagecraft {

/// The eight steps of DualPipe on rank `rank` of `ranks`, in the V form: a micro-batch goes through chunk 0 on the way
/// down the ranks and through chunk 1 on the way up, or the two chunks are two directions, which gives the same order
/// seen from the middle. Chunk c runs `micro_batches` micro-batches from `first[c]` on; there have to be 2 * ranks or
/// more.
void dual_pipe(int rank, int ranks, int micro_batches, const std::array<int, 2>& chunk, const std::array<int, 2>& first,
               RankOps& ops);

}  // namespace stagecraft
