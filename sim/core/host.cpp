// Free memory of this machine, and settings of this process: freed memory stays with it, large blocks get huge pages.

#include "sim/core/host.hpp"

#ifdef __linux__
#include <malloc.h>
#include <sys/mman.h>
#endif
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

#include "sim/core/numbers.hpp"

namespace stagecraft {

Bytes free_memory() {
  double bytes = kInfinity;
  std::ifstream info("/proc/meminfo");
  std::string word;
  while (info >> word)
    if (double kibibytes = 0; word == "MemAvailable:" && info >> kibibytes) bytes = kibibytes * 1024;
  // A container may have less than its machine.
  std::ifstream limit_file("/sys/fs/cgroup/memory.max"), taken("/sys/fs/cgroup/memory.current");
  if (double limit = 0, current = 0; limit_file >> limit && taken >> current) bytes = std::min(bytes, limit - current);
  rlimit allowed{};
  if (getrlimit(RLIMIT_AS, &allowed) == 0 && allowed.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, static_cast<double>(allowed.rlim_cur));
  return {bytes};
}

void keep_freed_memory() {
#ifdef __GLIBC__
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // The most that glibc accepts.
#endif
}

void prefer_huge_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  constexpr std::uintptr_t huge = std::uintptr_t{2} << 20;
  const auto first = (reinterpret_cast<std::uintptr_t>(start) + huge - 1) / huge * huge;
  const auto last = (reinterpret_cast<std::uintptr_t>(start) + bytes) / huge * huge;
  if (bytes > 2 * huge && last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

}  // namespace stagecraft
