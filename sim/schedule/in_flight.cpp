// How many samples each stage of a graph forwards before its first backward (GraphPipe's rule); the schedule `graph`
// reads it.

#include "sim/schedule/in_flight.hpp"

#include <algorithm>
#include <cmath>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

IdVector<StageId, int> in_flight_samples(const Plan& plan, const std::vector<double>& extra) {
  const auto order = topological_order(plan.graph());
  STAGECRAFT_CHECK(order.has_value());
  IdVector<StageId, std::vector<std::size_t>> edges_of(plan.stages.size());
  for (std::size_t e = 0; e < plan.edges.size(); ++e) edges_of[plan.edges[e].from].push_back(e);
  const auto together = [&](StageId s) { return plan.stage(s).group * plan.stage(s).micro_batch_size; };

  IdVector<StageId, int> samples(plan.stages.size(), 0);
  for (auto it = order->rbegin(); it != order->rend(); ++it) {
    const StageId s{*it};
    double need = together(s);
    for (const std::size_t e : edges_of[s]) {
      const StageId t = plan.edges[e].to;
      need = std::max(need, samples[t] + together(t) + 2.0 * std::max(0, together(s) - together(t)) +
                                (extra.empty() ? 0.0 : extra[e]));
    }
    const int size = plan.stage(s).micro_batch_size;
    samples[s] = std::min(plan.mini_batch, static_cast<int>(std::ceil(need / size - 1e-9)) * size);
  }
  return samples;
}

}  // namespace stagecraft
