#include "sim/cost/op_collectives.hpp"

#include <algorithm>

namespace stagecraft {

TimeByClass in_op(TimeByClass pass, Written written) {
  if (written != Written::None) pass.expert = {};
  if (written == Written::All) pass.tensor = pass.context = pass.data = {};
  return pass;
}

Seconds StageCollectives::exposed_exchanges(const OpCollectives& list) {
  Seconds sum;
  for (const OpCollective& c : list)
    if (c.is_exchange() && !c.parallel) sum += c.exposed * c.rounds * c.cost;
  return sum;
}

/// Exchanges that a pair hides take a share of the multiprocessors while they run. The slowdown of a pair is that of
/// both ops together, so the sum over its ops is at most what the pair takes.
Seconds StageCollectives::least_time(const TimeByClass& pass, const OpCollectives& list) const {
  const Seconds compute = in_op(pass, written()).total();
  if (flows) return compute;
  const Seconds exposed = exposed_exchanges(list), hidden = pair_overlap * exposed;
  return std::min(compute + taken * hidden, compute / (1 - taken)) + exposed - hidden;
}

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
