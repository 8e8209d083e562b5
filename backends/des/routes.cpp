#include "backends/des/routes.hpp"

#include <cmath>
#include <cstddef>
#include <string>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::des {
namespace {

Diagnostic problem(const Link& link, const std::string& what, double value, std::string help) {
  Diagnostic diagnostic;
  diagnostic.path = "cluster.links." + link.name;
  diagnostic.message = what + " is " + shortest(value);
  diagnostic.help = std::move(help);
  diagnostic.code = "link-value";
  return diagnostic;
}

void check_link(const Link& link, std::vector<Diagnostic>& problems) {
  const double bandwidth = link.bandwidth.value, latency = link.latency.value;
  if (!(bandwidth > 0) || !std::isfinite(bandwidth))
    problems.push_back(
        problem(link, "bandwidth", bandwidth, "a link that is used needs a finite bandwidth above zero"));
  if (!(latency >= 0) || !std::isfinite(latency))
    problems.push_back(problem(link, "latency", latency, "a link that is used needs a finite latency, zero or more"));
}

}  // namespace

std::vector<Route> routes_of(const Program& program, const Cluster& cluster) {
  const Router router(cluster);
  std::vector<Route> routes;
  routes.reserve(program.routes.size());
  std::vector<char> checked(cluster.links.size(), 0);
  std::vector<Diagnostic> problems;
  for (const RouteEnds& ends : program.routes) {
    routes.push_back(ends.from == ends.to ? Route{} : router.require(ends.from, ends.to));
    for (const Hop& hop : routes.back().hops) {
      const auto link = static_cast<std::size_t>(hop.link);
      if (!checked[link]) check_link(cluster.links[link], problems);
      checked[link] = 1;
    }
  }
  if (!problems.empty()) throw InputError(std::move(problems));
  return routes;
}

}  // namespace stagecraft::des
