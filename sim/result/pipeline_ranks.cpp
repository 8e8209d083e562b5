// The rows of a run by pipeline rank: equal replicas are one row, with its times and its memory by class.

#include "sim/result/pipeline_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// Replicas whose times differ by less than this share of a period, and whose memory differs by less than this share of
/// the peak, are one row: contention on links alone makes them differ so much.
constexpr double kAlike = 0.005;

class RankRows {
 public:
  RankRows(const Plan& plan, const Program& program, const Report& report, const Cluster& cluster)
      : plan_(plan), program_(program), report_(report), cluster_(cluster) {}

  std::vector<PipelineRank> rows() const {
    std::vector<PipelineRank> rows;
    RankId rank{0};
    for (const auto& [stages, devices] : devices_by_stages()) {
      std::vector<std::vector<DeviceId>> parts;
      for (const DeviceId d : devices) {
        const auto part =
            std::find_if(parts.begin(), parts.end(), [&](const auto& p) { return is_alike(p.front(), d); });
        (part != parts.end() ? *part : parts.emplace_back()).push_back(d);
      }
      for (const std::vector<DeviceId>& part : parts) rows.push_back(row_of(rank, stages, part));
      ++rank.value;
    }
    return rows;
  }

 private:
  std::map<std::vector<StageId>, std::vector<DeviceId>> devices_by_stages() const {
    IdVector<DeviceId, std::vector<StageId>> stages(report_.devices.size());
    for (const StageId s : plan_.stages.ids())
      for (const DeviceId d : plan_.stages[s].all_devices())
        if (stages.contains(d)) stages[d].push_back(s);
    std::map<std::vector<StageId>, std::vector<DeviceId>> devices;
    for (const DeviceId d : stages.ids())
      if (report_.devices[d].used && cluster_.devices.contains(d)) devices[stages[d]].push_back(d);
    return devices;
  }

  bool is_alike(DeviceId a, DeviceId b) const {
    const DeviceReport &first = report_.devices[a], &other = report_.devices[b];
    if (&cluster_.type_of(a) != &cluster_.type_of(b) || size_of(a) != size_of(b)) return false;
    const auto differ = [](double x, double y, double whole) { return std::abs(x - y) > kAlike * whole; };
    const double peak = std::max(first.memory.total, other.memory.total).value;
    if (differ(first.memory.resident.value, other.memory.resident.value, peak) ||
        differ(first.memory.stash.value, other.memory.stash.value, peak) ||
        differ(first.memory.total.value, other.memory.total.value, peak))
      return false;
    const auto classes = main_time_classes();
    return !differ(first.utilisation, other.utilisation, 1) &&
           std::none_of(classes.begin(), classes.end(), [&](const MainTimeClass& c) {
             return differ(c.seconds(first.time).value, c.seconds(other.time).value, report_.period.value);
           });
  }

  /// Devices for which the instructions of one stand.
  int size_of(DeviceId d) const { return program_.group_sizes.empty() ? program_.group : program_.group_sizes[d]; }

  PipelineRank row_of(RankId rank, const std::vector<StageId>& stages, const std::vector<DeviceId>& devices) const {
    const DeviceId fullest = *std::max_element(devices.begin(), devices.end(), [&](DeviceId a, DeviceId b) {
      return report_.devices[a].memory.total < report_.devices[b].memory.total;
    });
    PipelineRank row{.rank = rank,
                     .stages = stages,
                     .first = devices.front(),
                     .devices = static_cast<int>(devices.size()) * size_of(devices.front()),
                     .memory = report_.devices[fullest].memory,
                     .resident = program_.memory[fullest]};
    if (!stages.empty()) row.tensor = plan_.stages[stages.front()].shape.degrees.tensor;
    if (!stages.empty()) row.context = plan_.stages[stages.front()].shape.degrees.context;
    const double part = 1.0 / static_cast<double>(devices.size());
    for (const DeviceId d : devices) {
      const TimeClasses& time = report_.devices[d].time;
      row.time.spent += part * time.spent;
      row.time.bubble += part * time.bubble;
      row.time.unexplained += part * time.unexplained;
      row.busy += part * report_.devices[d].utilisation;
    }
    return row;
  }

  const Plan& plan_;
  const Program& program_;
  const Report& report_;
  const Cluster& cluster_;
};

}  // namespace

std::vector<PipelineRank> pipeline_ranks(const Plan& plan, const Program& program, const Report& report,
                                         const Cluster& cluster) {
  return RankRows(plan, program, report, cluster).rows();
}

std::string label(const PipelineRank& r) {
  std::string text = fmt::format("PP {}", r.rank.value);
  if (r.devices % (r.tensor * r.context) != 0) return text + " x " + pluralize(r.devices, "device");
  if (r.replicas() > 1) text += " x " + pluralize(r.replicas(), "replica");
  if (r.tensor > 1) text += fmt::format(" x TP {}", r.tensor);
  if (r.context > 1) text += fmt::format(" x CP {}", r.context);
  return text;
}

}  // namespace stagecraft
