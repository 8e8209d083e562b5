#pragma once

#include <string>

#include "sim/program/program.hpp"

namespace stagecraft::test {

/// Every instruction in order, with what it waits for: "1F1 after 1B0, 1<0:0F1".
inline std::string listing(const Program& program) {
  std::string text;
  for (std::size_t n = 0; n < program.size(); ++n) {
    const InstructionId id{n};
    text += to_text(program, id);
    const char* before = " after ";
    for (const InstructionId wait : program.waits_for(id)) {
      text += before + to_text(program, wait);
      before = ", ";
    }
    text += '\n';
  }
  return text;
}

/// Every buffer of one device: "stash 0F0..0B0 100".
inline std::string buffers_text(const Program& program, int device) {
  const char* const kinds[] = {"stash", "boundary", "received", "outgoing", "host"};
  std::string text;
  for_each_buffer(program, [&](std::uint32_t number, DeviceId) {
    const Buffer b = program.buffer(number);
    if (b.device.value == device)
      text += std::string(kinds[static_cast<int>(b.kind)]) + " " + to_text(program, b.allocated_by) + ".." +
              to_text(program, b.freed_by) + " " + std::to_string(static_cast<long>(b.size.value)) + "\n";
  });
  return text;
}

}  // namespace stagecraft::test
