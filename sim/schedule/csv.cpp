#include "sim/schedule/csv.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/config/source.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kOverlap = ")OVERLAP_F_B";
constexpr int kMostStages = 1 << 20, kMostMicroBatches = 1 << 24;

/// One cell: nothing, an op, or a group that runs as one. False when it does not match in full.
bool parse_cell(std::string_view cell, std::vector<Op>& ops) {
  cell = trim(cell);
  if (cell.empty()) return true;
  if (cell.front() != '(') {
    const auto op = parse_op(cell);
    if (op) ops.push_back(*op);
    return op.has_value();
  }
  if (!cell.ends_with(kOverlap)) return false;
  cell.remove_prefix(1);
  cell.remove_suffix(kOverlap.size());
  const auto parts = split(cell, ';');
  for (std::size_t i = 0; i < parts.size(); ++i) {
    auto op = parse_op(trim(parts[i]));
    if (!op) return false;
    op->fused = i + 1 < parts.size();
    ops.push_back(*op);
  }
  return parts.size() >= 2;
}

std::string why_not(std::string_view cell) {
  for (const std::string_view word : {"SEND", "RECV", "UNSHARD", "RESHARD", "REDUCE_GRAD"})
    if (cell.find(word) != std::string_view::npos)
      return fmt::format(
          "'{}' is communication; give the compute-only schedule, sends and receives are worked out from it", cell);
  if (const auto op = parse_op(cell); op && op->kind == OpKind::Update)
    return fmt::format("'{}' is an update; each is put behind the last backward of its stage by itself", cell);
  return fmt::format("'{}' is not an op", cell);
}

/// Chains are copies of one pipeline: equally long, and together they run every micro-batch.
void check_chains(std::vector<int> starts, const std::vector<std::set<int>>& micros, const CsvSchedule& csv,
                  std::vector<ScheduleProblem>& problems) {
  std::set<int> all;
  for (const int s : starts)
    all.insert(micros[static_cast<std::size_t>(s)].begin(), micros[static_cast<std::size_t>(s)].end());
  for (int m = 0; m < csv.micro_batches && problems.size() < 20; ++m)
    if (!all.contains(m)) problems.push_back({"missing", 2, -1, -1, {}, fmt::format("micro-batch {} never starts", m)});
  starts.push_back(csv.stages);
  for (std::size_t c = 1; c + 1 < starts.size(); ++c)
    if (starts[c + 1] - starts[c] != starts[1])
      return problems.push_back(
          {"chain",
           2,
           -1,
           -1,
           {},
           fmt::format("stages {} to {} run micro-batches of their own but are not as many as stages 0 to {}",
                       starts[c], starts[c + 1] - 1, starts[1] - 1)});
}

}  // namespace

CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file) {
  CsvSchedule result;
  std::vector<Diagnostic> problems;
  if (config::first_odd_byte(text) != std::string_view::npos)
    throw InputError(
        {{{file, 0, 0}, {}, "this is not a text file", "give a schedule in PyTorch's CSV text", "not-text"}});
  auto lines = split(text, '\n');
  while (!lines.empty() && trim(lines.back()).empty()) lines.pop_back();
  for (std::size_t line = 0; line < lines.size(); ++line) {
    auto& ops = result.schedule.devices.emplace_back();
    auto& columns = result.columns.emplace_back();
    int column = 0, offset = 1;
    for (const std::string& cell : split(lines[line], ',')) {
      const std::size_t before = ops.size();
      const bool good = parse_cell(cell, ops) &&
                        std::all_of(ops.begin() + static_cast<std::ptrdiff_t>(before), ops.end(), [](const Op& op) {
                          return op.kind != OpKind::Update && op.stage < kMostStages && op.micro < kMostMicroBatches;
                        });
      if (!good) {
        ops.resize(before);
        problems.push_back({{file, static_cast<int>(line) + 1, offset},
                            fmt::format("rank {}, column {}", line, column),
                            why_not(trim(cell)),
                            "write stage, kind and micro-batch: 0F1, 2B0, 1I3, 1W3, 1R3 or (0F3;7B5)OVERLAP_F_B",
                            "syntax"});
      }
      columns.resize(ops.size(), column);
      for (std::size_t i = before; i < ops.size(); ++i) {
        result.stages = std::max(result.stages, ops[i].stage + 1);
        result.micro_batches = std::max(result.micro_batches, ops[i].micro + 1);
      }
      ++column;
      offset += static_cast<int>(cell.size()) + 1;
    }
  }
  if (problems.empty() && result.stages == 0)
    problems.push_back({{file, 1, 1}, {}, "there is no op in this file", {}, "syntax"});
  if (!problems.empty()) throw InputError(std::move(problems));
  return result;
}

