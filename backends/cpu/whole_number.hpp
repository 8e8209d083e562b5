#pragma once

#include <cmath>
#include <cstdint>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/model/operation.hpp"

namespace stagecraft::cpu {

/// A word or a class that the data of a task give as a number: whole, from 0, below `count`.
template <class T>
std::int64_t whole_number(T value, int count, const char* what, const Operation& op) {
  if (!(value >= 0 && value < static_cast<T>(count)) || value != std::floor(value))
    throw InputError(fmt::format("{}: {} {} is not known.", to_text(op), what, value),
                     fmt::format("Use whole numbers from 0 to {}.", count - 1));
  return static_cast<std::int64_t>(value);
}

}  // namespace stagecraft::cpu
