#include "backends/cuda/enqueue_order.hpp"

#include <algorithm>

namespace stagecraft::cuda {

EnqueueOrder::EnqueueOrder(const Program& program, std::span<const InstructionId> instructions) : p_(program) {
  if (instructions.empty()) return;
  const auto [first, last] = std::minmax_element(instructions.begin(), instructions.end());
  begin_ = first->value;
  entries_.resize(last->value - begin_ + 1);
  for (const InstructionId id : instructions)
    if (first_of(id) == id) entry(id)->is_here = true, ++left_;
  for (const InstructionId id : instructions) {
    for (const InstructionId w : p_.waits_for(id)) wait_for(first_of(id), first_of(w));
    const Instruction& i = p_.at(id);
    if (i.kind == InstructionKind::Receive) wait_for(first_of(id), p_.transfer(i).send);
  }
  for (const InstructionId id : instructions)
    if (first_of(id) == id && entry(id)->unmet == 0) ready_.push(id);
}

InstructionId EnqueueOrder::first_of(InstructionId id) const {
  const Instruction& i = p_.at(id);
  if (i.kind == InstructionKind::Collective) return p_.collective(i).first;
  return i.kind == InstructionKind::Receive && p_.rendezvous ? p_.transfer(i).send : id;
}

/// Null where it is not one of these instructions.
EnqueueOrder::Entry* EnqueueOrder::entry(InstructionId id) {
  const std::int64_t place = id.value - begin_;
  return place >= 0 && place < std::ssize(entries_) ? &entries_[place] : nullptr;
}

void EnqueueOrder::wait_for(InstructionId reader, InstructionId input) {
  Entry* const waited_for = entry(input);
  if (reader == input || !waited_for || !waited_for->is_here) return;
  waited_for->readers.push_back(reader);
  ++entry(reader)->unmet;
}

std::optional<InstructionId> EnqueueOrder::next() {
  if (ready_.empty()) return {};
  const InstructionId id = ready_.top();
  ready_.pop();
  return id;
}

void EnqueueOrder::done(InstructionId id) {
  --left_;
  for (const InstructionId reader : entry(id)->readers)
    if (--entry(reader)->unmet == 0) ready_.push(reader);
}

}  // namespace stagecraft::cuda
