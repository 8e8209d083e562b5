// Compares a run over a network of namespaces with its simulation (each iteration, busy time of links, messages, late
// sleeps), as text and JSON of `validate --network`.

#include "sim/output/network_validation.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/output/json_files.hpp"

namespace stagecraft {
namespace {

struct Span {
  double start = 0, end = 0;
  double length() const { return end - start; }
};

/// From the moment when a message may go until it is there.
Span span_of(const Transfer& transfer, const Timeline& t) {
  return {t.start[transfer.send], std::max(t.end[transfer.send], t.end[transfer.receive])};
}

/// From the moment when the last member of a collective may start until all have ended.
Span span_of(const CollectiveCall& c, const Timeline& t) {
  Span span{t.start[c.first], t.end[c.first]};
  for (int m = 1; m < c.members; ++m) {
    span.start = std::max(span.start, t.start[c.member(m)]);
    span.end = std::max(span.end, t.end[c.member(m)]);
  }
  return span;
}

/// How long at least one of the spans lasts.
double covered(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.start < b.start; });
  double sum = 0, until = -kInfinity;
  for (const Span& s : spans) {
    sum += std::max(0.0, s.end - std::max(s.start, until));
    until = std::max(until, s.end);
  }
  return sum;
}

std::set<LinkId> links_between(const Router& router, std::span<const RouteEnds> routes) {
  std::set<LinkId> links;
  for (const RouteEnds& ends : routes)
    for (const Hop& hop : router.require(ends.from, ends.to).hops) links.insert(hop.link);
  return links;
}

/// The links that the phases of a collective cross.
std::set<LinkId> links_of(const Program& p, const CollectiveCall& c, const Router& router) {
  std::set<LinkId> links;
  for (const CollectivePhase& phase : p.phases_of(c))
    links.merge(links_between(router, std::span(p.routes).subspan(phase.first_route, phase.routes)));
  return links;
}

std::vector<Pair> link_times(const Program& p, const Timeline& simulated, const Timeline& measured,
                             const Cluster& cluster) {
  const Router router(cluster);
  std::map<LinkId, std::pair<std::vector<Span>, std::vector<Span>>> spans;
  const auto add = [&](const std::set<LinkId>& links, Span by_simulation, Span by_run) {
    for (const LinkId link : links) {
      spans[link].first.push_back(by_simulation);
      spans[link].second.push_back(by_run);
    }
  };
  for (const Transfer& transfer : p.transfers)
    add(links_between(router, {&p.ends(transfer), 1}), span_of(transfer, simulated), span_of(transfer, measured));
  std::vector<std::optional<std::set<LinkId>>> links_of_shape(p.collective_shapes.size());
  for (const CollectiveCall& c : p.collectives) {
    std::optional<std::set<LinkId>>& links = links_of_shape[c.shape];
    if (!links) links = links_of(p, c, router);
    add(*links, span_of(c, simulated), span_of(c, measured));
  }
  std::vector<Pair> pairs;
  for (auto& [link, both] : spans) {
    const std::size_t count = both.first.size();
    pairs.push_back({cluster.links[link].name, covered(std::move(both.first)) / p.iterations,
                     covered(std::move(both.second)) / p.iterations, 0, count});
  }
  return pairs;
}

std::vector<double> iteration_ends(const Program& p, const Timeline& t) {
  std::vector<double> ends(p.iterations, 0);
  for (const InstructionId i : p.instructions.ids()) {
    double& end = ends[p.iteration_of(p.at(i))];
    end = std::max(end, t.end[i]);
  }
  return ends;
}

std::vector<Pair> iteration_pairs(const Program& p, const Timeline& simulated, const Timeline& measured) {
  const std::vector<double> s = iteration_ends(p, simulated), m = iteration_ends(p, measured);
  std::vector<Pair> pairs;
  for (std::size_t k = 0; k < s.size(); ++k)
    pairs.push_back(
        {fmt::format("iteration {}", k), k > 0 ? s[k] - s[k - 1] : s[k], k > 0 ? m[k] - m[k - 1] : m[k], 0, 1});
  return pairs;
}

/// The instructions that run together: both ends of a message, the members of a collective, or one alone.
std::vector<InstructionId> together(const Program& p, InstructionId i) {
  const Instruction& instruction = p.at(i);
  if (instruction.is_message()) return {p.transfer(instruction).send, p.transfer(instruction).receive};
  if (instruction.kind != InstructionKind::Collective) return {i};
  const CollectiveCall& c = p.collective(instruction);
  std::vector<InstructionId> members;
  for (int m = 0; m < c.members; ++m) members.push_back(c.member(m));
  return members;
}

