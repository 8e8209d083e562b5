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
#include <utility>

#include "sim/core/numbers.hpp"
#include "sim/core/thread_scope.hpp"

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

#ifdef __linux__
namespace {

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;

/// The first address of the huge pages that lie inside of a block, and the one after them.
std::pair<std::uintptr_t, std::uintptr_t> huge_pages_in(void* start, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(start);
  const std::uintptr_t first = (address + kHugePage - 1) / kHugePage * kHugePage;
  return {first, std::max(first, (address + bytes) / kHugePage * kHugePage)};
}

}  // namespace
#endif

void prefer_huge_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes) {
#ifdef __linux__
  const auto [first, last] = huge_pages_in(start, bytes);
  if (bytes > 2 * kHugePage && last > first) madvise(reinterpret_cast<void*>(first), last - first, MADV_HUGEPAGE);
#endif
}

void populate_pages([[maybe_unused]] void* start, [[maybe_unused]] std::size_t bytes,
                    [[maybe_unused]] std::size_t instructions) {
#ifdef MADV_POPULATE_WRITE  // Linux 5.14; an older one refuses it, and pages are then cleared as they are used.
  if (threads_for(instructions) == 1) return;
  const auto [first, last] = huge_pages_in(start, bytes);
  run_parts(instructions, static_cast<int>((last - first) / kHugePage), [begin = first](int page) {
    madvise(reinterpret_cast<void*>(begin + page * kHugePage), kHugePage, MADV_POPULATE_WRITE);
  });
#endif
}

}  // namespace stagecraft
