// Reads and writes schedules as PyTorch's CSV text, and says of each bad cell what is wrong.

#include "sim/schedule_file/csv.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/config/source.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // Spreadsheets put it in front.
constexpr std::string_view kOverlapEnd = ")OVERLAP_F_B";
constexpr std::string_view kDigits = "0123456789";
/// More cells than these cannot be read: the file is no schedule, and each problem takes memory.
constexpr std::size_t kMostProblems = 1000;
constexpr int kMostStages = 1 << 20, kMostMicroBatches = 1 << 24;

std::optional<Action> read_action(std::string_view cell) {
  const auto action = parse_action(cell);
  if (!action || action->kind == ActionKind::Update || action->stage.value >= kMostStages ||
      action->micro >= kMostMicroBatches)
    return {};
  return action;
}

bool is_above(std::string_view number, int limit) {
  if (number.empty() || number.front() == '0') return false;
  const auto value = read_number(number);
  return !value || *value >= limit;
}

/// Says which number makes an op unreadable; empty when the numbers are not the reason.
std::string too_large(std::string_view op) {
  const std::size_t kind = op.find_first_not_of(kDigits), last = op.find_last_not_of(kDigits);
  if (kind == 0 || kind == std::string_view::npos) return {};
  const std::string_view stage = op.substr(0, kind), micro = op.substr(last + 1);
  if (!parse_action(fmt::format("0{}{}", op.substr(kind, last + 1 - kind), micro.empty() ? "" : "0"))) return {};
  if (is_above(stage, kMostStages)) return fmt::format("stage {} is too large: the last is {}", stage, kMostStages - 1);
  if (is_above(micro, kMostMicroBatches))
    return fmt::format("micro-batch {} is too large: the last is {}", micro, kMostMicroBatches - 1);
  return {};
}

/// A cell without the quotes that Python's csv module removes too.
std::string_view without_quotes(std::string_view cell) {
  if (cell.size() < 2 || cell.front() != '"' || cell.back() != '"') return cell;
  return trim(cell.substr(1, cell.size() - 2));
}

/// Appends an action, or a group of computations that runs as one. Returns false when the cell does not match in full;
/// a part of the group may have been appended then.
bool read_cell(std::string_view cell, std::vector<Action>& row) {
  if (cell.front() != '(') {
    const auto action = read_action(cell);
    if (action) row.push_back(*action);
    return action.has_value();
  }
  if (!cell.ends_with(kOverlapEnd)) return false;
  cell.remove_prefix(1);
  cell.remove_suffix(kOverlapEnd.size());
  for (std::size_t parts = 1;; ++parts) {
    const std::size_t end = cell.find(';');
    auto action = read_action(trim(cell.substr(0, end)));
    if (!action || !action->is_compute()) return false;
    action->fused = end != std::string_view::npos;
    row.push_back(*action);
    if (!action->fused) return parts >= 2;
    cell.remove_prefix(end + 1);
  }
}

/// How cells look.
std::string cell_help() { return "write stage, kind and micro-batch: 0F1, 2B0, 1I3, 1W3, 1R3 or (0F3;7B5)OVERLAP_F_B"; }

/// What is wrong with a cell that cannot be read, and what helps.
struct CellFault {
  std::string message, help;
};

CellFault fault_of(std::string_view cell) {
  if (const auto action = parse_action(cell); action && action->kind == ActionKind::Update)
    return {fmt::format("'{}' is an update; updates are added after the last backward of each stage", cell),
            cell_help()};
  std::string_view ops = cell;
  if (ops.starts_with('(') && ops.ends_with(kOverlapEnd)) ops = ops.substr(1, ops.size() - 1 - kOverlapEnd.size());
  for (const std::string& op : split(ops, ';'))
    if (const std::string why = too_large(trim(op)); !why.empty())
      return {fmt::format("'{}': {}", cell, why), "count stages and micro-batches from 0"};
  return {fmt::format("'{}' is not an op", cell), cell_help()};
}

std::string_view unknown_to(TorchVersion version, const std::vector<Action>& row, std::size_t first) {
  for (std::size_t i = first; i < row.size(); ++i) {
    if (row[i].kind == ActionKind::Recompute) return "PyTorch has no op for recomputation";
    if (version != TorchVersion::V2_8) continue;
    if (row[i].kind == ActionKind::ReduceGradient) return "PyTorch 2.8 does not know REDUCE_GRAD";
    if (row[i].fused) return "PyTorch 2.8 does not know OVERLAP_F_B";
  }
  return {};
}

/// Reads row after row and collects the bad cells.
class CsvReader {
 public:
  CsvReader(const std::string& file, std::optional<TorchVersion> version, bool messages,
            std::vector<CellProblem>& problems)
      : file_(file), version_(version), messages_(messages), problems_(problems) {}