/// What ended last of all that these wait for; not valid: they wait for nothing but each other.
InstructionId last_before(const Program& p, const Timeline& t, const std::vector<InstructionId>& group) {
  InstructionId last;
  for (const InstructionId i : group)
    for (const InstructionId w : p.waits_for(i))
      if (std::find(group.begin(), group.end(), w) == group.end() && (!last.valid() || t.end[w] > t.end[last]))
        last = w;
  return last;
}

/// From the end of each iteration back to the end of the one before, always to what ended last before the start.
PathGaps path_gaps(const Program& p, const Timeline& t) {
  const std::vector<double> ends = iteration_ends(p, t);
  PathGaps gaps;
  for (const InstructionId last : p.instructions.ids()) {
    const int iteration = p.iteration_of(p.at(last));
    if (iteration == 0 || t.end[last] != ends[iteration]) continue;
    const double begin = ends[iteration - 1];
    for (InstructionId i = last; t.end[i] > begin;) {
      const std::vector<InstructionId> group = together(p, i);
      double start = begin;
      for (const InstructionId member : group) start = std::max(start, t.start[member]);
      const InstructionId before = last_before(p, t, group);
      if (!before.valid() || t.end[before] >= t.end[i]) break;
      gaps.seconds += std::max(0.0, start - std::max(t.end[before], begin));
      gaps.starts += 1;
      i = before;
    }
  }
  const double iterations = std::max(1, p.iterations - 1);
  return {gaps.seconds / iterations, gaps.starts / iterations};
}

void add_ratio(std::vector<double>& ratios, double simulated, double measured) {
  if (simulated > 0 && measured > 0) ratios.push_back(simulated / measured);
}

}  // namespace

NetworkValidation compare_networks(const Program& p, const Timeline& simulated, const Report& report,
                                   const Timeline& measured, const Cluster& cluster) {
  NetworkValidation v{
      compare(p, simulated, report, measured, cluster), iteration_pairs(p, simulated, measured), {}, {}, {}, {}};
  v.links = link_times(p, simulated, measured, cluster);
  for (const Transfer& t : p.transfers)
    add_ratio(v.messages, span_of(t, simulated).length(), span_of(t, measured).length());
  for (const InstructionId i : p.instructions.ids()) {
    const double seconds = simulated.end[i] - simulated.start[i], really = measured.end[i] - measured.start[i];
    if (p.at(i).is_compute() && seconds > 0) v.lateness.push_back(really - seconds);
  }
  for (const CollectiveCall& c : p.collectives)
    add_ratio(v.messages, span_of(c, simulated).length(), span_of(c, measured).length());
  v.gaps = path_gaps(p, measured);
  std::sort(v.messages.begin(), v.messages.end());
  std::sort(v.lateness.begin(), v.lateness.end());
  return v;
}

std::string to_text(const NetworkValidation& v, double tolerance) {
  std::string text = notes_text(v.validation) + times_text("time", v.iterations) +
                     times_text("busy, iteration", v.links) + times_text("instruction", v.validation.kinds);
  if (!v.messages.empty())
    text +=
        fmt::format("\n  {}: simulated over measured time {:.3f} in the median, {:.3f} to {:.3f} from 10 % to 90 %\n",
                    pluralize(std::ssize(v.messages), "message"), quantile(v.messages, 0.5), quantile(v.messages, 0.1),
                    quantile(v.messages, 0.9));
  if (!v.lateness.empty())
    text += fmt::format("  sleeps in place of computing ended {} late in the median, {} at worst\n",
                        to_text(Seconds{std::max(0.0, quantile(v.lateness, 0.5))}),
                        to_text(Seconds{std::max(0.0, v.lateness.back())}));
  if (v.gaps.starts >= 1)
    text += fmt::format(
        "  between instructions of its longest chain a measured iteration lost {}, {:.1f} %, in {} starts\n",
        to_text(Seconds{v.gaps.seconds}), 100 * v.gaps.seconds / v.validation.iteration.measured,
        std::llround(v.gaps.starts));
  return text + verdict_text(v.validation, tolerance);
}

JsonObject network_json(const NetworkValidation& v) {
  const auto quantiles = [](const std::vector<double>& sorted) {
    JsonObject object;
    if (!sorted.empty())
      for (const int percent : kPercents)
        object.push_back({fmt::format("p{}", percent), quantile(sorted, percent / 100.0)});
    return object;
  };
  return {{"each_iteration_s", pairs_json(v.iterations)},
          {"links_busy_s", pairs_json(v.links)},
          {"messages_simulated_over_measured", quantiles(v.messages)},
          {"sleeps_late_s", quantiles(v.lateness)},
          {"between_instructions_s", v.gaps.seconds}};
}

}  // namespace stagecraft
