// Notes on an experiment that tables and reports print: implausible units, idle devices, what is not simulated.

#include "sim/experiment/remarks.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/numbers.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/curves.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/pipeline_fields.hpp"
#include "sim/experiment/profile_gaps.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/experiment/software.hpp"
#include "sim/experiment/stages_of_schedule.hpp"
#include "sim/program/offload.hpp"
#include "sim/program/unfold.hpp"

namespace stagecraft {
namespace {

/// The plausible range of a figure: from the least to the most of machines that train or serve networks, with some
/// room. Zero, and `endless` or more, stand for no figure.
template <class Item, class Unit>
struct Range {
  const char* field;
  Unit Item::*figure;
  Unit min, max;
  Unit endless = {kInfinity};
};

constexpr Bandwidth kEndless{1e18};  // Said of what is to take no time; platforms of SimGrid get it.

// Least: a microcontroller (Arm Cortex-M7, 2014: some hundred MFLOP/s, megabytes); a modem of 56 kbit/s.
// Most: a wafer-scale engine (Cerebras WSE-3, 2024: 125 PFLOP/s, 21 PB/s, 23 kW a system), a server of 64 TB, a switch
// of 115 Tbit/s, a satellite's way of 0.6 s; a kernel's launch is some microseconds.
constexpr Range<DeviceType, FlopRate> kPeaks[] = {{"peak", &DeviceType::peak, {1e8}, {2e17}}};
constexpr Range<DeviceType, Bytes> kMemories[] = {{"memory", &DeviceType::memory, {1e6}, {6.4e13}}};
constexpr Range<DeviceType, Bandwidth> kMemoryBandwidths[] = {
    {"memory_bandwidth", &DeviceType::memory_bandwidth, {1e8}, {3e16}, kEndless}};
constexpr Range<DeviceType, Seconds> kLaunches[] = {{"launch", &DeviceType::launch, {0}, {1e-3}}};
constexpr Range<DeviceType, Watts> kPowers[] = {{"idle", &DeviceType::idle, {1e-3}, {3e4}},
                                                {"busy", &DeviceType::busy, {1e-3}, {3e4}}};
constexpr Range<Link, Bandwidth> kBandwidths[] = {{"bandwidth", &Link::bandwidth, {7e3}, {1e14}, kEndless}};
constexpr Range<Link, Seconds> kLatencies[] = {{"latency", &Link::latency, {0}, {2}}};

/// The first of `things` that is out of the range, and how many more are.
template <class Id, class Item, class Ranges>
void add(const char* what, const IdVector<Id, Item>& items, const Ranges& ranges, std::vector<std::string>& lines) {
  for (const auto& range : ranges) {
    const Item* first = nullptr;
    std::int64_t count = 0;
    for (const Item& item : items) {
      const auto value = item.*range.figure;
      const bool plausible = value >= range.min && value <= range.max;
      if (value.value == 0 || value >= range.endless || plausible) continue;
      if (count++ == 0) first = &item;
    }
    if (!first) continue;
    const bool low = first->*range.figure < range.min;
    lines.push_back(fmt::format("{} '{}'{}: {} of {} is {} than machines have ({}); is that meant?", what, first->name,
                                count > 1 ? fmt::format(" and {} more", count - 1) : "", range.field,
                                to_text(first->*range.figure), low ? "less" : "more",
                                to_text(low ? range.min : range.max)));
  }
}

/// The fastest known devices, a B200 and an H100, have memory for 85 us of their peak; a small device has more.
void add_little_memory(const IdVector<DeviceTypeId, DeviceType>& types, std::vector<std::string>& lines) {
  constexpr Seconds kLeast{1e-6};
  for (const DeviceType& t : types)
    if (t.memory.value > 0 && t.peak <= kPeaks[0].max && t.memory.value < kLeast.value * t.peak.value)
      lines.push_back(fmt::format("device type '{}': memory of {} is far less than devices of {} have; is that meant?",
                                  t.name, to_text(t.memory), to_text(t.peak)));
}

}  // namespace

std::vector<std::string> suspicious_units(const Cluster& cluster) {
  std::vector<std::string> lines;
  add("device type", cluster.types, kPeaks, lines);
  add("device type", cluster.types, kMemories, lines);
  add_little_memory(cluster.types, lines);
  add("device type", cluster.types, kMemoryBandwidths, lines);
  add("device type", cluster.types, kLaunches, lines);
  add("device type", cluster.types, kPowers, lines);
  add("link", cluster.links, kBandwidths, lines);
  add("link", cluster.links, kLatencies, lines);
  return lines;
}

namespace {

using Devices = std::set<DeviceId>;

/// Whether the file says where each stage runs, or the planner chooses devices.
bool places_stages(const config::Value& plan) {
  return !plan.is_map() || !plan.has("stages") || !plan.at("stages").items.empty();
}

/// The stages on each rank, and how many stages use all of these devices in the same way.
struct SeveralStages {
  int on_rank, to_use_all;
};

/// Nothing where ranks have one stage each, or no number of stages uses all.
std::optional<SeveralStages> several_stages(const PlannedExperiment& p, int used, int available) {
  const int stages = p.plan.different_stages(), ranks = pipeline_ranks(p.plan);
  if (!p.experiment.plan.stages || stages <= ranks || stages % ranks != 0 || used % ranks != 0) return {};
  const int of_rank = used / ranks, on_rank = stages / ranks, total = available / of_rank * on_rank;
  if (available % of_rank != 0 || total > std::ssize(p.model().layers)) return {};
  return SeveralStages{on_rank, total};
}

void add_idle_devices(const PlannedExperiment& p, std::vector<std::string>& lines) {
  const std::vector<DeviceId> used = devices_of(p.plan);
  const std::optional<std::vector<DeviceId>>& listed = p.experiment.plan.devices;
  const std::size_t total = listed ? Devices(listed->begin(), listed->end()).size() : p.cluster().devices.size();
  if (used.size() >= total || used.empty() || places_stages(p.experiment.source->at("plan"))) return;
  const auto several = several_stages(p, static_cast<int>(used.size()), static_cast<int>(total));
  if (listed && !several) return;  // The file names more devices than it has stages for, which says itself.
  std::string line = fmt::format("{} of {} have nothing to do", total - used.size(),
                                 pluralize(static_cast<std::int64_t>(total), "device"));
  if (several)
    line += fmt::format(": {} puts {} stages on a device; --set plan.stages={} uses all", p.experiment.schedule.name(),
                        several->on_rank, several->to_use_all);
  lines.push_back(line);
}

/// An order from a file may hold forwards alone.
bool has_backwards(const Schedule& schedule) {
  return std::any_of(schedule.ranks.begin(), schedule.ranks.end(), [](const auto& row) {
    return std::any_of(row.begin(), row.end(), [](const Op& op) { return op.kind != OpKind::Forward; });
  });
}

Bytes unexchanged_gradients(const PlannedExperiment& p, bool trains) {
  Bytes apart;
  if (p.experiment.schedule.flushes() || !trains) return apart;
  for (const Reduction& r : derive_reductions(p.plan, p.model()))
    if (r.source == ReductionSource::TiedParameters && !r.groups.empty()) apart += r.bytes;
  return apart;
}

/// A pair of forward and backward of DualPipe runs as one op, and only what the software stack hides is overlapped.
void add_pairs(const Experiment& e, std::vector<std::string>& lines) {
  if (!e.schedule.name().starts_with("dualpipe") || e.software().pair_overlap > 0) return;
  lines.push_back(fmt::format(
      "{} overlaps the forward and backward of a pair; their overlap is not simulated with this software, so "
      "a pair takes the time of both (software: deepseek-v3 hides exchanges of experts in pairs)",
      e.schedule.name()));
}

/// Ops that run as one hide nothing where tensor groups exchange nothing, or devices do one thing at a time.
void add_braids(const Experiment& e, std::vector<std::string>& lines) {
  if (!e.schedule.def->braids) return;
  const char* const why = e.plan.group.tensor <= 1                  ? "plan.group.tensor is 1"
                          : !e.run.lowering.overlap                 ? "run.overlap is false"
                          : !e.software().prices && !e.rules->flows ? "software: none prices none"
                                                                    : "";
  if (*why)
    lines.push_back(
        fmt::format("{} runs ops as one to hide the collectives of tensor groups, and here are none to hide: {}",
                    e.schedule.name(), why));
}

/// The link that makes messages between two groups longer when all devices send theirs than when one does; not valid
/// where none does.
LinkId shared_link(const Stage& from, const Stage& to, const Cluster& cluster, const Router& router) {
  const int group = from.shape.degrees.group();
  if (group == 1 || group != to.shape.degrees.group()) return {};
  std::map<std::pair<LinkId, bool>, int> messages;
  std::optional<Route> first;
  for (int m = 0; m < group; ++m) {
    const DeviceId a = from.all_devices()[m], b = to.all_devices()[m];
    if (a == b) return {};
    const Route route = router.require(a, b);
    for (const Hop& hop : route.hops) ++messages[{hop.link, hop.forward}];
    if (!first) first = route;
  }
  for (const Hop& hop : first->hops) {
    const Link& link = cluster.links[hop.link];
    const Bandwidth of_each = link.bandwidth / messages[{hop.link, hop.forward}];
    if (link.duplex != Duplex::Unshared && of_each < first->bandwidth) return hop.link;
  }
  return {};
}

void add_shared_links(const PlannedExperiment& p, std::vector<std::string>& lines) {
  if (p.experiment.run.each_device || !has_groups(p.plan)) return;
  const Router router(p.cluster());
  for (const StageEdge& edge : p.plan.edges)
    if (const LinkId link = shared_link(p.plan.stage(edge.from), p.plan.stage(edge.to), p.cluster(), router);
        link.valid()) {
      lines.push_back(
          fmt::format("the devices of a group send messages of a stage over '{}' at the same time, but the first one "
                      "stands for all "
                      "of them: with run.detail=devices their messages share the link",
                      p.cluster().links[link].name));
      return;
    }
}

/// How full packs are, and what knows their mean alone.
std::string loads_note(const PlannedExperiment& p) {
  const PackedBatches& packs = *p.experiment.run.packs;
  constexpr const char* kKnown =
      "; the planner, its bounds and orders that weigh costs know the mean micro-batch, the simulation each";
  if (packs.slices > 1)
    return fmt::format(
        "each {} comes in {}, {}{}",
        p.experiment.source->has("data") || p.experiment.source->at("run").has("loads") ? "pack" : "sequence",
        pluralize(packs.slices, "slice"),
        packs.exchange ? "whose attention the ranks share" : "of which a later one has more attention", kKnown);
  double tokens = 0;
  std::int64_t count = 0, sequences = 0;
  for (const Pack& pack : packs.packs) {
    count += pack.empty() ? 0 : 1, sequences += std::ssize(pack);
    for (const int n : pack) tokens += n;
  }
  const double room = tokens_of_sample(p.model()) * p.plan.stages.front().mean_load.samples *
                      p.plan.stages.front().mean_load.rows * static_cast<double>(packs.packs.size());
  std::string note =
      fmt::format("{} of {:.4g} sequences and {:.0f} tokens in the mean", pluralize(count, "pack"),
                  static_cast<double>(sequences) / static_cast<double>(count), tokens / static_cast<double>(count));
  if (tokens < room) note += fmt::format(", {} of what is computed with padding", percent(tokens / room));
  return note + kKnown;
}

std::vector<std::string> remarks(const PlannedExperiment& p, bool trains) {
  std::vector<std::string> lines = suspicious_units(p.cluster());
  add_braids(p.experiment, lines);
  add_pairs(p.experiment, lines);
  if (const std::vector<std::string> gaps = unmeasured_in_groups(p); !gaps.empty())
    lines.push_back(fmt::format("the profile lacks {}, whose times are computed", join(gaps)));
  for (std::string& note : notes_on_curves(p)) lines.push_back(std::move(note));
  for (std::string& note : older_form_notes(*p.experiment.source)) lines.push_back(std::move(note));
  for (std::string& note : software_notes(*p.experiment.source)) lines.push_back(std::move(note));
  for (std::string& note : pipeline_notes(*p.experiment.source)) lines.push_back(std::move(note));
  if (p.experiment.plan.recompute_layers > 0 && p.experiment.plan.recompute != Recomputation::Layers)
    lines.emplace_back("plan.recompute_layers changes nothing without plan.recompute: layers");
  if (p.plan.loads.classes.size() > 1) lines.push_back(loads_note(p));
  if (p.cluster().has_one_queue())
    lines.emplace_back(
        "links have `queue: fifo`, which only fluid simulates: with ideal, and for planners and bounds, no message "
        "waits "
        "for another");
  add_idle_devices(p, lines);
  add_shared_links(p, lines);
  if (const Bytes apart = unexchanged_gradients(p, trains); apart.value > 0)
    lines.push_back(
        fmt::format("{:.4g} weights are tied between stages on different devices; the exchange of their gradients ({} "
                    "for each update) is simulated only where a schedule flushes, which {} does not",
                    apart.value / p.model().precision.gradient, to_text(apart), p.experiment.schedule.name()));
  return lines;
}

}  // namespace

std::vector<std::string> remarks(const PlannedExperiment& p) { return remarks(p, p.experiment.schedule.def->trains); }
std::vector<std::string> remarks(const CompiledExperiment& c) {
  std::vector<std::string> lines = remarks(c, has_backwards(c.schedule));
  const std::optional<Offload>& offload = c.experiment.plan.offload;
  if (offload && offload->moves_stashes() && !copies_stashes(c.program))
    lines.emplace_back(offload->selective
                           ? "the plan fits without host memory, so no activations go there"
                           : "no activations go to host memory: down and up they would take longer than "
                             "the time between a forward and its backward; a smaller share may be in time");
  return lines;
}

std::vector<std::string> remarks(const Experiment& e) {
  try {
    return remarks(plan_experiment(e));
  } catch (const InputError&) {
  } catch (const Infeasible&) {
  }
  return suspicious_units(*e.cluster);
}

Bytes unexchanged_gradients(const CompiledExperiment& c) { return unexchanged_gradients(c, has_backwards(c.schedule)); }

}  // namespace stagecraft
