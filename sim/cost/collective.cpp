// Joins lists of collectives, equal ones as rounds of one, and sums what they take and what an op waits for.

#include "sim/cost/collective.hpp"

#include <algorithm>

namespace stagecraft {

void append(Collectives& list, const Collectives& more, bool in_order) {
  for (const Collective& c : more) {
    const auto equal = std::find_if(list.begin(), list.end(),
                                    [&](const Collective& o) { return !in_order && o.equals_but_rounds(c); });
    if (equal == list.end())
      list.push_back(c);
    else
      equal->rounds += c.rounds;
  }
}

Seconds cost_of(const Collectives& list) {
  Seconds sum;
  for (const Collective& c : list)
    if (!c.parallel) sum += c.rounds * c.cost;
  return sum;
}

Seconds exposed_of(const Collectives& list) {
  Seconds sum;
  for (const Collective& c : list)
    if (!c.parallel) sum += c.rounds * c.exposed();
  return sum;
}

Seconds exposed_on(Axis axis, const Collectives& list) {
  Seconds sum;
  for (const Collective& c : list)
    if (c.axis == axis && !c.parallel) sum += c.rounds * c.exposed();
  return sum;
}

}  // namespace stagecraft
