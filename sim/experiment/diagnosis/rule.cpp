#include "sim/experiment/diagnosis/rule.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/plan/device_ranges.hpp"

namespace stagecraft::diagnosis {

Finding finding(const DiagnosisInput& in, std::string_view cause, std::string where, Seconds lost) {
  Finding f{.cause = std::string(cause), .where = std::move(where), .lost = lost, .sentence = {}};
  f.share = in.period.value > 0 ? std::clamp(lost / in.period, 0.0, 1.0) : 0;
  return f;
}

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string stage_text(const DiagnosisInput& in, StageId s) {
  const std::vector<LayerId>& layers = in.plan().stages[s].shape.layers;
  if (layers.empty()) return fmt::format("stage {}", s.value);
  const auto name = [&](LayerId l) { return in.experiment().model->layers[l].name; };
  if (layers.size() == 1) return fmt::format("stage {} ({})", s.value, name(layers.front()));
  return fmt::format("stage {} ({}..{})", s.value, name(layers.front()), name(layers.back()));
}

std::string devices_set(const std::vector<DeviceId>& devices, const Cluster& cluster) {
  return fmt::format("plan.devices=[{}]", join(device_ranges(devices, cluster)));
}

namespace {

/// Paths of all maps below whose `bandwidth` is this one.
void find_bandwidth(const config::Value& at, const std::string& path, Bandwidth bandwidth,
                    std::vector<std::string>& paths) {
  for (const config::Member& m : at.members) {
    const std::string below = path + "." + m.key;
    if (m.key == "bandwidth" && m.value.is_scalar() && config::as_bandwidth(m.value) == bandwidth)
      paths.push_back(below);
    find_bandwidth(m.value, below, bandwidth, paths);
  }
  for (const config::Value& item : at.items) {
    const config::Value* name = item.find("name");
    if (name && name->is_scalar()) find_bandwidth(item, path + "." + name->text, bandwidth, paths);
  }
}

/// The place of a link's bandwidth: the item with its name, or the only kind of link with that bandwidth.
std::string bandwidth_path(const DiagnosisInput& in, const Link& link) {
  std::vector<std::string> paths;
  find_bandwidth(in.experiment().source->at("cluster"), "cluster", link.bandwidth, paths);
  const std::string named = "." + link.name + ".bandwidth";
  for (const std::string& path : paths)
    if (path.ends_with(named)) return path;
  return paths.size() == 1 ? paths.front() : std::string();
}

}  // namespace

std::optional<Suggestion> faster_link(const DiagnosisInput& in, LinkId l, double factor) {
  const Link& link = in.cluster().links[l];
  const std::string path = bandwidth_path(in, link);
  if (path.empty()) return {};
  const double gigabits = factor * link.bandwidth.value * 8 / 1e9;
  return Suggestion{{fmt::format("{}={:.6g} Gbit/s", path, gigabits)},
                    fmt::format("{} with {:.4g} times the bandwidth", link.name, factor)};
}

Suggestion more_micro_batches(const DiagnosisInput& in, int factor) {
  const int count = factor * in.experiment().run.micro_batches;
  const int samples = factor * in.program().mini_batch;
  const bool by_batch = in.experiment().source->at("run").has("global_batch");
  return {{by_batch ? fmt::format("run.global_batch={}", samples) : fmt::format("run.micro_batches={}", count)},
          fmt::format("{} micro-batches, which makes a larger batch of {} samples", count, samples)};
}

}  // namespace stagecraft::diagnosis
