#pragma once

#include <cstddef>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Memory of this machine, or container, that the process may still take; infinite when unknown.
Bytes free_memory();

/// Asks for huge pages where the system offers them; nothing happens where it does not, or for small blocks.
void prefer_huge_pages(void* start, std::size_t bytes);

/// Has the system map the pages of a block now, on threads_for() these instructions, in place of one by one when they
/// are first used; what the block contains stays. Nothing happens where that is one thread.
void populate_pages(void* start, std::size_t bytes, std::size_t instructions);

/// Freed memory stays with the process: many runs in one process would give it back and ask for it again, and on a
/// virtual machine each page that is asked for can take tens of microseconds. For main(), before there are threads.
void keep_freed_memory();

/// v.reserve(n) for columns of a program, at least `filled` of which are used: touching hundreds of megabytes in small
/// pages costs more than filling them, and what is not filled takes no memory.
template <class Column>
void reserve_column(Column& v, std::size_t n, std::size_t filled) {
  v.reserve(n);
  prefer_huge_pages(v.data(), n * sizeof(*v.data()));
  populate_pages(v.data(), filled * sizeof(*v.data()), filled);
}
template <class Column>
void reserve_column(Column& v, std::size_t n) {
  reserve_column(v, n, n);
}

}  // namespace stagecraft
