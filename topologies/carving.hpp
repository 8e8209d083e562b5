#pragma once

namespace stagecraft {

/// Multiprocessors of each of `parts` equal parts of a GPU with `all`, which are given away in groups.
constexpr int multiprocessors_of_part(int all, int group, int parts) {
  return parts == 1 ? all : all / group / parts * group;
}

}  // namespace stagecraft
