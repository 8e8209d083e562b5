#pragma once

#include <cstddef>

#include "sim/core/quantity.hpp"

namespace stagecraft {

/// Memory of this machine, or container, that the process may still take; infinite when unknown.
Bytes free_memory();

/// Asks for huge pages where the system offers them; nothing happens where it does not, or for small blocks.
void prefer_huge_pages(void* start, std::size_t bytes);

/// v.reserve(n) for columns of a program: touching hundreds of megabytes in small pages costs more than filling them.
template <class Column>
void reserve_column(Column& v, std::size_t n) {
  v.reserve(n);
  prefer_huge_pages(v.data(), n * sizeof(*v.data()));
}

}  // namespace stagecraft
