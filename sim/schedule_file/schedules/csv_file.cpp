// The schedule `csv`: an order that the scenario or a file lists.

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule_file/csv.hpp"

namespace stagecraft::schedules {
namespace {

const config::MapSpec csv_file_fields{
    .title = "An order read from a file.",
    .fields = {config::text("csv").optional().doc(
                   "File with a compute-only schedule in PyTorch's CSV format, one row for each rank."),
               config::list("rows", config::text("row")).optional().doc("The rows, instead of a file.")},
};

/// The rows with their places in the scenario or in a separate file.
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

/// The cell of a row that holds an op, alone or in a group; of an op that is there twice, the second one.
std::optional<Where> cell_of(const CsvRows::Row& row, const std::string& op, bool second) {
  Where where = row.where;
  std::optional<Where> location;
  for (const std::string& cell : split(row.text, ',')) {
    std::string ops = cell.substr(0, cell.find(')'));
    std::erase(ops, '(');
    for (const std::string& part : split(ops, ';')) {
      if (trim(part) != op) continue;
      if (location || !second) return where;
      location = where;
    }
    where.column += static_cast<int>(cell.size()) + 1;
  }
  return location;
}

/// Throws what is wrong with the order, at the cells of the file.
void check_rows(const Schedule& schedule, const Plan& plan, const CsvRows& csv) {
  const std::vector<ScheduleProblem> problems = validate(schedule, plan, {});
  if (problems.empty()) return;
  std::vector<Diagnostic> list = grouped_diagnostics(problems, [&](const ScheduleProblem& p) -> Diagnostic {
    const std::size_t row = std::max(p.rank, 0);
    std::optional<Where> cell;
    if (p.column >= 0 && row < csv.rows.size()) cell = cell_of(csv.rows[row], p.op, p.code == "duplicate");
    const Where& line = p.rank >= 0 && row < csv.rows.size() ? csv.rows[row].where : csv.where;
    return {cell.value_or(line), "run.schedule", p.message,
            p.level >= 4 ? "an op of the cycle has to move before the op that waits for it" : "", p.code};
  });
  if (problems.front().level >= 4) throw Infeasible(std::move(list.front()));
  throw InputError(std::move(list));
}

/// Whether every row has ops of these stages alone. Rows without stages are empty.
bool fit(const Schedule& order, const std::vector<std::vector<StageId>>& stages) {
  for (const RankId rank : order.ranks.ids())
    for (const Op& op : order.ranks[rank]) {
      const std::size_t row = rank.value;
      if (row >= stages.size()) return false;
      if (std::find(stages[row].begin(), stages[row].end(), op.stage) == stages[row].end()) return false;
    }
  return true;
}

std::vector<std::vector<StageId>> stages_by_device(const Plan& plan) {
  std::vector<std::vector<StageId>> stages(plan.device_count());
  for (const StageId s : plan.stages.ids())
    for (const DeviceId device : plan.stage(s).leaders) stages[device.value].push_back(s);
  return stages;
}

void check_counts(const CsvSchedule& csv, const Plan& plan, const Where& where) {
  if (csv.stages != plan.stage_count())
    throw InputError(
        {{where, "run.schedule",
          fmt::format("the order is for {}, but the plan has {}", pluralize(csv.stages, "stage"), plan.stage_count()),
          fmt::format("set plan.stages to {}", csv.stages), "stages"}});
  int expected = 0;
  for (const StageId s : plan.stages.ids()) expected = std::max(expected, plan.micro_batches(s));
  if (csv.micro_batches != expected)
    throw InputError({{where, "run.schedule",
                       fmt::format("the order is for {}, but run.micro_batches is {}",
                                   pluralize(csv.micro_batches, "micro-batch", "es"), expected),
                       fmt::format("set run.micro_batches to {}", csv.micro_batches), "micro-batches"}});
}

// The file gives one iteration. Its rows are the pipeline ranks of the plan, in the order of their first stages; or, in
// files that have a row for each device, devices 0, 1, ... of the cluster.
Schedule csv_file_whole(const ScheduleInput& in) {
  const CsvRows rows = in.options.as<CsvRows>();
  CsvSchedule csv = read_rows(rows);
  check_counts(csv, in.plan, rows.where);
  const RankedPlan ranked = on_ranks(in.plan);
  const bool too_many = csv.schedule.ranks.size() > ranked.devices.size();
  if (!fit(csv.schedule, ranked.stages) && (too_many || fit(csv.schedule, stages_by_device(in.plan)))) {
    if (std::ssize(csv.schedule.ranks) < in.plan.device_count()) csv.schedule.ranks.resize(in.plan.device_count());
    check_rows(csv.schedule, in.plan, rows);
    return std::move(csv.schedule);
  }
  csv.schedule.ranks.resize(ranked.devices.size());
  check_rows(csv.schedule, ranked.plan, rows);
  Schedule schedule = empty_schedule(in.plan);
  for (std::size_t r = 0; r < ranked.devices.size(); ++r)
    schedule.ranks[schedule.rank(ranked.devices[r])] = std::move(csv.schedule.ranks[RankId{r}]);
  return schedule;
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
