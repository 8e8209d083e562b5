// Puts the place in the scenario into errors of later steps, which only know a path.

#include "sim/experiment/places.hpp"

#include <fmt/core.h>

namespace stagecraft {
namespace {

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

}  // namespace stagecraft
