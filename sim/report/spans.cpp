#include <iterator>

#include <fmt/format.h>

#include "sim/report/files.hpp"

namespace stagecraft {
namespace {

constexpr const char* kKinds[] = {"forward", "backward", "input_gradient", "weight_gradient", "recompute",
                                  "update",  "predict",  "send",           "receive"};

/// A field that may hold a comma or a quote (RFC 4180).
std::string field(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::uint64_t bytes_of(const Program& program, const Instruction& i) {
  if (i.kind == InstructionKind::Collective) return program.shape(program.collective(i)).bytes;
  return i.is_compute() ? 0 : program.shape(i).bytes;
}

const char* kind_of(const Program& program, const Instruction& i) {
  if (i.kind != InstructionKind::Collective) return kKinds[static_cast<int>(i.kind)];
  return name(program.shape(program.collective(i)).kind);
}

}  // namespace

std::string spans_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  std::vector<bool> critical(program.size(), false);
  for (const InstructionId i : report.critical_path) critical[i] = true;
  std::string text =
      "id,instruction,kind,device,stream,stage,micro_batch,iteration,version,bytes,start_ns,end_ns,critical\n";
  auto out = std::back_inserter(text);
  for (std::size_t n = 0; n < program.size(); ++n) {
    const Instruction& i = program.instructions[n];
    fmt::format_to(out, "{},{},{},{},{},{},{},{},{},{},{:.3f},{:.3f},{:d}\n", n,
                   to_text(program, InstructionId{static_cast<std::int64_t>(n)}), kind_of(program, i),
                   field(cluster.devices[i.device].name), i.stream.value, i.stage.value, i.number,
                   program.iteration_of(i), program.version_of(i), bytes_of(program, i), timeline.start[n] * 1e9,
                   timeline.end[n] * 1e9, static_cast<bool>(critical[n]));
  }
  return text;
}

}  // namespace stagecraft
