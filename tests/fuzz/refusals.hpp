#pragma once

#include <cstdlib>

#include "sim/core/diagnostic.hpp"

/// Reads, or ends the program where it refuses without a problem that can be printed.
template <class Read>
void read_or_refuse(Read&& read) {
  try {
    read();
  } catch (const stagecraft::InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
  }
}
