// Says which instructions are blocked, and what they wait for, when a simulation ends before all have run.

#include "backends/des/core.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/program/start_group.hpp"

namespace stagecraft::des {
namespace {

constexpr std::size_t kNamed = 5;

std::string why(const Program& program, InstructionId id, std::span<const double> start, std::span<const double> end) {
  const Instruction& instruction = program.at(id);
  if (start[id.value] >= 0) {
    if (instruction.kind != InstructionKind::Receive || program.rendezvous)
      return "started, but its data never arrived";
    const Transfer& transfer = program.transfer(instruction);
    return "waits for the data of " + to_text(program, transfer.send);
  }
  std::vector<std::string> names;
  const StartGroup group = start_group(program, id);
  for (int k = 0; k < group.count; ++k)
    for (InstructionId wait : program.waits_for(group.at(k)))
      if (end[wait.value] < 0 && names.size() < kNamed) names.push_back(to_text(program, wait));
  return names.empty() ? "was never started" : "waits for " + join(names);
}

}  // namespace

void require_finished(const Program& program, std::span<const double> start, std::span<const double> end) {
  std::vector<std::string> blocked;
  std::size_t count = 0;
  for (const InstructionId id : program.instructions.ids()) {
    if (end[id.value] >= 0) continue;
    if (count++ < kNamed) blocked.push_back(to_text(program, id) + " " + why(program, id, start, end));
  }
  if (count == 0) return;
  // The first few show the cycle; the others are counted.
  if (count > kNamed) blocked.push_back(fmt::format("and {} more", count - kNamed));
  throw Infeasible(
      "deadlock",
      fmt::format("{} of {} never ended", count, pluralize(static_cast<std::int64_t>(program.size()), "instruction")),
      "let each device send and receive in the same order as its peer, or use eager transfers", join(blocked, "; "));
}

}  // namespace stagecraft::des
