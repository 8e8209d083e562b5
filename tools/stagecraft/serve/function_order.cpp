#include "tools/stagecraft/serve/function_order.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft::serve {
namespace {

thread_local const FunctionOrder* current_order = nullptr;

/// A rank with stages. Devices without a stage are ranks of the plan too, which a function does not see.
struct BusyRank {
  RankId rank;
  std::vector<StageId> stages;
};

/// In the order of their first stages.
std::vector<BusyRank> busy_ranks(const Schedule& schedule, const Plan& plan) {
  std::vector<BusyRank> ranks;
  for (const StageId s : plan.stages.ids())
    for (const DeviceId device : plan.stage(s).devices()) {
      const RankId rank = schedule.rank(device);
      auto entry = std::find_if(ranks.begin(), ranks.end(), [&](const BusyRank& r) { return r.rank == rank; });
      if (entry == ranks.end()) entry = ranks.insert(ranks.end(), BusyRank{rank, {}});
      if (entry->stages.empty() || entry->stages.back() != s) entry->stages.push_back(s);
    }
  return ranks;
}

using Rows = std::vector<std::vector<OpOfLine>>;

/// The line of the op that a problem is about, or else the definition of the function.
Where place_of(const ScheduleProblem& problem, const Schedule& schedule, const std::vector<BusyRank>& ranks,
               const Rows& rows) {
  Where where = current_order->where;
  if (problem.rank < 0 || problem.column < 0) return where;
  const RankId rank = schedule.rank(DeviceId{problem.rank});
  for (std::size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].rank == rank && problem.column < std::ssize(rows[r]) && rows[r][problem.column].line > 0)
      where.line = rows[r][problem.column].line;
  return where;
}

Diagnostic diagnostic_of(const ScheduleProblem& problem, const Where& where) {
  return {where, fmt::format("schedule '{}'", current_order->name), to_text(problem), help_for(problem.level),
          problem.code};
}

void check(const Schedule& schedule, const Plan& plan, const std::vector<BusyRank>& ranks, const Rows& rows) {
  const auto problems = validate(schedule, plan, {.iterations = 1, .trains = current_order->def.trains});
  if (problems.empty()) return;
  std::vector<Diagnostic> list;
  for (const ScheduleProblem& problem : problems)
    list.push_back(diagnostic_of(problem, place_of(problem, schedule, ranks, rows)));
  if (cannot_be_done(problems.front())) throw Infeasible(list.front());
  throw InputError(std::move(list));
}

Schedule whole_of_function(const ScheduleInput& in) {
  STAGECRAFT_CHECK(current_order != nullptr);
  Schedule schedule = empty_schedule(in.plan);
  const std::vector<BusyRank> ranks = busy_ranks(schedule, in.plan);
  std::vector<std::vector<StageId>> stages;
  for (const BusyRank& rank : ranks) stages.push_back(rank.stages);
  const Rows rows = current_order->rows(in, stages);
  if (rows.size() != ranks.size())
    throw InputError({{current_order->where, fmt::format("schedule '{}'", current_order->name),
                       fmt::format("the function gives {}, but the plan has {}", pluralize(std::ssize(rows), "row"),
                                   pluralize(std::ssize(ranks), "rank")),
                       "give one row for each rank", "ranks"}});
  for (std::size_t r = 0; r < ranks.size(); ++r)
    for (const OpOfLine& op : rows[r]) schedule.ranks[ranks[r].rank].push_back(op.op);
  check(schedule, in.plan, ranks, rows);
  return schedule;
}

}  // namespace

void define(FunctionOrder& order, Placement placement, int chunks) {
  order.def.name = order.name;
  order.def.summary = "An order that a function gives";
  order.def.source = "a function of the program that asks";
  order.def.placement = placement;
  if (placement != Placement::Any) order.def.chunks = {chunks, chunks, 1};
  order.def.equal_sizes = placement != Placement::Any;
  order.def.whole = whole_of_function;
}

OrderScope::OrderScope(const FunctionOrder* order) { current_order = order; }
OrderScope::~OrderScope() { current_order = nullptr; }

}  // namespace stagecraft::serve
