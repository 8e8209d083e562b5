// Says what each device of a stuck run waits for.

#include <fmt/core.h>

#include "backends/real/program_executor.hpp"

namespace stagecraft::real {

std::string waiting(const Program& program, const std::vector<bool>& ended, const std::function<bool(DeviceId)>& here) {
  constexpr int kMostLines = 16;
  std::string text;
  IdVector<StreamId, bool> named(program.streams.size(), false);
  int lines = 0;
  for (std::size_t n = 0; n < program.size() && lines < kMostLines; ++n) {
    const InstructionId id{n};
    const Instruction& i = program.at(id);
    if (ended[n] || !here(i.device)) continue;
    if (i.stream.valid()) {
      if (named[i.stream]) continue;
      named[i.stream] = true;
    }
    std::string waits;
    for (const InstructionId w : program.waits_for(id))
      if (!ended[w.value]) waits += (waits.empty() ? "" : ", ") + to_text(program, w);
    text += fmt::format("  device {}: {} {}\n", i.device.value, to_text(program, id),
                        waits.empty() ? "has not ended" : "waits for " + waits);
    ++lines;
  }
  return text;
}

}  // namespace stagecraft::real
