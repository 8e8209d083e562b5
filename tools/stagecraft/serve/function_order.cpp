// A schedule whose rows a function of the asking program gives: checks them as a schedule and names the lines of the
// function in errors.

#include "tools/stagecraft/serve/function_order.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft::serve {
namespace {

thread_local const FunctionOrder* current_order = nullptr;

using Rows = std::vector<std::vector<OpOfLine>>;

/// The line of the op that a problem is about, or else the definition of the function.
Where place_of(const ScheduleProblem& problem, const Rows& rows) {
  Where where = current_order->where;
  const std::size_t rank = std::max(problem.rank, 0);
  if (problem.rank >= 0 && problem.column >= 0 && rank < rows.size() && problem.column < std::ssize(rows[rank]) &&
      rows[rank][problem.column].line > 0)
    where.line = rows[rank][problem.column].line;
  return where;
}

Diagnostic diagnostic_of(const ScheduleProblem& problem, const Where& where) {
  return {where, fmt::format("schedule '{}'", current_order->name), to_text(problem), help_for(problem.level),
          problem.code};
}

/// The rows as a schedule. Problems count the ranks of the function.
Schedule checked(const RankedPlan& ranked, const Rows& rows) {
  Schedule schedule;
  for (const std::vector<OpOfLine>& row : rows) {
    schedule.ranks.emplace_back();
    for (const OpOfLine& op : row) schedule.ranks.back().push_back(op.op);
  }
  const auto problems = validate(schedule, ranked.plan, {.iterations = 1, .trains = current_order->def.trains});
  if (problems.empty()) return schedule;
  std::vector<Diagnostic> list = grouped_diagnostics(
      problems, [&](const ScheduleProblem& problem) { return diagnostic_of(problem, place_of(problem, rows)); });
  if (cannot_be_done(problems.front())) throw Infeasible(list.front());
  throw InputError(std::move(list));
}

/// One iteration of the current order, on the pipeline ranks of a plan.
Schedule order_on(const RankedPlan& ranked, const ScheduleInput& in) {
  STAGECRAFT_CHECK(current_order != nullptr);
  const Rows rows = current_order->rows(in, ranked.stages);
  if (rows.size() != ranked.devices.size())
    throw InputError({{current_order->where, fmt::format("schedule '{}'", current_order->name),
                       fmt::format("the function gives {}, but the plan has {}", pluralize(std::ssize(rows), "row"),
                                   pluralize(std::ssize(ranked.devices), "rank")),
                       "give one row for each rank", "ranks"}});
  return checked(ranked, rows);
}

Schedule whole_of_function(const ScheduleInput& in) {
  const RankedPlan ranked = on_ranks(in.plan);
  Schedule order = order_on(ranked, in), schedule = empty_schedule(in.plan);
  for (std::size_t r = 0; r < ranked.devices.size(); ++r)
    schedule.ranks[schedule.rank(ranked.devices[r])] = std::move(order.ranks[RankId{r}]);
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

Schedule order_on_ranks(const FunctionOrder& order, const ScheduleInput& in) {
  const OrderScope scope(&order);
  return order_on(on_ranks(in.plan), in);
}

OrderScope::OrderScope(const FunctionOrder* order) { current_order = order; }
OrderScope::~OrderScope() { current_order = nullptr; }

}  // namespace stagecraft::serve
