#include <algorithm>

#include <fmt/format.h>

#include "sim/schedule/builder.hpp"
#include "sim/schedule_file/csv.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{
    .title = "An order read from a file.",
    .fields = {config::text("csv").optional().doc(
                   "File with a compute-only schedule in PyTorch's CSV text, one row for each rank."),
               config::list("rows", config::text("row")).optional().doc("The rows themselves instead.")},
};

/// The rows may stand in the scenario or in a file of their own; errors name the place of the row either way.
CsvSchedule read_rows(const config::Value& rows) {
  std::string text;
  for (const config::Value& row : rows.items) text += row.text + '\n';
  try {
    return parse_schedule_csv(text, {});
  } catch (const InputError& e) {
    std::vector<Diagnostic> problems = e.problems();
    for (Diagnostic& p : problems) {
      const int line = std::max(p.where.line, 1) - 1;
      const int column = p.where.column;
      p.where = line < std::ssize(rows.items) ? rows.items[line].where : rows.where;
      p.where.column += column - 1;
    }
    throw InputError(std::move(problems));
  }
}

// The file gives one iteration; rows are devices 0, 1, ... of the cluster.
Schedule whole(const ScheduleInput& in) {
  const config::Value& rows = in.options->at("rows");
  CsvSchedule csv = read_rows(rows);
  if (csv.stages != in.plan.stage_count())
    throw InputError(
        {{rows.where, "run.schedule",
          fmt::format("the order is for {} stages, but the plan has {}", csv.stages, in.plan.stage_count()),
          fmt::format("set plan.stages to {}", csv.stages), "stages"}});
  int expected = 0;
  for (int s = 0; s < in.plan.stage_count(); ++s) expected = std::max(expected, in.plan.micro_batches(StageId{s}));
  if (csv.micro_batches != expected)
    throw InputError(
        {{rows.where, "run.schedule",
          fmt::format("the order is for {} micro-batches, but run.micro_batches is {}", csv.micro_batches, expected),
          fmt::format("set run.micro_batches to {}", csv.micro_batches), "micro-batches"}});
  if (std::ssize(csv.schedule.devices) < in.plan.device_count()) csv.schedule.devices.resize(in.plan.device_count());
  return std::move(csv.schedule);
}

}  // namespace

extern const ScheduleDef csv_file{
    .name = "csv",
    .summary = "Any order, read from PyTorch's compute-only CSV",
    .source = "torch.distributed.pipelining, _dump_csv and _load_csv",
    .equal_sizes = false,
    .fields = &fields,
    .whole = whole,
};

}  // namespace stagecraft::schedules
