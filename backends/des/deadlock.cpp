#include "backends/des/core.hpp"

#include <fmt/core.h>

#include <cstddef>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::des {
namespace {

constexpr std::size_t kNamed = 5;

/// The instructions that start with `id` at the latest: a rendezvous pair, a collective, or `id` alone.
struct StartGroup {
  std::int32_t first, last;
};

StartGroup start_group(const Program& program, InstructionId id) {
  const Instruction& instruction = program.at(id);
  if (instruction.kind == InstructionKind::Collective) {
    const Collective& collective = program.collective(instruction);
    return {collective.first.value, collective.first.value + collective.members - 1};
  }
  if (instruction.is_compute() || !program.rendezvous) return {id.value, id.value};
  const Transfer& transfer = program.transfer(instruction);
  return {transfer.send.value, transfer.receive.value};
}

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
  for (std::int32_t i = group.first; i <= group.last; ++i)
    for (InstructionId wait : program.waits_for(InstructionId{i}))
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
  if (count > kNamed) blocked.push_back(fmt::format("and {} more", count - kNamed));
  throw Infeasible(
      "deadlock",
      fmt::format("{} of {} never ended: {}", count,
                  pluralize(static_cast<std::int64_t>(program.size()), "instruction"), join(blocked, "; ")),
      "let each device send and receive in the same order as its peer, or use eager transfers");
}

}  // namespace stagecraft::des
