#include "backends/cuda/arena.hpp"

#include <algorithm>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kAlignment = 256;  // The alignment of cudaMalloc.

std::size_t rounded(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

/// How many pieces of work are over at `from` that are not at `known`.
std::uint64_t ahead(const Moment& from, const Moment& known) {
  std::uint64_t sum = 0;
  for (std::size_t q = 0; q < from.size(); ++q) {
    const std::uint32_t own = q < known.size() ? known[q] : 0;
    sum += from[q] > own ? from[q] - own : 0;
  }
  return sum;
}

}  // namespace

/// The smallest stretch among the ones with the shortest wait. Adjacent regions that are usable at once count as one.
Arena::Found Arena::best(std::size_t bytes, const Moment& known) const {
  Found best;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Regions& regions = chunks_[c].regions;
    bool inside = false;  // Whether the previous region was usable at once.
    for (auto first = regions.begin(); first != regions.end(); ++first) {
      const bool ready = first->second.free && ahead(first->second.from, known) == 0;
      if (ready && std::exchange(inside, true)) continue;
      inside = ready;
      Found found{true, c, first->first, 0, 0};
      for (auto r = first; r != regions.end() && r->second.free; ++r) {
        const std::uint64_t wait = ahead(r->second.from, known);
        if (found.size >= bytes && (!ready || found.wait + wait > 0)) break;
        found.size += r->second.size;
        found.wait = std::max(found.wait, wait);
      }
      if (found.size < bytes) continue;
      if (!best.any || std::pair(found.wait, found.size) < std::pair(best.wait, best.size)) best = found;
    }
  }
  return best;
}

bool Arena::grow(std::size_t bytes, std::size_t wanted) {
  for (const std::size_t size : {std::max(bytes, wanted), bytes}) {
    auto* const begin = static_cast<char*>(more_(size));
    if (!begin) continue;
    Chunk& chunk = chunks_.emplace_back();
    chunk.begin = begin;
    chunk.size = size;
    chunk.regions[0] = {size, true, {}};
    held_ += size;
    return true;
  }
  return false;
}

Arena::Taken Arena::take(std::size_t asked, const Moment& known) {
  const std::size_t bytes = rounded(asked);
  most_used_ = std::max(most_used_, used_ + bytes);
  const std::size_t wanted = std::max(step_, held_ / 2), most = 2 * most_used_ + step_;
  Found found = best(bytes, known);
  const bool more =
      !found.any ? grow(bytes, wanted)
                 : found.wait > 0 && may_grow_ && held_ + bytes <= most && grow(bytes, std::min(wanted, most - held_));
  if (more) found = best(bytes, known);
  if (!found.any) return {};
  void* const data = occupy(found, bytes);
  return {data, usable_from(data)};
}

void* Arena::occupy(const Found& found, std::size_t bytes) {
  used_ += bytes;
  Chunk& chunk = chunks_[found.chunk];
  const auto first = chunk.regions.find(found.offset);
  Region& region = first->second;
  Region last = region;
  for (auto next = std::next(first); region.size < bytes; next = chunk.regions.erase(next)) {
    last = next->second;
    region.size += last.size;
    join(region.from, last.from);
  }
  if (region.size > bytes) chunk.regions[found.offset + bytes] = {region.size - bytes, true, last.from};
  region.size = bytes;
  region.free = false;
  return chunk.begin + found.offset;
}

/// Neighbours stay apart while they are free from different moments: else little would be usable soon.
void Arena::give(void* data, const Moment& last_use) {
  auto* const at = static_cast<char*>(data);
  for (Chunk& chunk : chunks_) {
    if (at < chunk.begin || at >= chunk.begin + chunk.size) continue;
    const auto region = chunk.regions.find(at - chunk.begin);
    STAGECRAFT_CHECK(region != chunk.regions.end() && !region->second.free);
    region->second.free = true;
    used_ -= region->second.size;
    join(region->second.from, last_use);
    const auto next = std::next(region);
    if (next != chunk.regions.end()) absorb(chunk.regions, region, next);
    if (region != chunk.regions.begin()) absorb(chunk.regions, std::prev(region), region);
    return;
  }
  throw InternalError("memory is given back to an arena that it is not from");
}

/// Merges the higher of two adjacent regions into the lower, if both are free from the same moment.
void Arena::absorb(Regions& regions, Regions::iterator low, Regions::iterator high) {
  if (!low->second.free || !high->second.free || low->second.from != high->second.from) return;
  low->second.size += high->second.size;
  regions.erase(high);
}

const Arena::Region* Arena::find(const void* inside) const {
  const auto* const at = static_cast<const char*>(inside);
  for (const Chunk& chunk : chunks_)
    if (at >= chunk.begin && at < chunk.begin + chunk.size)
      return &std::prev(chunk.regions.upper_bound(at - chunk.begin))->second;
  return nullptr;
}

const Moment& Arena::usable_from(const void* inside) const {
  const Region* const region = find(inside);
  STAGECRAFT_CHECK(region && !region->free);
  return region->from;
}

void Arena::hold(const void* inside, const Moment& moment) {
  Region* const region = find(inside);
  STAGECRAFT_CHECK(region && !region->free);
  join(region->from, moment);
}

void Arena::forget() {
  for (Chunk& chunk : chunks_) {
    for (auto& [offset, region] : chunk.regions) region.from.clear();
    for (auto high = std::next(chunk.regions.begin()); high != chunk.regions.end();) {
      const auto low = std::prev(high), after = std::next(high);
      absorb(chunk.regions, low, high);
      high = after;
    }
  }
}

}  // namespace stagecraft::cuda
