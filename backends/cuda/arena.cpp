#include "backends/cuda/arena.hpp"

#include <algorithm>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kAlignment = 256;  // As cudaMalloc has it.

std::size_t rounded(std::size_t bytes) {
  return std::max<std::size_t>(1, (bytes + kAlignment - 1) / kAlignment) * kAlignment;
}

}  // namespace

Arena::Found Arena::best(std::size_t bytes, const Moment* known) const {
  Found found;
  for (std::size_t c = 0; c < chunks_.size(); ++c)
    for (const auto& [offset, region] : chunks_[c].regions) {
      if (!region.free || region.size < bytes || (found.any && region.size >= found.size)) continue;
      if (!known || covers(*known, region.from)) found = {true, {c, offset}, region.size};
    }
  return found;
}

bool Arena::grow(std::size_t bytes) {
  for (const std::size_t size : {std::max({bytes, step_, held_ / 2}), bytes}) {
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
  Found found = best(bytes, &known);
  if (!found.any && grow(bytes)) found = best(bytes, &known);
  if (!found.any) found = best(bytes, nullptr);
  if (!found.any) return {};
  Chunk& chunk = chunks_[found.place.chunk];
  Region& region = chunk.regions[found.place.offset];
  if (region.size > bytes) chunk.regions[found.place.offset + bytes] = {region.size - bytes, true, region.from};
  region.size = bytes;
  region.free = false;
  return {chunk.begin + found.place.offset, region.from};
}

void Arena::give(void* data, const Moment& last_use) {
  auto* const at = static_cast<char*>(data);
  for (Chunk& chunk : chunks_) {
    if (at < chunk.begin || at >= chunk.begin + chunk.size) continue;
    auto region = chunk.regions.find(static_cast<std::size_t>(at - chunk.begin));
    STAGECRAFT_CHECK(region != chunk.regions.end() && !region->second.free);
    region->second.free = true;
    join(region->second.from, last_use);
    const auto absorb = [&](auto low, auto high) {
      low->second.size += high->second.size;
      join(low->second.from, high->second.from);
      chunk.regions.erase(high);
    };
    if (const auto next = std::next(region); next != chunk.regions.end() && next->second.free) absorb(region, next);
    if (region == chunk.regions.begin()) return;
    if (const auto before = std::prev(region); before->second.free) absorb(before, region);
    return;
  }
  throw InternalError("memory is given back to an arena that it is not from");
}

const Arena::Region* Arena::find(const void* inside) const {
  const auto* const at = static_cast<const char*>(inside);
  for (const Chunk& chunk : chunks_)
    if (at >= chunk.begin && at < chunk.begin + chunk.size)
      return &std::prev(chunk.regions.upper_bound(static_cast<std::size_t>(at - chunk.begin)))->second;
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
  for (Chunk& chunk : chunks_)
    for (auto& [offset, region] : chunk.regions) region.from.clear();
}

}  // namespace stagecraft::cuda
