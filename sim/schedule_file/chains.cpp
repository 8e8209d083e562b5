// Reads a plan as chains of stages on one rank each, the only plans for which messages of PyTorch's CSV can be made and
// checked, or says why the plan is more than that.

#include "sim/schedule_file/chains.hpp"

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

int Chains::source(StageId s, bool gradient) const {
  const StageId other{gradient ? s.value + 1 : s.value - 1};
  if (!has_input(s, gradient)) return -1;
  return rank_of(other) == rank_of(s) ? -1 : rank_of(other);
}

std::string why_no_chains(const Plan& plan) {
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    if (stage.leaders.size() != 1)
      return fmt::format("stage {} has {} replicas, but a rank is one device here", s, stage.leaders.size());
    if (stage.micro_batch_size != plan.stages.front().micro_batch_size)
      return fmt::format("stage {} has micro-batches of another size than stage 0", s);
  }
  for (const StageEdge& e : plan.edges)
    if (e.to.value != e.from.value + 1)
      return fmt::format("stage {} feeds stage {}, but a stage talks to its neighbors in the chain only", e.from.value,
                         e.to.value);
  return {};
}

Chains chains_of(const Plan& plan) {
  if (const std::string why = why_no_chains(plan); !why.empty())
    throw InputError(why, "give a chain of stages, each on one rank");
  Chains chains;
  chains.fed.assign(plan.stages.size(), false);
  for (const StageId s : plan.stages.ids()) {
    chains.rank.push_back(plan.stage(s).leaders.front().value);
    chains.micro_batches = std::max(chains.micro_batches, plan.micro_batches(s));
  }
  for (const StageEdge& e : plan.edges) chains.fed[e.to.value] = true;
  return chains;
}

}  // namespace stagecraft
