#pragma once

#include <chrono>
#include <cstdint>

#include "sim/core/diagnostic.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft::fluid {

/// Says when to stop; looks at the clock once in some thousand calls.
class Deadline {
 public:
  explicit Deadline(Seconds timeout) : timeout_(timeout) {}

  void check() {
    if (timeout_.value <= 0 || ++calls_ % 4096 != 0) return;
    if (std::chrono::duration<double>(Wall::now() - begin_).count() > timeout_.value)
      throw BackendError("fluid: stopped after " + to_text(timeout_) + " of wall time, as asked");
  }

 private:
  using Wall = std::chrono::steady_clock;
  Seconds timeout_;
  std::uint32_t calls_ = 0;
  Wall::time_point begin_ = Wall::now();
};

}  // namespace stagecraft::fluid
