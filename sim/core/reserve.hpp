#pragma once

#include <cstddef>
#include <vector>

namespace stagecraft {

/// Asks for huge pages where the system offers them; nothing happens where it does not, or for small blocks.
void prefer_huge_pages(void* start, std::size_t bytes);

/// v.reserve(n) for columns of a program: touching hundreds of megabytes in small pages costs more than filling them.
template <class T>
void reserve_column(std::vector<T>& v, std::size_t n) {
  v.reserve(n);
  prefer_huge_pages(v.data(), n * sizeof(T));
}

}  // namespace stagecraft
