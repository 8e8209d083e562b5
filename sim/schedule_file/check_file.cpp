// Runs levels 1 to 8 of the checks on an order in PyTorch's CSV text, and level 10 when asked, each only where those
// before it hold; for `schedule`, `import pytorch-csv` and `export pytorch-csv`.

#include "sim/schedule_file/check_file.hpp"

#include <algorithm>
#include <utility>

namespace stagecraft {
namespace {

using Problems = std::vector<ScheduleProblem>;

bool has(const ActionTable& table, ActionKind first, ActionKind last) {
  return std::any_of(table.ranks.begin(), table.ranks.end(), [&](const auto& row) {
    return std::any_of(row.begin(), row.end(), [&](const Action& a) { return a.kind >= first && a.kind <= last; });
  });
}

/// Replaces indices in a row by columns of the file.
Problems in_columns(Problems problems, const std::vector<std::vector<int>>& columns) {
  for (ScheduleProblem& p : problems)
    if (p.rank >= 0 && p.column >= 0) {
      const auto& row = columns[p.rank];
      if (p.column < std::ssize(row)) p.column = row[p.column];
    }
  return problems;
}

/// Checks levels 5 and 8 as far as the file has messages and sharding.
Problems check_actions(const CsvFile& csv, const Plan& plan, const FileCheckOptions& options) {
  const ActionTable& table = csv.actions;
  Problems problems;
  if (has(table, ActionKind::SendForward, ActionKind::ReceiveBackward) || csv.communicates)
    problems = check_comms(table, plan, options.rendezvous ? options.rendezvous->streams : CommStreams::Direction);
  if (!problems.empty()) return problems;
  const bool reduces = has(table, ActionKind::ReduceGradient, ActionKind::ReduceGradient);
  const auto version = options.torch.value_or(reduces ? TorchVersion::V2_11 : TorchVersion::V2_8);
  return check_sharding(table, plan, version);
}

void check(CheckedFile& f, const FileCheckOptions& options) {
  const auto& columns = f.csv.columns;
  f.plan = implied_plan(f.compute, f.problems);
  if (!f.problems.empty()) return;
  f.problems = in_columns(
      validate(f.compute.schedule, f.plan, {.iterations = 1, .trains = options.trains, .slices = options.slices}),
      f.compute.columns);
  if (!f.problems.empty()) return;
  if (options.torch)
    f.problems = in_columns(why_not_torch(f.csv.actions, f.plan, options.slices, *options.torch), columns);
  if (f.problems.empty() && f.csv.communicates) f.problems = in_columns(check_actions(f.csv, f.plan, options), columns);
  if (!f.problems.empty()) return;
  if (options.rendezvous) {
    const bool given = f.csv.communicates;
    const ActionTable table = given ? ActionTable{} : add_comms(f.compute.schedule, f.plan, options.placement);
    f.problems = check_rendezvous(given ? f.csv.actions : table, f.plan, *options.rendezvous);
    if (given) f.problems = in_columns(std::move(f.problems), columns);
    for (ScheduleProblem& p : f.problems)
      if (!given) p.column = -1;  // The message is not in the file.
  }
  if (f.problems.empty()) f.problems = in_columns(check_stash(f.csv.actions, f.plan, options.memory), columns);
  if (f.problems.empty() && options.lint) f.warnings = lint(f.csv, f.plan);
}

}  // namespace

CheckedFile check_file(std::string_view text, const std::string& file, const FileCheckOptions& options) {
  CheckedFile f;
  f.csv = read_csv(text, file, options.torch, f.cells);
  if (!f.cells.empty()) return f;
  f.compute = compute_of(f.csv);
  check(f, options);
  return f;
}

}  // namespace stagecraft
