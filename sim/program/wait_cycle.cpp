// Finds a shortest cycle of waits in a program with extra waits, for the error of limit_buffers.

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/dag.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/program/extra_waits.hpp"
#include "sim/program/start_group.hpp"

namespace stagecraft {
namespace {

/// Finds a shortest cycle of waits, and says it.
class CycleText {
 public:
  CycleText(const Program& program, std::span<const InstructionId> order, std::span<const ExtraWait> extra)
      : p_(program), extra_(by_instruction(program, extra)), blocked_(program.size(), true) {
    for (const InstructionId id : order) blocked_[id] = false;
  }

  std::string text() const {
    std::vector<InstructionId> cycle = shortest();
    const auto is_extra = [&](std::size_t k) { return needs_buffer(cycle[k], cycle[(k + 1) % cycle.size()]); };
    std::size_t start = 0;  // A wait for a buffer comes first, so that no list of ops is cut in two.
    while (start + 1 < cycle.size() && !is_extra(start)) ++start;
    std::rotate(cycle.begin(), cycle.begin() + static_cast<std::ptrdiff_t>(start), cycle.end());
    std::string text;
    for (std::size_t k = 0; k < cycle.size();) {
      std::size_t next = k + 1;
      if (!is_extra(k))
        while (next < cycle.size() && follow_each_other(cycle[k], cycle[next]) && !is_extra(next) &&
               follow_each_other(cycle[k], cycle[(next + 1) % cycle.size()]))
          ++next;
      text += text.empty() ? "" : "; ";
      text += reason(cycle[k], cycle[next % cycle.size()], is_extra(k));
      k = next;
    }
    return text;
  }

 private:
  std::vector<InstructionId> shortest() const {
    std::vector<InstructionId> units;
    IdVector<InstructionId, int> node(p_.size(), -1);
    const InstructionId last = last_of_some_cycle();
    for (const InstructionId id : p_.instructions.ids())
      if (id <= last && blocked_[id] && start_group(p_, id).first == id)
        node[id] = static_cast<int>(units.size()), units.push_back(id);
    Digraph graph(static_cast<int>(units.size()));
    for (const InstructionId unit : units)
      for_each_wait(unit, [&](InstructionId on, bool) {
        if (node[on] >= 0 && on != unit) graph.add(node[unit], node[on]);
      });
    std::vector<InstructionId> cycle;
    for (const int n : shortest_cycle(graph)) cycle.push_back(units[n]);
    STAGECRAFT_CHECK(!cycle.empty());
    return cycle;
  }

  /// Calls visit(unit, is_extra) for each blocked unit that this one waits for.
  template <class Visit>
  void for_each_wait(InstructionId unit, Visit&& visit) const {
    const StartGroup group = start_group(p_, unit);
    for (int k = 0; k < group.count; ++k) {
      const InstructionId id = group.at(k);
      for (const InstructionId on : p_.waits_for(id))
        if (blocked_[on]) visit(start_group(p_, on).first, false);
      for (const InstructionId on : extra_[id])
        if (blocked_[on]) visit(start_group(p_, on).first, true);
    }
  }

  bool needs_buffer(InstructionId unit, InstructionId other) const {
    bool usual = false, extra = false;
    for_each_wait(unit, [&](InstructionId on, bool is_extra) {
      if (on == other) (is_extra ? extra : usual) = true;
    });
    return extra && !usual;
  }

  /// Walks from the first blocked unit to the smallest one that it waits for until it comes back: some cycle, and no
  /// unit on it has a greater number.
  InstructionId last_of_some_cycle() const {
    IdVector<InstructionId, bool> passed(p_.size(), false);
    InstructionId at = p_.instructions.ids().begin().id;
    while (!blocked_[at]) ++at.value;
    InstructionId last = at = start_group(p_, at).first;
    while (!passed[at]) {
      passed[at] = true;
      last = std::max(last, at);
      InstructionId next;
      for_each_wait(at, [&](InstructionId on, bool) {
        if (on != at && (!next.valid() || on < next)) next = on;
      });
      at = next;
    }
    return last;
  }

  /// Whether both are computations of a device, or messages that it sends.
  bool follow_each_other(InstructionId a, InstructionId b) const {
    return p_.at(a).device == p_.at(b).device && p_.at(a).is_compute() == p_.at(b).is_compute() &&
           p_.at(a).is_message() == p_.at(b).is_message();
  }

  std::string name(InstructionId unit) const {
    const Instruction& i = p_.at(unit);
    return i.is_message() ? to_text(p_, unit) : fmt::format("{} (rank {})", to_text(p_, unit), i.device.value);
  }

  std::string reason(InstructionId unit, InstructionId other, bool is_extra) const {
    if (is_extra) return fmt::format("{} waits for {}, which frees a buffer", name(unit), name(other));
    const char* const how = follow_each_other(unit, other) ? "comes after" : "waits for";
    return fmt::format("{} {} {}", name(unit), how, name(other));
  }

  const Program& p_;
  IdVector<InstructionId, std::vector<InstructionId>> extra_;
  IdVector<InstructionId, bool> blocked_;
};

}  // namespace

std::string cycle_text(const Program& program, std::span<const InstructionId> order, std::span<const ExtraWait> extra) {
  return CycleText(program, order, extra).text();
}

}  // namespace stagecraft
