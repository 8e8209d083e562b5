// Adds the waits of limit_buffers.cpp to a finished program and numbers its instructions again so that each still waits
// for earlier ones.

#include "sim/program/extra_waits.hpp"

#include <algorithm>
#include <functional>
#include <queue>

#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/program/start_group.hpp"

namespace stagecraft {
namespace {

/// Counts for each unit what it waits for, and lists which units wait for it.
class UnitWaits {
 public:
  UnitWaits(const Program& program, std::span<const ExtraWait> extra)
      : p_(program), first_(program.size()), missing_(program.size(), 0), first_follower_(program.size() + 1, 0) {
    for (const InstructionId id : p_.instructions.ids()) first_[id] = start_group(p_, id).first;
    each_wait(extra, [&](InstructionId waiting, InstructionId on) {
      ++missing_[waiting];
      ++first_follower_[on.value + 1];
    });
    for (std::size_t i = 1; i < first_follower_.size(); ++i) first_follower_[i] += first_follower_[i - 1];
    followers_.resize(first_follower_.back());
    std::vector<std::uint32_t> next = first_follower_;
    each_wait(extra, [&](InstructionId waiting, InstructionId on) { followers_[next[on.value]++] = waiting; });
  }

  std::vector<InstructionId> sorted() {
    std::priority_queue<InstructionId, std::vector<InstructionId>, std::greater<>> ready;
    for (const InstructionId id : p_.instructions.ids())
      if (first_[id] == id && missing_[id] == 0) ready.push(id);
    std::vector<InstructionId> order;
    order.reserve(p_.size());
    StopCounter stops;
    while (!ready.empty()) {
      stops.pass();
      const InstructionId unit = ready.top();
      ready.pop();
      const StartGroup group = start_group(p_, unit);
      for (int k = 0; k < group.count; ++k) order.push_back(group.at(k));
      for (std::uint32_t f = first_follower_[unit.value]; f < first_follower_[unit.value + 1]; ++f)
        if (--missing_[followers_[f]] == 0) ready.push(followers_[f]);
    }
    return order;
  }

 private:
  template <class Visit>
  void each_wait(std::span<const ExtraWait> extra, Visit&& visit) const {
    const auto between_units = [&](InstructionId waiting, InstructionId on) {
      if (first_[waiting] != first_[on]) visit(first_[waiting], first_[on]);
    };
    for (const InstructionId id : p_.instructions.ids())
      for (const InstructionId on : p_.waits_for(id)) between_units(id, on);
    for (const ExtraWait& wait : extra) between_units(wait.waiting, wait.on);
  }

  const Program& p_;
  IdVector<InstructionId, InstructionId> first_;
  IdVector<InstructionId, int> missing_;       ///< Waits of a unit, by its first instruction.
  std::vector<std::uint32_t> first_follower_;  ///< followers_[first_follower_[u] .. first_follower_[u + 1]) wait for u.
  std::vector<InstructionId> followers_;
};

}  // namespace

IdVector<InstructionId, std::vector<InstructionId>> by_instruction(const Program& program,
                                                                   std::span<const ExtraWait> extra) {
  IdVector<InstructionId, std::vector<InstructionId>> waits(program.size());
  for (const ExtraWait& wait : extra) waits[wait.waiting].push_back(wait.on);
  return waits;
}

std::vector<InstructionId> order_with(const Program& program, std::span<const ExtraWait> extra) {
  return UnitWaits(program, extra).sorted();
}

namespace {

/// Writes instructions in another order.
class Renumbering {
 public:
  Renumbering(Program& program, std::span<const InstructionId> order) : p_(program), order_(order), number_(p_.size()) {
    for (std::size_t n = 0; n < order.size(); ++n) number_[order[n]] = InstructionId{n};
  }

  void run(std::span<const ExtraWait> extra) {
    instructions(by_instruction(p_, extra));
    transfers();
    for (CollectiveCall& c : p_.collectives) c.first = number_[c.first];
    for (Buffer& b : p_.buffers) b.allocated_by = number_[b.allocated_by], b.freed_by = number_[b.freed_by];
    std::stable_sort(p_.buffers.begin(), p_.buffers.end(),
                     [](const Buffer& a, const Buffer& b) { return a.freed_by < b.freed_by; });
  }

 private:
  void instructions(const IdVector<InstructionId, std::vector<InstructionId>>& extra) {
    IdVector<InstructionId, Instruction> instructions;
    IdVector<InstructionId, double> traffic;
    std::vector<std::uint32_t> first_wait{0};
    std::vector<InstructionId> waits;
    instructions.reserve(p_.size());
    for (const InstructionId old : order_) {
      instructions.push_back(p_.at(old));
      if (!p_.traffic.empty()) traffic.push_back(p_.traffic[old]);
      const auto present = p_.waits_for(old);
      for (const InstructionId on : present) waits.push_back(number_[on]);
      for (const InstructionId on : extra[old])
        if (std::find(present.begin(), present.end(), on) == present.end()) waits.push_back(number_[on]);
      first_wait.push_back(static_cast<std::uint32_t>(waits.size()));
    }
    p_.instructions = std::move(instructions);
    p_.traffic = std::move(traffic);
    p_.first_wait = std::move(first_wait);
    p_.waits = std::move(waits);
  }

  void transfers() {
    for (Transfer& t : p_.transfers)
      for (InstructionId* id : {&t.send, &t.receive, &t.producer, &t.consumer})
        if (id->valid()) *id = number_[*id];
    std::sort(p_.transfers.begin(), p_.transfers.end(),
              [](const Transfer& a, const Transfer& b) { return a.send < b.send; });
    for (std::size_t t = 0; t < p_.transfers.size(); ++t)
      for (const InstructionId end : {p_.transfers[t].send, p_.transfers[t].receive})
        p_.instructions[end].payload = static_cast<std::int32_t>(t);
  }

  Program& p_;
  std::span<const InstructionId> order_;
  IdVector<InstructionId, InstructionId> number_;  ///< By the number that an instruction had before.
};

}  // namespace

void renumber(Program& program, std::span<const InstructionId> order, std::span<const ExtraWait> extra) {
  STAGECRAFT_CHECK(order.size() == program.size());
  Renumbering(program, order).run(extra);
}

}  // namespace stagecraft
