#include "sim/experiment/places.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// The cell of a row that holds an op, alone or in a group; of an op that is there twice, the second one.
std::optional<Where> place_in(const config::Value& row, const std::string& op, bool second) {
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

/// The first value below `part` that --set wrote; null where there is none.
const config::Value* overridden_in(const config::Value& part) {
  if (part.where.file.starts_with("<--set ")) return &part;
  for (const config::Member& m : part.members)
    if (const config::Value* value = overridden_in(m.value)) return value;
  for (const config::Value& item : part.items)
    if (const config::Value* value = overridden_in(item)) return value;
  return nullptr;
}

}  // namespace

std::vector<Diagnostic> with_locations(std::vector<Diagnostic> problems, const std::string& key,
                                       const config::Value& part) {
  const config::Value* overridden = overridden_in(part);
  for (Diagnostic& p : problems) {
    if (p.where.line == 0 && p.where.file.empty()) p.where = overridden ? overridden->where : part.where;
    if (p.path.empty()) p.path = key;
    const bool from_top = p.path == key || p.path.starts_with(key + ".");
    if (!from_top && p.path.find_first_of("' ") == std::string::npos) p.path = key + '.' + p.path;
  }
  return problems;
}

Infeasible add_related_location(const Infeasible& e, const config::Value& plan, const config::Value& cluster) {
  Diagnostic problem = e.problem();
  const config::Value* list = plan.find("devices");
  const Where& place = list ? list->where : cluster.where;
  if (e.code() == "devices") problem.message += fmt::format(" ({}:{})", place.file, place.line);
  return Infeasible(std::move(problem));
}

void throw_if_any(const std::vector<ScheduleProblem>& problems, const std::string& name,
                  const config::Value& schedule) {
  const config::Value* rows = schedule.find("rows");
  if (!rows || problems.empty()) return throw_if_any(problems, "schedule '" + name + "'");
  std::vector<Diagnostic> list;
  for (const ScheduleProblem& p : problems) {
    const std::size_t rank = std::max(p.rank, 0);
    const auto where = p.column >= 0 && rank < rows->items.size()
                           ? place_in(rows->items[rank], p.op, p.code == "duplicate")
                           : rows->where;
    if (!where && !list.empty()) continue;  // It repeats a problem in a later iteration.
    list.push_back({where.value_or(rows->where), "run.schedule", p.message,
                    p.level >= 4 ? "an op of the cycle has to move before the op that waits for it" : "", p.code});
  }
  if (problems.front().level >= 4) throw Infeasible(std::move(list.front()));
  throw InputError(std::move(list));
}

}  // namespace stagecraft
