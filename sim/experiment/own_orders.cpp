// Reads orders of the user from PyTorch's CSV, and what a plan needs to have for them.

#include "sim/experiment/own_orders.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule_file/csv.hpp"

namespace stagecraft {

bool is_order_file(const std::string& word) { return word.ends_with(".csv"); }

OwnOrder own_order(const std::string& file) {
  const std::filesystem::path path(file);
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    throw InputError(fmt::format("'{}' is not a known schedule, and there is no such file", file),
                     "stagecraft list schedules shows the schedules; an order of your own is a file of PyTorch's CSV");
  OwnOrder order{{}, read_file(file), file};
  order.name = schedule_title(schedule_of(order));
  return order;
}

ScheduleSpec schedule_of(const OwnOrder& order) {
  config::Value rows;
  rows.kind = config::Value::Kind::List;
  rows.where = {order.file, 1, 1};
  for (const std::string& line : split(order.csv, '\n'))
    if (!trim(line).empty() || !rows.items.empty())
      rows.items.push_back(config::Value::scalar(std::string(trim(line)),
                                                 {order.file, static_cast<int>(rows.items.size()) + 1, 1}, "computed"));
  while (!rows.items.empty() && rows.items.back().text.empty()) rows.items.pop_back();
  return schedule_spec(get_from(schedules::catalog(), "schedule", "csv"), {{"rows", {}, std::move(rows)}});
}

std::string schedule_title(const ScheduleSpec& schedule) {
  const config::Value* rows = schedule.options->find("rows");
  if (!rows || !is_order_file(rows->where.file)) return schedule.name();
  const std::filesystem::path path(rows->where.file);
  const std::vector<std::string> built_in = names_of(schedules::catalog());
  const bool is_built_in = std::find(built_in.begin(), built_in.end(), path.stem().string()) != built_in.end();
  return (is_built_in ? path.filename() : path.stem()).string();
}

OrderShape shape_of(const OwnOrder& order) {
  const CsvSchedule parsed = parse_schedule_csv(order.csv, order.file);
  OrderShape shape{static_cast<int>(parsed.schedule.ranks.size()), parsed.stages, parsed.micro_batches};
  const auto runs_last = [&](const Op& op) { return op.stage.value == parsed.stages - 1; };
  const std::vector<Op>& first = parsed.schedule.ranks.front();
  shape.turns =
      shape.ranks > 1 && shape.stages == 2 * shape.ranks && std::any_of(first.begin(), first.end(), runs_last);
  return shape;
}

const ScheduleDef& OrderShape::placed_as() const {
  return get_from(schedules::catalog(), "schedule", turns ? "1f1b-v" : stages > ranks ? "interleaved" : "1f1b");
}

}  // namespace stagecraft
