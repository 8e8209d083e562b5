#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::test {

/// Whether an item of the list contains the text.
inline bool mentions(const std::vector<std::string>& list, const std::string& text) {
  return std::any_of(list.begin(), list.end(), [&](const std::string& item) { return item.find(text) != item.npos; });
}

/// The messages with which a reader refuses its input; "read" if it does not.
template <class Read>
std::string refusal(Read&& read) {
  try {
    read();
  } catch (const InputError& e) {
    return render(e.problems());
  }
  return "read";
}

}  // namespace stagecraft::test
