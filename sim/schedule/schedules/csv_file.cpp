#include <fmt/format.h>

#include "sim/schedule/builder.hpp"
#include "sim/schedule/csv.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec fields{
    .title = "An order read from a file.",
    .fields = {config::text("csv").doc("Compute-only schedule in PyTorch's CSV text, one row for each rank.")},
};

// The file gives one iteration; rows are devices 0, 1, ... of the cluster.
Schedule whole(const ScheduleInput& in) {
  const std::string& file = in.options->at("csv").text;
  CsvSchedule csv = parse_schedule_csv(read_file(file), file);
  if (csv.stages != in.plan.stage_count())
    throw InputError(fmt::format("{} is for {} stages, but the plan has {}", file, csv.stages, in.plan.stage_count()));
  const int expected = in.plan.micro_batches(StageId{0});
  if (csv.micro_batches != expected)
    throw InputError(fmt::format("{} is for {} micro-batches, but run.micro_batches is {}", file, csv.micro_batches, expected),
                     fmt::format("set run.micro_batches to {}", csv.micro_batches));
  if (csv.schedule.devices.size() < static_cast<std::size_t>(in.plan.device_count()))
    csv.schedule.devices.resize(static_cast<std::size_t>(in.plan.device_count()));
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
