// Allocates the memory of a virtual device when work is enqueued: each free region has the moment from which it may be
// used.

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

/// How many pieces of work are over at `from` that are not at `clock`.
std::uint64_t ahead(const VectorClock& from, const VectorClock& clock) {
  std::uint64_t sum = 0;
  for (std::size_t q = 0; q < from.size(); ++q) {
    const std::uint32_t reached = q < clock.size() ? clock[q] : 0;
    sum += from[q] > reached ? from[q] - reached : 0;
  }
  return sum;
}

}  // namespace

/// The smallest stretch of adjacent regions that are all usable at once; the first one of several.
Arena::Fit Arena::best_ready(std::size_t bytes, const VectorClock& clock) const {
  Fit best, fit;
  const auto close = [&] {
    if (fit.any && fit.size >= bytes && (!best.any || fit.size < best.size)) best = fit;
    fit = {};
  };
  for (const auto& [place, region] : free_) {
    const auto& [chunk, offset] = place;
    if (!covers(clock, region->from)) continue;
    if (chunk != fit.chunk || offset != fit.offset + fit.size) close();
    if (!fit.any) fit = {true, chunk, offset, 0, 0};
    fit.size += region->size;
  }
  close();
  return best;
}

/// The smallest stretch among the ones with the shortest wait. Adjacent regions that are usable at once count as one.
/// Most calls find a stretch without a wait, in one pass over the free regions; only the others look for the shortest
/// wait, which takes a pass from each region.
Arena::Fit Arena::best(std::size_t bytes, const VectorClock& clock) const {
  Fit best = best_ready(bytes, clock);
  if (best.any) return best;
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    const Regions& regions = chunks_[c].regions;
    bool inside = false;  // Whether the previous region was usable at once.
    for (auto first = regions.begin(); first != regions.end(); ++first) {
      const bool ready = first->second.free && ahead(first->second.from, clock) == 0;
      if (ready && std::exchange(inside, true)) continue;
      inside = ready;
      Fit fit{true, c, first->first, 0, 0};
      for (auto r = first; r != regions.end() && r->second.free; ++r) {
        const std::uint64_t wait = ahead(r->second.from, clock);
        if (fit.size >= bytes && (!ready || fit.wait + wait > 0)) break;
        fit.size += r->second.size;
        fit.wait = std::max(fit.wait, wait);
      }
      if (fit.size < bytes) continue;
      if (!best.any || std::pair(fit.wait, fit.size) < std::pair(best.wait, best.size)) best = fit;
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
    free_[{chunks_.size() - 1, 0}] = &chunk.regions[0];
    reserved_ += size;
    return true;
  }
  return false;
}

Arena::Taken Arena::take(std::size_t asked, const VectorClock& clock) {
  const std::size_t bytes = rounded(asked);
  most_used_ = std::max(most_used_, used_ + bytes);
  const std::size_t wanted = std::max(step_, reserved_ / 2), limit = 2 * most_used_ + step_;
  Fit fit = best(bytes, clock);
  const bool more = !fit.any ? grow(bytes, wanted)
                             : fit.wait > 0 && may_grow_ && reserved_ + bytes <= limit &&
                                   grow(bytes, std::min(wanted, limit - reserved_));
  if (more) fit = best(bytes, clock);
  if (!fit.any) return {};
  void* const data = occupy(fit, bytes);
  return {data, usable_from(data)};
}

void* Arena::occupy(const Fit& fit, std::size_t bytes) {
  used_ += bytes;
  Chunk& chunk = chunks_[fit.chunk];
  const auto first = chunk.regions.find(fit.offset);
  Region& region = first->second;
  Region last = region;
  free_.erase({fit.chunk, fit.offset});
  for (auto next = std::next(first); region.size < bytes; next = chunk.regions.erase(next)) {
    free_.erase({fit.chunk, next->first});
    last = next->second;
    region.size += last.size;
    join(region.from, last.from);
  }
  if (region.size > bytes) {
    const std::size_t rest = fit.offset + bytes;
    chunk.regions[rest] = {region.size - bytes, true, last.from};
    free_[{fit.chunk, rest}] = &chunk.regions[rest];
  }
  region.size = bytes;
  region.free = false;
  return chunk.begin + fit.offset;
}

/// Neighbours stay apart while they are free from different moments: else little would be usable soon.
void Arena::give(void* data, const VectorClock& last_use) {
  auto* const at = static_cast<char*>(data);
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    if (at < chunk.begin || at >= chunk.begin + chunk.size) continue;
    const auto region = chunk.regions.find(at - chunk.begin);
    STAGECRAFT_CHECK(region != chunk.regions.end() && !region->second.free);
    region->second.free = true;
    free_[{c, region->first}] = &region->second;
    used_ -= region->second.size;
    join(region->second.from, last_use);
    const auto next = std::next(region);
    if (next != chunk.regions.end()) absorb(c, region, next);
    if (region != chunk.regions.begin()) absorb(c, std::prev(region), region);
    return;
  }
  throw InternalError("memory is given back to an arena that it is not from");
}

/// Merges the higher of two adjacent regions into the lower, if both are free from the same moment.
void Arena::absorb(std::size_t chunk, Regions::iterator low, Regions::iterator high) {
  if (!low->second.free || !high->second.free || low->second.from != high->second.from) return;
  low->second.size += high->second.size;
  free_.erase({chunk, high->first});
  chunks_[chunk].regions.erase(high);
}

const Arena::Region* Arena::find(const void* inside) const {
  const auto* const at = static_cast<const char*>(inside);
  for (const Chunk& chunk : chunks_)
    if (at >= chunk.begin && at < chunk.begin + chunk.size)
      return &std::prev(chunk.regions.upper_bound(at - chunk.begin))->second;
  return nullptr;
}

const VectorClock& Arena::usable_from(const void* inside) const {
  const Region* const region = find(inside);
  STAGECRAFT_CHECK(region && !region->free);
  return region->from;
}

void Arena::hold(const void* inside, const VectorClock& moment) {
  Region* const region = find(inside);
  STAGECRAFT_CHECK(region && !region->free);
  join(region->from, moment);
}

void Arena::forget() {
  for (std::size_t c = 0; c < chunks_.size(); ++c) {
    Chunk& chunk = chunks_[c];
    for (auto& [offset, region] : chunk.regions) region.from.clear();
    for (auto high = std::next(chunk.regions.begin()); high != chunk.regions.end();) {
      const auto low = std::prev(high), after = std::next(high);
      absorb(c, low, high);
      high = after;
    }
  }
}

void Arena::note_layout(std::vector<std::uint64_t>& words) const {
  for (const Chunk& chunk : chunks_) {
    words.push_back(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(chunk.begin)));
    for (const auto& [offset, region] : chunk.regions) words.insert(words.end(), {offset, region.size, region.free});
  }
}

}  // namespace stagecraft::cuda
