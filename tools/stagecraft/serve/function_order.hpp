#pragma once

#include <functional>
#include <string>
#include <vector>

#include "sim/schedule/builder.hpp"

namespace stagecraft::serve {

/// An op, and the line of the function that gives it.
struct OpOfLine {
  Op op;
  int line = 0;
};

/// A schedule whose order a function of another program gives.
struct FunctionOrder {
  std::string name;
  Where where;  ///< The definition of the function.
  ScheduleDef def;
  /// The rows of one iteration, one for each rank; `stages` has the stages of each rank.
  std::function<std::vector<std::vector<OpOfLine>>(const ScheduleInput&,
                                                   const std::vector<std::vector<StageId>>& stages)>
      rows;
};

/// Defines the schedule in `order`, which must outlive whatever is built with it.
void define(FunctionOrder& order, Placement, int chunks);

/// One iteration without updates, a row for each pipeline rank of the plan, as a file has it.
Schedule order_on_ranks(const FunctionOrder& order, const ScheduleInput&);

/// Schedules of functions are built in this thread while the scope of their order lives.
class OrderScope {
 public:
  explicit OrderScope(const FunctionOrder*);  ///< Null: there is none.
  ~OrderScope();
  OrderScope(const OrderScope&) = delete;
  OrderScope& operator=(const OrderScope&) = delete;
};

}  // namespace stagecraft::serve
