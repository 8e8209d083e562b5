// Decides in which order instructions are enqueued where the devices of a stage meet inside of them, equal in all
// processes.

#include "backends/cuda/enqueue_order.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {
namespace {

class UnitOrder {
 public:
  UnitOrder(const Program& program, std::span<const InstructionId> instructions) : p_(program) {
    make_units({instructions.begin(), instructions.end()});
    for (const auto& [id, unit] : unit_of_) {
      for (const InstructionId w : p_.waits_for(id)) wait_for(unit, w);
      const Instruction& i = p_.at(id);
      if (i.kind == InstructionKind::Receive) wait_for(unit, p_.transfer(i).send);
    }
  }

  std::vector<EnqueueUnit> sorted() {
    std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> ready;  // By the first instruction.
    for (std::size_t u = 0; u < units_.size(); ++u)
      if (units_[u].inputs.empty()) ready.push(u);
    std::vector<EnqueueUnit> order;
    while (!ready.empty()) {
      const std::size_t done = ready.top();
      ready.pop();
      Unit& unit = units_[done];
      order.push_back(std::move(unit.instructions));
      for (const std::size_t reader : unit.readers)
        if (units_[reader].inputs.erase(done) > 0 && units_[reader].inputs.empty()) ready.push(reader);
    }
    if (order.size() < units_.size())
      throw InternalError("devices of a stage do not run the same instructions in the same order");
    return order;
  }

 private:
  struct Unit {
    EnqueueUnit instructions;
    std::set<std::size_t> inputs;  ///< Units that it waits for and that are not enqueued yet.
    std::vector<std::size_t> readers;
  };

  /// Units are numbered by their first instructions.
  void make_units(std::vector<InstructionId> instructions) {
    std::sort(instructions.begin(), instructions.end());
    std::map<InstructionId, std::size_t> number_of;  // By the first instruction.
    for (const InstructionId id : instructions) {
      const auto [it, is_new] = number_of.try_emplace(first_of(id), units_.size());
      if (is_new) units_.emplace_back();
      units_[it->second].instructions.push_back(id);
      unit_of_[id] = it->second;
    }
  }

  /// The n-th computation of a stage on one of its devices belongs to the n-th computations on the others.
  InstructionId first_of(InstructionId id) {
    const Instruction& i = p_.at(id);
    if (i.kind == InstructionKind::Collective) return p_.collective(i).first;
    if (i.kind == InstructionKind::Receive && p_.rendezvous) return p_.transfer(i).send;
    if (!i.is_compute()) return id;
    std::vector<InstructionId>& firsts = computations_[i.stage];
    const std::size_t n = count_of_[{i.stage, i.device}]++;
    if (n == firsts.size()) firsts.push_back(id);
    if (p_.at(firsts[n]).kind != i.kind || p_.at(firsts[n]).number != i.number)
      throw InternalError("devices of a stage do not run the same instructions in the same order");
    return firsts[n];
  }

  void wait_for(std::size_t reader, InstructionId input) {
    const auto it = unit_of_.find(input);
    if (it == unit_of_.end() || it->second == reader) return;
    if (units_[reader].inputs.insert(it->second).second) units_[it->second].readers.push_back(reader);
  }

  const Program& p_;
  std::vector<Unit> units_;
  std::map<InstructionId, std::size_t> unit_of_;
  std::map<StageId, std::vector<InstructionId>> computations_;
  std::map<std::pair<StageId, DeviceId>, std::size_t> count_of_;
};

}  // namespace

std::vector<EnqueueUnit> enqueue_order(const Program& program, std::span<const InstructionId> instructions) {
  return UnitOrder(program, instructions).sorted();
}

}  // namespace stagecraft::cuda
