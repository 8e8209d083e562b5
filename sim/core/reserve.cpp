#include "sim/core/reserve.hpp"

#include <cstdint>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace stagecraft {

void prefer_huge_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t huge = std::uintptr_t{2} << 20;
  const auto first = (reinterpret_cast<std::uintptr_t>(start) + huge - 1) / huge * huge;
  const auto last = (reinterpret_cast<std::uintptr_t>(start) + bytes) / huge * huge;
  if (bytes > 2 * huge && last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace stagecraft
