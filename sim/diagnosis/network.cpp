// Rules: slow links, links that many share, and ranks whose neighbors are far apart.

#include <algorithm>
#include <map>
#include <set>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/diagnosis/rule.hpp"
#include "sim/diagnosis/suggestions.hpp"

namespace stagecraft::diagnosis {
namespace {

/// Messages between stages on one link, both directions.
struct LinkMessages {
  double bytes = 0;
  std::set<std::pair<DeviceId, DeviceId>> pairs;
};

std::map<LinkId, LinkMessages> messages_on_links(const DiagnosisInput& in) {
  const Program& p = in.program();
  std::vector<double> bytes(p.routes.size(), 0);
  for (const Transfer& t : p.transfers) bytes[p.shape(t).route] += static_cast<double>(p.bytes(t));
  const Router router(in.cluster());
  std::map<LinkId, LinkMessages> links;
  for (std::size_t r = 0; r < bytes.size(); ++r) {
    if (bytes[r] <= 0) continue;
    for (const RouteEnds& ends : p.copies_of(p.routes[r]))
      for (const Hop& hop : router.require(ends.from, ends.to).hops) {
        links[hop.link].bytes += bytes[r];
        links[hop.link].pairs.insert(std::minmax(ends.from, ends.to));
      }
  }
  return links;
}

/// The link that needs most time for its messages, among those that more than `pairs` pairs of devices use.
LinkId busiest_link(const DiagnosisInput& in, const std::map<LinkId, LinkMessages>& links, std::size_t pairs) {
  LinkId busiest;
  double longest = 0;
  for (const auto& [l, messages] : links) {
    const Link& link = in.cluster().links[l];
    const double time = messages.bytes / link.bandwidth.value + link.latency.value;
    if (messages.pairs.size() > pairs && time > longest) longest = time, busiest = l;
  }
  return busiest;
}

int nodes_crossed(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  int crossed = 0;
  for (std::size_t i = 1; i < devices.size(); ++i) crossed += !cluster.on_one_node(devices[i], devices[i - 1]);
  return crossed;
}

/// The devices of a chain of stages in their order; empty where a stage has several, or is no part of a chain.
std::vector<DeviceId> chain_devices(const Plan& plan) {
  std::vector<DeviceId> devices;
  for (const Stage& s : plan.stages) {
    if (s.all_devices().size() != 1) return {};
    const DeviceId d = s.all_devices().front();
    if (std::find(devices.begin(), devices.end(), d) != devices.end()) return {};
    devices.push_back(d);
  }
  return devices;
}

/// Contention of more than messages between stages, on the link that is used most: `users` share it.
Finding shared_by(const DiagnosisInput& in, std::string_view users, Seconds lost) {
  const LinkReport& busiest = in.report().links.front();
  const Link& link = in.cluster().links[busiest.link];
  Finding f = finding(in, "shared-link", link.name, lost);
  f.sentence =
      fmt::format("{} share {} of {}, which is in use for {} of the run, and contention costs {} of the period.", users,
                  f.where, to_text(link.bandwidth), percent(busiest.utilisation), percent(f.share));
  return f;
}

Seconds lost_to_messages(const DiagnosisInput& in) {
  return in.period - in.idealized.without(Cost::Contention | Cost::Messages);
}

}  // namespace

/// Neighbors of the pipeline that lie on different nodes, though another order would keep them on one.
std::optional<Finding> placement(const DiagnosisInput& in) {
  const std::vector<DeviceId> devices = chain_devices(in.plan());
  if (devices.empty() || !in.experiment().plan.planner->fields->find("devices")) return {};
  std::vector<DeviceId> better = devices;
  std::map<DeviceId, int> node;  // Nodes by their first stage.
  const std::vector<int> nodes = nodes_of(devices, in.cluster());
  for (std::size_t i = 0; i < devices.size(); ++i) node[devices[i]] = nodes[i];
  std::stable_sort(better.begin(), better.end(), [&](DeviceId a, DeviceId b) { return node[a] < node[b]; });
  const int now = nodes_crossed(devices, in.cluster()), then = nodes_crossed(better, in.cluster());
  if (then >= now) return {};
  Suggestion s{{devices_set(better, in.cluster())}, "stages in the order of the nodes"};
  in.changed.simulate(s);
  const double avoided = 1 - static_cast<double>(then) / now;
  const Seconds lost = s.run ? in.period - s.run->period : avoided * lost_to_messages(in);
  Finding f = finding(in, "placement", fmt::format("{} of {} messages between stages", now, devices.size() - 1), lost);
  f.sentence = fmt::format(
      "{} of {} pairs of neighboring stages are on different nodes, where {} would do: {} of the "
      "period.",
      now, devices.size() - 1, then, percent(f.share));
  f.suggestions.push_back(std::move(s));
  return f;
}

/// A link that several pairs of devices share: messages wait for each other.
std::optional<Finding> shared_link(const DiagnosisInput& in) {
  if (in.backend == "ideal") return {};
  const Seconds lost = in.period - in.idealized.without(Cost::Contention);
  if (lost.value <= 0) return {};
  if (!in.program().traffic.empty()) return shared_by(in, "Ops and messages", lost);
  if (!in.program().phases.empty() && !in.report().links.empty()) {
    Finding f = shared_by(in, "Collectives and messages", lost);
    suggest_other_rank_order(in, f);
    suggest_network(in, in.report().links.front().link, 2, f);
    return f;
  }
  const auto links = messages_on_links(in);
  const LinkId l = busiest_link(in, links, 1);
  if (!l.valid()) return {};
  const Link& link = in.cluster().links[l];
  const std::size_t pairs = links.at(l).pairs.size();
  Finding f = finding(in, "shared-link", link.name, lost);
  f.sentence = fmt::format("Messages of {} pairs of devices share {} of {}, and contention costs {} of the period.",
                           pairs, link.name, to_text(link.bandwidth), percent(f.share));
  suggest_other_rank_order(in, f);
  suggest_network(in, l, static_cast<double>(pairs), f);
  return f;
}

/// A link whose messages take long even without contention.
std::optional<Finding> slow_link(const DiagnosisInput& in) {
  const Seconds lost = in.idealized.without(Cost::Contention) - in.idealized.without(Cost::Contention | Cost::Messages);
  const auto links = messages_on_links(in);
  const LinkId l = busiest_link(in, links, 0);
  if (!l.valid() || lost.value <= 0) return {};
  const Link& link = in.cluster().links[l];
  const auto& [from, to] = *links.at(l).pairs.begin();
  Finding f = finding(in, "slow-link", link.name, lost);
  f.sentence = fmt::format(
      "Messages between stages are on the wire while devices wait: {} of the period. The slowest link, {} of {} and "
      "{}, is between {} and {}.",
      percent(f.share), link.name, to_text(link.bandwidth), to_text(link.latency), in.cluster().devices[from].name,
      in.cluster().devices[to].name);
  suggest_other_rank_order(in, f);
  for (const double factor : {2.0, 8.0})
    if (auto faster = faster_link(in, l, factor)) f.suggestions.push_back(std::move(*faster));
  return f;
}

}  // namespace stagecraft::diagnosis
