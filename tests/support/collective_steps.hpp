#pragma once

#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::test {

/// The program with several collectives of the given kinds in place of each, in the same group and stream. Each waits
/// for the one before; what waited for the old one waits for the last. For an all-reduce in place, {ReduceScatter,
/// AllGather} has the same result, and two all-to-alls, or a broadcast, after it change nothing.
class CollectiveSteps {
 public:
  CollectiveSteps(const Program& from, const std::vector<CollectiveKind>& kinds) : from_(from), kinds_(kinds) {
    number();
    to_ = from;
    to_.instructions.clear();
    to_.first_wait = {0};
    to_.waits.clear();
    to_.collectives.clear();
    if (!from.traffic.empty()) to_.traffic.clear();
    write();
    for (Transfer& t : to_.transfers)
      for (InstructionId* const id : {&t.send, &t.receive, &t.producer, &t.consumer}) *id = last(*id);
    for (Buffer& b : to_.buffers) b.allocated_by = last(b.allocated_by), b.freed_by = last(b.freed_by);
  }

  const Program& program() const { return to_; }

 private:
  bool is_collective(InstructionId i) const { return from_.at(i).kind == InstructionKind::Collective; }

  void number() {
    std::int64_t next = 0;
    for (InstructionId i{0}; from_.instructions.contains(i);) {
      const int count = is_collective(i) ? from_.collective(from_.at(i)).members : 1;
      if (is_collective(i)) next += count * (std::ssize(kinds_) - 1);
      for (int m = 0; m < count; ++m) last_.emplace_back(next++);
      i.value += count;
    }
  }

  InstructionId last(InstructionId old) const { return last_[old]; }

  void add(const Instruction& instruction, const std::vector<InstructionId>& waits) {
    to_.instructions.push_back(instruction);
    to_.waits.insert(to_.waits.end(), waits.begin(), waits.end());
    to_.first_wait.push_back(static_cast<std::uint32_t>(to_.waits.size()));
    if (!from_.traffic.empty()) to_.traffic.push_back(0);
  }

  std::vector<InstructionId> waits_of(InstructionId i) const {
    std::vector<InstructionId> waits;
    for (const InstructionId w : from_.waits_for(i)) waits.push_back(last(w));
    return waits;
  }

  void write() {
    for (InstructionId i{0}; from_.instructions.contains(i);) {
      if (!is_collective(i)) {
        add(from_.at(i), waits_of(i));
        if (!from_.traffic.empty()) to_.traffic.back() = from_.traffic[i];
        ++i.value;
        continue;
      }
      const CollectiveCall old = from_.collective(from_.at(i));
      for (const CollectiveKind kind : kinds_) step(old, kind);
      i.value += old.members;
    }
  }

  void step(const CollectiveCall& old, CollectiveKind kind) {
    CollectiveCall copy = old;
    const bool first = old_ != old.first;
    const InstructionId before = copy.first;
    copy.first = to_.instructions.next_id();
    DeviceGroup group;
    for (int m = 0; m < old.members; ++m) group.devices.push_back(from_.at(old.member(m)).device);
    copy.shape = add_shape(to_, kind, collective_algorithms::ring, group, from_.shape(old).bytes);
    for (int m = 0; m < old.members; ++m) {
      Instruction member = from_.at(old.member(m));
      member.payload = static_cast<std::int32_t>(to_.collectives.size());
      const InstructionId previous{copy.first.value + m - old.members};
      add(member, first ? waits_of(InstructionId{before.value + m}) : std::vector<InstructionId>{previous});
    }
    to_.collectives.push_back(copy);
    old_ = old.first;
  }

  const Program& from_;
  std::vector<CollectiveKind> kinds_;
  IdVector<InstructionId, InstructionId> last_;  ///< New number by old number; for a member, its last step.
  InstructionId old_;                            ///< First member of the collective that is being replaced.
  Program to_;
};

inline Program in_steps(const Program& program, const std::vector<CollectiveKind>& kinds) {
  return CollectiveSteps(program, kinds).program();
}

inline std::vector<std::vector<CollectiveKind>> sums_in_steps() {
  using enum CollectiveKind;
  return {{ReduceScatter, AllGather},
          {AllReduce, AllToAll, AllToAll},
          {AllReduce, Broadcast},
          {ReduceScatter, AllGather, AllToAll, AllToAll, Broadcast}};
}

}  // namespace stagecraft::test
