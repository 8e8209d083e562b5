// Suggestions that several rules make, as options of the command line.

#include "sim/diagnosis/suggestions.hpp"

#include <algorithm>
#include <cmath>
#include <tuple>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"

namespace stagecraft::diagnosis {
namespace {

/// Paths of all maps below whose `bandwidth`, without headers, is this one.
void find_bandwidth(const config::Value& at, const std::string& path, Bandwidth bandwidth,
                    std::vector<std::string>& paths) {
  const config::Value* efficiency = at.find("efficiency");
  const double share = efficiency && at.has("bandwidth") ? config::as_real(*efficiency) : 1;
  for (const config::Member& m : at.members) {
    const std::string below = path + "." + m.key;
    if (m.key == "bandwidth" && m.value.is_scalar() && config::as_bandwidth(m.value) * share == bandwidth)
      paths.push_back(below);
    find_bandwidth(m.value, below, bandwidth, paths);
  }
  for (const config::Value& item : at.items) {
    const config::Value* name = item.find("name");
    if (name && name->is_scalar()) find_bandwidth(item, path + "." + name->text, bandwidth, paths);
  }
}

std::string gigabits(Bandwidth bandwidth, double factor) {
  return fmt::format("{:.6g} Gbit/s", factor * bandwidth.value * 8 / 1e9);
}

std::int64_t links_of(const Cluster& cluster, Bandwidth bandwidth) {
  return std::count_if(cluster.links.begin(), cluster.links.end(),
                       [&](const Link& l) { return l.bandwidth == bandwidth; });
}

bool is_between_switches(const DiagnosisInput& in, const Link& link) {
  return !link.ends.empty() && std::all_of(link.ends.begin(), link.ends.end(),
                                           [&](VertexId v) { return v.value >= std::ssize(in.cluster().devices); });
}

/// Generators have `trunk` for the links between switches, which are otherwise like another kind of link.
std::optional<Suggestion> faster_trunks(const DiagnosisInput& in, const Link& link, double factor) {
  const config::Value& cluster = in.experiment().source->at("cluster");
  const char* const kind = cluster.has("nic") ? "nic" : "link";
  if (!cluster.has("oversubscription") && !cluster.has("down")) return {};
  if (cluster.has("trunk") || !cluster.has(kind) || !is_between_switches(in, link)) return {};
  std::string members;
  const Bandwidth rate = link.bandwidth / link.efficiency;
  for (const config::Member& m : cluster.at(kind).members)
    members += fmt::format("{}{}: {}", members.empty() ? "" : ", ", m.key,
                           m.key == "bandwidth" ? gigabits(rate, factor) : m.value.text);
  return Suggestion{
      {fmt::format("cluster.trunk={{{}}}", members)},
      fmt::format("links between switches, such as {}, with {:.4g} times the bandwidth", link.name, factor)};
}

/// Ratios above 1 become half as large, but not below 1.
std::optional<Suggestion> less_oversubscription(const DiagnosisInput& in, const Link& link) {
  const config::Value* ratios = in.experiment().source->at("cluster").find("oversubscription");
  if (!ratios || !is_between_switches(in, link)) return {};
  bool changes = false;
  const auto half = [&](const config::Value& ratio) {
    const double now = config::as_real(ratio);
    changes |= now > 1;
    return fmt::format("{:.6g}", std::max(1.0, now / 2));
  };
  std::string text;
  if (ratios->is_list()) {
    for (const config::Value& ratio : ratios->items) text += (text.empty() ? "" : ", ") + half(ratio);
    text = "[" + text + "]";
  } else {
    text = half(*ratios);
  }
  if (!changes) return {};
  return Suggestion{{"cluster.oversubscription=" + text}, "half the oversubscription, so more links between switches"};
}

/// Whether two software stacks run the same kernels with the same bytes, so that they differ in overlap alone.
bool same_kernels(const SoftwareStack& a, const SoftwareStack& b) {
  const auto kernels = [](const SoftwareStack& s) {
    return std::tuple(s.fused_attention, s.weights_in_experts, s.dropout, s.norm_traffic, s.balanced_context,
                      s.weight_gradient_bytes, s.dispatch_bytes, s.gradient_bytes, s.gradient_copy_bytes,
                      s.optimizer_traffic, s.gradient_traffic, s.loss_forward_traffic, s.loss_backward_traffic,
                      s.blocking_launches);
  };
  return kernels(a) == kernels(b);
}

}  // namespace

std::optional<Suggestion> faster_link(const DiagnosisInput& in, LinkId l, double factor) {
  const Link& link = in.cluster().links[l];
  if (auto trunks = faster_trunks(in, link, factor)) return trunks;
  std::vector<std::string> paths;
  find_bandwidth(in.experiment().source->at("cluster"), "cluster", link.bandwidth, paths);
  const auto suggestion = [&](const std::string& path, const std::string& which) {
    return Suggestion{{fmt::format("{}={}", path, gigabits(link.bandwidth / link.efficiency, factor))},
                      fmt::format("{} with {:.4g} times the bandwidth", which, factor)};
  };
  const std::string named = "." + link.name + ".bandwidth";
  for (const std::string& path : paths)
    if (path.ends_with(named)) return suggestion(path, link.name);
  if (paths.size() != 1) return {};
  const std::int64_t links = links_of(in.cluster(), link.bandwidth);
  return suggestion(paths.front(),
                    links > 1 ? fmt::format("all {} links of {}", links, to_text(link.bandwidth)) : link.name);
}

void suggest_network(const DiagnosisInput& in, LinkId l, double factor, Finding& f) {
  if (auto less = less_oversubscription(in, in.cluster().links[l])) f.suggestions.push_back(std::move(*less));
  if (auto faster = faster_link(in, l, factor)) f.suggestions.push_back(std::move(*faster));
}

void suggest_other_rank_order(const DiagnosisInput& in, Finding& f) {
  const PlanSpec& spec = in.experiment().plan;
  const Stage& first = in.plan().stages.front();
  if (!spec.planner->fields->find("group") || first.replicas() < 2 || in.plan().different_stages() < 2) return;
  RankOrder order = spec.order;
  const auto data = std::find(order.axes.begin(), order.axes.end(), RankAxis::Data);
  const auto pipeline = std::find(order.axes.begin(), order.axes.end(), RankAxis::Pipeline);
  const bool replicas_are_near = data < pipeline;
  std::iter_swap(data, pipeline);
  f.suggestions.push_back({{"plan.group.order=" + to_text(order)},
                           replicas_are_near
                               ? "devices numbered so that stages are neighbors, and replicas further apart"
                               : "devices numbered so that replicas are neighbors, and stages further apart"});
}

void suggest_overlap(const DiagnosisInput& in, std::initializer_list<Overlap> features, const std::string& change,
                     Finding& f) {
  const SoftwareStack& now = in.experiment().software();
  const Overlap main = *features.begin();
  if (!now.prices || now.hides(main) > 0) return;
  if (now.overlap_share[main] > 0) {
    // The table of stacks says in the source of one whose shares were not measured.
    const bool is_assumed = now.source.find("are assumed") != std::string_view::npos;
    Suggestion switched{
        {},
        is_assumed ? fmt::format("{}, of which {:.0f} % is assumed to be hidden", change, 100 * now.overlap_share[main])
                   : change};
    for (const Overlap feature : features)
      if (!now.overlap[feature]) switched.sets.push_back(fmt::format("software.overlap.{}=true", name_of(feature)));
    f.suggestions.push_back(std::move(switched));
    return;
  }
  for (const SoftwareStack& other : software_stacks()) {
    if (!other.base.empty() || !same_kernels(now, other) || other.overlap_share[main] <= 0) continue;
    std::string on;
    for (const Overlap feature : features)
      if (!other.overlap[feature]) on += fmt::format("{}{}: true", on.empty() ? "" : ", ", name_of(feature));
    const std::string set =
        on.empty() ? std::string(other.name) : fmt::format("{{base: {}, overlap: {{{}}}}}", other.name, on);
    f.suggestions.push_back({{"software=" + set}, fmt::format("{}, as {} runs them", change, other.name)});
    return;
  }
}

std::vector<std::string> batch_sets(const DiagnosisInput& in, int samples, int micro_batches) {
  const config::Value& run = in.experiment().source->at("run");
  const config::Value* count = run.find("micro_batches");
  const auto whole = static_cast<int>(std::lround(samples * in.program().work.samples_of_pack));
  std::vector<std::string> sets;
  if (run.has("global_batch") && samples != in.program().mini_batch)
    sets.push_back(fmt::format("run.global_batch={}", whole));
  const bool is_written = !run.has("global_batch") || (count && count->origin.empty());
  if (is_written && micro_batches != in.experiment().run.micro_batches)
    sets.push_back(fmt::format("run.micro_batches={}", micro_batches / in.plan().loads.slices));
  return sets;
}

Suggestion more_micro_batches(const DiagnosisInput& in, int factor) {
  const int count = factor * in.experiment().run.micro_batches, samples = factor * in.program().mini_batch;
  return {batch_sets(in, samples, count),
          fmt::format("{} micro-batches, which makes a larger batch of {} samples", count, samples)};
}

std::optional<Suggestion> smaller_micro_batches(const DiagnosisInput& in) {
  const int size = in.experiment().plan.written_micro_batch_size();
  if (!in.experiment().plan.has_micro_batch_size() || size < 2 || size % 2 != 0) return {};
  Suggestion s{{fmt::format("plan.micro_batch_size={}", size / 2)}, ""};
  for (std::string& set : batch_sets(in, in.program().mini_batch, 2 * in.experiment().run.micro_batches))
    s.sets.push_back(std::move(set));
  return s;
}

std::optional<Suggestion> larger_micro_batches(const DiagnosisInput& in) {
  const int size = in.experiment().plan.written_micro_batch_size(), count = in.experiment().run.micro_batches;
  if (!in.experiment().plan.has_micro_batch_size() || size < 1 || count % 2 != 0) return {};
  if (!in.plan().loads.empty()) return {};  // A micro-batch is one pack.
  Suggestion s{{fmt::format("plan.micro_batch_size={}", 2 * size)}, "half as many micro-batches of twice the size"};
  for (std::string& set : batch_sets(in, in.program().mini_batch, count / 2)) s.sets.push_back(std::move(set));
  return s;
}

}  // namespace stagecraft::diagnosis