std::string to_csv(const Schedule& schedule) {
  std::string text;
  for (const auto& ops : schedule.devices) {
    std::string row;
    bool inside = false;
    for (const Op& op : ops) {
      if (!row.empty()) row += inside ? ';' : ',';
      if (op.fused && !inside) row += '(';
      row += to_text(op);
      if (inside && !op.fused) row += kOverlap;
      inside = op.fused;
    }
    text += row + '\n';
  }
  return text;
}

Plan implied_plan(const CsvSchedule& csv, std::vector<ScheduleProblem>& problems) {
  Plan plan;
  plan.mini_batch = csv.micro_batches;
  plan.stages.resize(static_cast<std::size_t>(csv.stages));
  std::vector<std::set<int>> micros(plan.stages.size());
  for (std::size_t rank = 0; rank < csv.schedule.devices.size(); ++rank) {
    const auto& ops = csv.schedule.devices[rank];
    for (std::size_t i = 0; i < ops.size(); ++i) {
      auto& devices = plan.stages[static_cast<std::size_t>(ops[i].stage)].devices;
      if (devices.empty()) devices.emplace_back(static_cast<std::int64_t>(rank));
      if (devices.front() != static_cast<int>(rank) && problems.size() < 20)
        problems.push_back(
            {"wrong-rank", 2, static_cast<int>(rank), csv.columns[rank][i], to_text(ops[i]),
             fmt::format("stage {} runs on rank {} and on rank {}", ops[i].stage.value, devices.front().value, rank)});
      if (ops[i].kind == OpKind::Forward) micros[static_cast<std::size_t>(ops[i].stage)].insert(ops[i].micro);
    }
  }
  std::vector<int> chain_starts{0};
  for (int s = 0; s < csv.stages; ++s) {
    auto& stage = plan.stages[static_cast<std::size_t>(s)];
    const auto& own = micros[static_cast<std::size_t>(s)];
    if (own.empty()) {
      problems.push_back({"missing",
                          2,
                          -1,
                          -1,
                          {},
                          fmt::format("stage {} runs no forward at all; stages are numbered from 0 without gaps", s)});
      if (stage.devices.empty()) stage.devices.emplace_back(0);
      continue;
    }
    if (own.size() < static_cast<std::size_t>(csv.micro_batches)) stage.micros.assign(own.begin(), own.end());
    if (s == 0) continue;
    const auto& before = micros[static_cast<std::size_t>(s) - 1];
    std::vector<int> shared;
    std::set_intersection(own.begin(), own.end(), before.begin(), before.end(), std::back_inserter(shared));
    if (shared.empty()) {
      chain_starts.push_back(s);
      continue;
    }
    plan.edges.push_back({StageId{s - 1}, StageId{s}, {}});
    std::vector<int> odd;
    std::set_symmetric_difference(own.begin(), own.end(), before.begin(), before.end(), std::back_inserter(odd));
    if (!odd.empty())
      problems.push_back(
          {"chain",
           2,
           stage.devices.front(),
           -1,
           {},
           fmt::format("stages {} and {} follow one another but do not run the same micro-batches: {} is on {} only",
                       s - 1, s, odd.front(), own.contains(odd.front()) ? s : s - 1)});
  }
  if (problems.empty()) check_chains(chain_starts, micros, csv, problems);
  return plan;
}

}  // namespace stagecraft
