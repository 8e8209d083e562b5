#include "sim/cost/op_collectives.hpp"

#include <algorithm>

namespace stagecraft {

void append(OpCollectives& list, const OpCollectives& more, bool in_order) {
  for (const OpCollective& c : more) {
    const auto equal = std::find_if(list.begin(), list.end(),
                                    [&](const OpCollective& o) { return !in_order && o.equals_but_rounds(c); });
    if (equal == list.end())
      list.push_back(c);
    else
      equal->rounds += c.rounds;
  }
}

}  // namespace stagecraft
