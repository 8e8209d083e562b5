// A change of a cluster as text, such as "gpu3 at 50 % from 2 s", for the text, the results and the trace of a run.

#include "sim/cluster/change.hpp"

#include <fmt/core.h>

#include "sim/cluster/cluster.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kNamed = 3;

template <class Id, class Thing>
void add_names(std::vector<std::string>& names, const std::vector<Id>& ids, const IdVector<Id, Thing>& things) {
  for (Id id : ids) names.push_back(things[id].name);
}

std::string what(const Change& c) {
  if (c.down) return "down";
  std::vector<std::string> parts;
  if (c.rate < 1) parts.push_back(fmt::format("{} %", shortest(c.rate * 100)));
  if (c.latency > 1) parts.push_back(fmt::format("{} % of the latency", shortest(c.latency * 100)));
  return "at " + (parts.empty() ? std::string("100 %") : join(parts, " and "));
}

std::string when(const Change& c) {
  std::string text;
  if (c.from.value > 0) text += " from " + to_text(c.from);
  if (c.until.value < kForEver) text += fmt::format(" {} {}", text.empty() ? "until" : "to", to_text(c.until));
  if (c.every.value > 0) text += fmt::format(" for {} of every {}", to_text(c.lasts), to_text(c.every));
  return text;
}

}  // namespace

std::string to_text(const Change& change, const Cluster& cluster) {
  std::vector<std::string> names;
  add_names(names, change.devices, cluster.devices);
  add_names(names, change.links, cluster.links);
  const std::size_t count = names.size();
  if (count > kNamed) {
    names.resize(kNamed - 1);
    names.push_back(fmt::format("{} more", count - names.size()));
  }
  return join(names) + " " + what(change) + when(change);
}

}  // namespace stagecraft
