#pragma once

#include "sim/core/quantity.hpp"

namespace stagecraft::real {

/// What the interpreter adds to the computing itself.
struct MessageFigures {
  Seconds operation;    ///< From the end of an op to the start of the next on the same device.
  Seconds latency;      ///< From the end of an op to the start of one on another device that waits for its message.
  Bandwidth bandwidth;  ///< Of a long message.
};

/// Runs a program of two devices that only pass a message to and fro, with few bytes and with many.
MessageFigures measure_messages();

}  // namespace stagecraft::real
