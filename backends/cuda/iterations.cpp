// Splits a program into iterations and finds those that repeat the one before, which `repeat` can run as the same CUDA
// graph.

#include "backends/cuda/iterations.hpp"

#include <algorithm>

namespace stagecraft::cuda {
namespace {

/// Whether two iterations have the same instructions, the second with later micro-batches, updates and versions.
class SameIterations {
 public:
  SameIterations(const Program& program, const std::vector<Iteration>& iterations)
      : p_(program), iterations_(iterations), position_(program.size(), 0) {
    for (const Iteration& iteration : iterations)
      for (std::size_t n = 0; n < iteration.body.size(); ++n) position_[iteration.body[n]] = n;
  }
  bool operator()(std::size_t first, std::size_t second) const {
    const std::vector<InstructionId>&a = iterations_[first].body, &b = iterations_[second].body;
    if (a.size() != b.size()) return false;
    for (std::size_t n = 0; n < a.size(); ++n)
      if (describe(a[n]) != describe(b[n])) return false;
    return true;
  }

 private:
  using InstructionWords = std::vector<std::int64_t>;

  /// What the instruction does, on what, and what it waits for; micro-batches and updates are counted within the
  /// iteration.
  InstructionWords describe(InstructionId id) const {
    const Instruction& i = p_.at(id);
    const int iteration = p_.iteration_of(i);
    const auto& numbers = i.is_numbered_by_update() ? p_.updates : p_.micro_batches;
    InstructionWords words{static_cast<int>(i.kind),
                           static_cast<int>(i.weights),
                           i.stream.value,
                           i.device.value,
                           i.stage.value,
                           i.number - iteration * numbers[i.stage]};
    if (i.kind == InstructionKind::Predict) return {static_cast<std::int64_t>(id.value)};  // Never the same.
    if (i.is_message()) {
      const Transfer& t = p_.transfer(i);
      words.insert(words.end(), {t.shape, where(t.send), where(t.receive)});
    } else if (i.kind == InstructionKind::Collective) {
      const CollectiveCall& c = p_.collective(i);
      words.insert(words.end(), {c.shape, where(c.first), c.members, c.bucket, c.tie, static_cast<int>(c.purpose)});
    } else {
      words.push_back(i.version() - iteration * p_.updates[i.stage]);
    }
    for (const InstructionId w : p_.waits_for(id))
      if (p_.iteration_of(p_.at(w)) == iteration) words.push_back(where(w));
    return words;
  }
  std::int64_t where(InstructionId id) const { return static_cast<std::int64_t>(position_[id]); }

  const Program& p_;
  const std::vector<Iteration>& iterations_;
  IdVector<InstructionId, std::size_t> position_;  ///< In its iteration.
};

}  // namespace

std::vector<Iteration> iterations_of(const Program& p, bool updates_apart, std::string& why_not) {
  std::vector<Iteration> iterations(p.iterations);
  IdVector<InstructionId, bool> after_update(
      p.size(),
      false);  // Updates that are apart, and what waits for them in their iteration.
  for (const InstructionId id : p.instructions.ids()) {
    const Instruction& i = p.instructions[id];
    const int iteration = p.iteration_of(i);
    after_update[id] = updates_apart && i.kind == InstructionKind::Update;
    for (const InstructionId w : p.waits_for(id)) {
      const int other = p.iteration_of(p.at(w));
      if (other > iteration) return why_not = "an iteration begins before the one before it has ended", iterations = {};
      if (other == iteration && after_update[w]) after_update[id] = true;
    }
    if (after_update[id] && i.kind != InstructionKind::Update)
      return why_not = "evaluations look at weights after updates that are in the middle of an iteration",
             iterations = {};
    Iteration& current = iterations[iteration];
    (after_update[id] ? current.updates : current.body).push_back(id);
  }
  const SameIterations same(p, iterations);
  const std::int64_t updates = *std::max_element(p.updates.begin(), p.updates.end());
  for (std::size_t k = 1; k < iterations.size(); ++k) {
    iterations[k].repeats = iterations[k].updates.empty() && same(k - 1, k);
    iterations[k].updates_done = static_cast<std::int64_t>(k + 1) * updates;
  }
  return iterations;
}

}  // namespace stagecraft::cuda