  CsvFile read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = text.find('\n');
      read_row(text.substr(0, end));
      if (end == std::string_view::npos || has_stopped()) break;
      text.remove_prefix(end + 1);
    }
    if (result_.communicates)
      for (auto& cell : empty_) problems_.push_back(std::move(cell));
    if (problems_.empty() && result_.stages == 0) refuse("syntax", -1, {}, 1, "there is no op in this file", {});
    return std::move(result_);
  }

 private:
  void refuse(const char* code, int column, std::string_view cell, int offset, std::string message, std::string help) {
    const int rank = column < 0 ? -1 : rank_;
    problems_.push_back({{code, 1, rank, column, std::string(cell), std::move(message)},
                         {file_, std::max(rank_, 0) + 1, offset},
                         std::move(help)});
    if (problems_.size() != kMostProblems) return;
    problems_.push_back({{"syntax", 1, rank, column, {}, "reading stopped here, after too many cells that are wrong"},
                         {file_, std::max(rank_, 0) + 1, offset},
                         {}});
  }

  bool has_stopped() const { return problems_.size() > kMostProblems; }

  void read_row(std::string_view line) {
    ++rank_;
    auto& row = result_.actions.ranks.emplace_back();
    auto& columns = result_.columns.emplace_back();
    const bool blank = trim(line).empty();
    int offset = 1;
    for (int column = 0;; ++column) {
      const std::size_t end = line.find(',');
      const std::string_view cell = without_quotes(trim(line.substr(0, end)));
      if (!cell.empty()) {
        read_one(cell, column, offset, row);
        columns.resize(row.size(), column);
      } else if (!blank && empty_.size() < kMostEmpty) {
        empty_.push_back({{"empty-cell", 1, rank_, column, {}, "a file with messages has no empty cells"},
                          {file_, rank_ + 1, offset},
                          "take the cell out"});
      }
      if (end == std::string_view::npos || has_stopped()) return;
      offset += static_cast<int>(end) + 1;
      line.remove_prefix(end + 1);
    }
  }

  void read_one(std::string_view cell, int column, int place, std::vector<Action>& row) {
    const std::size_t before = row.size();
    if (!read_cell(cell, row)) {
      row.resize(before);
      CellFault fault = fault_of(cell);
      return refuse("syntax", column, cell, place, std::move(fault.message), std::move(fault.help));
    }
    if (!messages_ && !row.back().is_compute()) {
      row.resize(before);
      return refuse("syntax", column, cell, place,
                    fmt::format("'{}' is communication; give the compute-only schedule, sends and receives are worked "
                                "out from it",
                                cell),
                    cell_help());
    }
    if (version_)
      if (const auto why = unknown_to(*version_, row, before); !why.empty()) {
        row.resize(before);
        return refuse("torch", column, cell, place, fmt::format("'{}': {}", cell, why), {});
      }
    for (std::size_t i = before; i < row.size(); ++i) {
      if (!row[i].is_compute()) {
        result_.communicates = true;
        continue;
      }
      result_.stages = std::max(result_.stages, row[i].stage.value + 1);
      result_.micro_batches = std::max(result_.micro_batches, row[i].micro + 1);
    }
  }

  static constexpr std::size_t kMostEmpty = 20;
  const std::string& file_;
  std::optional<TorchVersion> version_;
  bool messages_;
  std::vector<CellProblem>& problems_;
  std::vector<CellProblem> empty_;  ///< They are errors if the file turns out to have messages.
  CsvFile result_;
  int rank_ = -1;
};

std::string_view without_blank_end(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  const std::size_t line_end = end == std::string_view::npos ? 0 : text.find('\n', end);
  return text.substr(0, line_end);
}

CsvFile read(std::string_view text, const std::string& file, std::optional<TorchVersion> version, bool messages,
             std::vector<CellProblem>& problems) {
  if (config::first_odd_byte(text) != std::string_view::npos) {
    problems.push_back({{"not-text", 1, -1, -1, {}, "this is not a text file"},
                        {file, 0, 0},
                        "give a schedule in PyTorch's CSV text"});
    return {};
  }
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return CsvReader(file, version, messages, problems).read(without_blank_end(text));
}

}  // namespace

CsvFile read_csv(std::string_view text, const std::string& file, std::optional<TorchVersion> version,
                 std::vector<CellProblem>& problems) {
  return read(text, file, version, true, problems);
}

void throw_if_any(const std::vector<CellProblem>& problems) {
  if (problems.empty()) return;
  std::vector<Diagnostic> list;
  for (const CellProblem& p : problems) {
    const std::string path =
        p.problem.column < 0 ? "" : fmt::format("rank {}, column {}", p.problem.rank, p.problem.column);
    list.push_back({p.where, path, p.problem.message, p.help, p.problem.code});
  }
  throw InputError(std::move(list));
}

CsvSchedule compute_of(CsvFile csv) {
  CsvSchedule result{compute_of(csv.actions), std::move(csv.columns), csv.stages, csv.micro_batches};
  if (!csv.communicates) return result;
  for (std::size_t r = 0; r < result.columns.size(); ++r) {
    const auto& row = csv.actions.ranks[r];
    std::size_t count = 0;
    for (std::size_t i = 0; i < row.size(); ++i)
      if (row[i].is_compute()) result.columns[r][count++] = result.columns[r][i];
    result.columns[r].resize(count);
  }
  return result;
}

CsvSchedule parse_schedule_csv(std::string_view text, const std::string& file) {
  std::vector<CellProblem> problems;
  CsvFile csv = read(text, file, {}, false, problems);
  throw_if_any(problems);
  return compute_of(std::move(csv));
}

std::string to_csv(const ActionTable& table) {
  std::string text;
  for (const auto& row : table.ranks) {
    bool inside = false, first = true;
    for (const Action& a : row) {
      if (a.kind == ActionKind::Scores || a.kind == ActionKind::ScoresGradient)
        throw InputError("PyTorch's CSV has no words for S and T, the passes of a vocabulary that all ranks divide",
                         "--format json of `stagecraft schedule`, or another schedule");
      const bool opens = a.is_compute() && a.fused;
      if (!first) text += inside ? ';' : ',';
      if (opens && !inside) text += '(';
      text += to_text(a);
      if (inside && !opens) text += kOverlapEnd;
      inside = opens;
      first = false;
    }
    text += '\n';
  }
  return text;
}

std::string to_csv(const Schedule& schedule) { return to_csv(actions_of(schedule)); }

}  // namespace stagecraft
