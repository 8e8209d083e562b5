#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule_file/csv.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec csv_file_fields{
    .title = "An order read from a file.",
    .fields = {config::text("csv").optional().doc(
                   "File with a compute-only schedule in PyTorch's CSV format, one row for each rank."),
               config::list("rows", config::text("row")).optional().doc("The rows, instead of a file.")},
};

/// The rows with their places in the scenario or in a file of their own.
struct CsvRows {
  struct Row {
    std::string text;
    Where where;
  };
  std::vector<Row> rows;
  Where where;
  friend bool operator==(const CsvRows& a, const CsvRows& b) {
    return std::equal(a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
                      [](const Row& x, const Row& y) { return x.text == y.text; });
  }
};

void read_csv_file(const config::Value& map, ScheduleOptions& options) {
  const config::Value* rows = map.find("rows");
  if (rows == nullptr) return;
  CsvRows file_rows{{}, rows->where};
  for (const config::Value& row : rows->items) file_rows.rows.push_back({row.text, row.where});
  options.keep(std::move(file_rows));
}

CsvSchedule read_rows(const CsvRows& csv) {
  std::string text;
  for (const CsvRows::Row& row : csv.rows) text += row.text + '\n';
  try {
    return parse_schedule_csv(text, {});
  } catch (const InputError& e) {
    std::vector<Diagnostic> problems = e.problems();
    for (Diagnostic& p : problems) {
      const int line = std::max(p.where.line, 1) - 1;
      const int column = p.where.column;
      p.where = line < std::ssize(csv.rows) ? csv.rows[line].where : csv.where;
      p.where.column += column - 1;
    }
    throw InputError(std::move(problems));
  }
}

// The file gives one iteration; rows are devices 0, 1, ... of the cluster.
Schedule csv_file_whole(const ScheduleInput& in) {
  const CsvRows rows = in.options.as<CsvRows>();
  CsvSchedule csv = read_rows(rows);
  if (csv.stages != in.plan.stage_count())
    throw InputError({{rows.where, "run.schedule",
                       fmt::format("the order is for {}, but the plan has {}", pluralize(csv.stages, "stage"),
                                   in.plan.stage_count()),
                       fmt::format("set plan.stages to {}", csv.stages), "stages"}});
  int expected = 0;
  for (const StageId s : in.plan.stages.ids()) expected = std::max(expected, in.plan.micro_batches(s));
  if (csv.micro_batches != expected)
    throw InputError({{rows.where, "run.schedule",
                       fmt::format("the order is for {}, but run.micro_batches is {}",
                                   pluralize(csv.micro_batches, "micro-batch", "es"), expected),
                       fmt::format("set run.micro_batches to {}", csv.micro_batches), "micro-batches"}});
  if (std::ssize(csv.schedule.ranks) < in.plan.device_count()) csv.schedule.ranks.resize(in.plan.device_count());
  return std::move(csv.schedule);
}

}  // namespace

extern const ScheduleDef csv_file{
    .name = "csv",
    .summary = "Any order, read from PyTorch's compute-only CSV",
    .source = "torch.distributed.pipelining, _dump_csv and _load_csv",
    .equal_sizes = false,
    .fields = &csv_file_fields,
    .read = read_csv_file,
    .whole = csv_file_whole,
};

}  // namespace stagecraft::schedules
