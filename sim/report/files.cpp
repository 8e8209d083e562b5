#include <iterator>

#include <fmt/format.h>

#include "sim/core/escape.hpp"
#include "sim/core/text.hpp"
#include "sim/report/files.hpp"
#include "sim/report/memory.hpp"

namespace stagecraft {
namespace {

constexpr const char* kKinds[] = {"forward", "backward", "input_gradient", "weight_gradient", "recompute",
                                  "update",  "predict",  "send",           "receive"};

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
                   csv_cell(cluster.devices[i.device].name), i.stream.value, i.stage.value, i.number,
                   program.iteration_of(i), program.version_of(i), bytes_of(program, i), timeline.start[n] * 1e9,
                   timeline.end[n] * 1e9, static_cast<bool>(critical[n]));
  }
  return text;
}

std::string memory_csv(const Program& program, const Timeline& timeline, const Report& report, const Cluster& cluster) {
  const MemoryHistory history(program, timeline);
  std::string text = "device,time_ns,resident_bytes,stash_bytes,received_bytes,outgoing_bytes\n";
  for (std::size_t d = 0; d < report.devices.size(); ++d) {
    if (!report.devices[d].used) continue;
    const std::string device = csv_cell(cluster.devices[d].name);
    const std::string resident = shortest(program.memory[d].total().value);
    MemoryCurve curve = history.curve(DeviceId{static_cast<std::int64_t>(d)});
    if (curve.empty() || curve.front().time > 0) curve.insert(curve.begin(), MemorySample{});
    for (const MemorySample& s : curve)
      fmt::format_to(std::back_inserter(text), "{},{:.3f},{},{},{},{}\n", device, s.time * 1e9, resident,
                     shortest(s.stash.value), shortest(s.received.value), shortest(s.outgoing.value));
  }
  return text;
}

std::string losses_csv(const Learnt& learnt) {
  std::string text = "iteration,loss\n";
  for (std::size_t i = 0; i < learnt.losses.size(); ++i) text += fmt::format("{},{:.17g}\n", i, learnt.losses[i]);
  return text;
}

}  // namespace stagecraft
