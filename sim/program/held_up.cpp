// Explains an instruction that never ends: which device or link that is down holds it up. Simulators call it at their
// end.

#include "sim/program/held_up.hpp"

#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

bool missing(double end) { return end < 0 || end == kForEver; }

/// Something changes so that an instruction never ends.
struct Cause {
  std::string name;
  bool device = false;
  double gone = kForEver;  ///< When it goes down without coming back; kForEver: it always comes back.
};

std::optional<Cause> on_route(const Cluster& cluster, const Conditions& conditions, const RouteEnds& ends) {
  const std::optional<Route> route = Router(cluster).route(ends.from, ends.to);
  std::optional<Cause> cause;
  if (!route) return cause;
  for (const Hop& hop : route->hops) {
    const Availability* availability = conditions.availability_of(hop.link);
    if (availability == nullptr) continue;
    Cause candidate{cluster.links[hop.link].name, false, availability->gone()};
    if (!cause || candidate.gone < cause->gone) cause = std::move(candidate);
  }
  return cause;
}

std::optional<Cause> cause_of(const Program& program, const Cluster& cluster, const Conditions& conditions,
                              const Instruction& instruction) {
  if (instruction.is_compute()) {
    const Availability* availability = conditions.availability_of(instruction.device);
    if (availability == nullptr) return {};
    return Cause{cluster.devices[instruction.device].name, true, availability->gone()};
  }
  if (instruction.is_message()) return on_route(cluster, conditions, program.ends(program.transfer(instruction)));
  std::optional<Cause> cause;
  for (const CollectivePhase& phase : program.phases_of(program.collective(instruction)))
    for (std::int32_t k = 0; k < phase.routes; ++k) {
      auto edge = on_route(cluster, conditions, program.routes[phase.first_route + k]);
      if (edge && (!cause || edge->gone < cause->gone)) cause = std::move(edge);
    }
  return cause;
}

}  // namespace

void throw_if_held_up(const Program& program, const Cluster& cluster, const Conditions& conditions,
                      std::span<const double> end) {
  const auto first = std::find_if(end.begin(), end.end(), missing);
  if (first == end.end() || conditions.as_rated()) return;
  const InstructionId id{first - end.begin()};
  for (const InstructionId wait : program.waits_for(id))
    if (missing(end[wait.value])) return;  // A deadlock, which its finder reports.
  const std::optional<Cause> cause = cause_of(program, cluster, conditions, program.at(id));
  if (!cause) return;
  const std::string count =
      fmt::format("{} of {} cannot run, the first of them {}", std::count_if(end.begin(), end.end(), missing),
                  pluralize(std::ssize(end), "instruction"), to_text(program, id));
  if (cause->gone < kForEver)
    throw Infeasible(
        "down",
        fmt::format("'{}' stands still from {} on and is never back", cause->name, to_text(Seconds{cause->gone})),
        cause->device ? "give the change an `until`, or leave the device out of the plan"
                      : "give the change an `until`, or plan without the devices behind this link",
        count);
  throw Infeasible("down", fmt::format("'{}' is never up for long enough", cause->name),
                   "let its changes leave more time between them, or end", count);
}

}  // namespace stagecraft
