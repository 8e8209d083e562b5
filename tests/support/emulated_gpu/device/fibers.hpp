#pragma once

#include <vector_types.h>

#include <cstddef>
#include <functional>

namespace stagecraft::emulated_gpu {

/// Where the thread that runs is.
struct Here {
  uint3 thread{}, block{};
  dim3 block_size, grid_size;
  char* shared = nullptr;
  std::size_t shared_bytes = 0;
};
inline Here where;
inline Here& here() { return where; }

/// Runs every block of a grid, one after the other, and its threads as fibers, in a newly drawn order after every
/// barrier. A barrier that only some threads reach is Misuse.
void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread);
void barrier();

}  // namespace stagecraft::emulated_gpu
