#pragma once

#include <vector>

#include "sim/program/check.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::test {

/// A program that sums the gradients of each stage in buckets, the last layers first: `shares` are their parts of the
/// bytes. A bucket may start when `after` of the backward is done, and follows the bucket before it.
inline Program in_buckets(const Program& whole, const std::vector<double>& shares, const std::vector<double>& after) {
  Program p = whole;
  p.instructions = {};
  p.waits.clear();
  p.first_wait = {0};
  p.collectives.clear();
  p.collective_shapes.clear();
  IdVector<InstructionId, InstructionId> now(whole.size(), InstructionId{});
  const auto add = [&](Instruction i, InstructionId old, InstructionId before, std::int32_t payload) {
    i.payload = payload;
    const InstructionId id = p.instructions.next_id();
    p.instructions.push_back(i);
    for (const InstructionId w : whole.waits_for(old)) p.waits.push_back(now[w]);
    if (before.valid()) p.waits.push_back(before);
    p.first_wait.push_back(static_cast<std::uint32_t>(p.waits.size()));
    return id;
  };
  for (const InstructionId old : whole.instructions.ids()) {
    const Instruction& i = whole.at(old);
    if (i.kind != InstructionKind::Collective) {
      now[old] = add(i, old, InstructionId{}, i.payload);
      continue;
    }
    const CollectiveCall& c = whole.collective(i);
    if (c.first != old) continue;
    std::vector<InstructionId> before(static_cast<std::size_t>(c.members));
    for (std::size_t k = 0; k < shares.size(); ++k) {
      CollectiveShape shape = whole.shape(c);
      shape.bytes = static_cast<std::uint64_t>(shares[k] * 1e6);
      p.collective_shapes.push_back(shape);
      CollectiveCall bucket = c;
      bucket.first = p.instructions.next_id();
      bucket.shape = static_cast<std::int32_t>(p.collective_shapes.size()) - 1;
      bucket.bucket = static_cast<int>(k);
      bucket.after = after[k];
      p.collectives.push_back(bucket);
      const auto payload = static_cast<std::int32_t>(p.collectives.size()) - 1;
      for (int m = 0; m < c.members; ++m) before[m] = add(whole.at(c.member(m)), c.member(m), before[m], payload);
    }
    for (int m = 0; m < c.members; ++m) now[c.member(m)] = before[m];
  }
  const auto moved = [&](InstructionId& id) { id = id.valid() ? now[id] : id; };
  for (Transfer& t : p.transfers) moved(t.send), moved(t.receive), moved(t.producer), moved(t.consumer);
  for (Buffer& b : p.buffers) moved(b.allocated_by), moved(b.freed_by);
  check_program(p);
  return p;
}

}  // namespace stagecraft::test
