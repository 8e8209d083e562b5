#include <fmt/core.h>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/dual_pipe.hpp"

namespace stagecraft::schedules {
namespace {

void dualpipev_order(const RankInput& r, RankOps& ops) {
  require_micro_batches(r.micro_batches >= 2 * r.ranks, "dualpipev", fmt::format("at least {}", 2 * r.ranks),
                        r.micro_batches);
  dual_pipe(r.rank, r.ranks, r.micro_batches, {0, 1}, {0, 0}, ops);
}

}  // namespace

extern const ScheduleDef dualpipev{
    .name = "dualpipev",
    .summary = "DualPipe with one copy of the model, in a V over the devices",
    .source = "deepseek-ai/DualPipe, dualpipev.py; PyTorch's ScheduleDualPipeV",
    .placement = Placement::V,
    .chunks = {2, 2},
    .rank = dualpipev_order,
};

}  // namespace stagecraft::schedules
