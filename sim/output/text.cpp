// The summary that `run` prints (times, throughput, bubble, memory, links, energy, changes of the cluster; of real runs
// also losses, enqueueing and late sleeps), and the line of `search` and `compare` about tied weights.

#include "sim/output/text.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/memory_reserve.hpp"
#include "sim/core/text.hpp"
#include "sim/output/rank_table.hpp"
#include "sim/result/link_use.hpp"
#include "sim/result/metrics.hpp"

namespace stagecraft {
namespace {

std::string row(std::string_view name, const std::string& value, const std::string& note = {}) {
  return fmt::format("  {:<22} {:>12}{}{}\n", name, value, note.empty() ? "" : "   ", note);
}

/// The bubble of a period, and what the first iteration has of it because the pipeline fills and drains.
std::string bubble_text(const Report& report, const Cluster& cluster) {
  std::string note = "of a period, mean of the devices: they wait for other stages";
  if (report.fill + report.drain >= 5e-4)
    note += fmt::format("; the first iteration fills for {} and drains for {}", percent(report.fill),
                        percent(report.drain));
  const auto busiest = std::max_element(report.devices.begin(), report.devices.end(),
                                        [](const DeviceReport& a, const DeviceReport& b) { return a.busy < b.busy; });
  const DeviceId device{busiest - report.devices.begin()};
  return row("bubble", percent(report.bubble), note) +
         row("busiest idle", percent(report.steady_bubble),
             fmt::format("of a period, {}: the busiest device", cluster.devices[device].name));
}

std::string critical_path_text(const Report& report) {
  if (report.length.value <= 0) return {};
  const auto share = [&](Seconds s) { return percent(s / report.length); };
  return row("critical path", pluralize(std::ssize(report.critical_path), "op"),
             fmt::format("compute {}, transfers {}, waiting {}", share(report.critical_compute),
                         share(report.critical_transfer), share(report.critical_wait)));
}

/// Not for the whole run, and not again and again: then no iteration is like another.
bool changes_once(const Cluster& cluster) {
  return std::any_of(cluster.changes.begin(), cluster.changes.end(),
                     [](const Change& c) { return c.from.value > 0 || c.until.value < kForEver; });
}

/// What the time of an iteration is: the only one, or one more after another.
std::string iteration_text(const Program& program, const Report& report, const Cluster& cluster) {
  constexpr double kSame = 5e-4;
  std::string note = "fill and drain included";
  if (program.iterations > 1 && changes_once(cluster)) {
    const double after_first = report.length.value - report.makespan.value, count = program.iterations - 1;
    const bool is_steady = std::abs(after_first - count * report.period.value) <= 1e-9 * after_first;
    note = fmt::format("mean of {}, in which the machine changes; the first takes {}",
                       is_steady ? pluralize(program.iterations - 1, "iteration") : "some iterations",
                       to_text(report.makespan));
  } else if (!report.iterations.empty()) {
    note = fmt::format("mean of {} with sequences of their own; half of them below {}, 95 % below {}",
                       pluralize(std::ssize(report.iterations), "iteration"),
                       to_text(Seconds{quantile(report.iterations, 0.5)}),
                       to_text(Seconds{quantile(report.iterations, 0.95)}));
  } else if (std::abs(report.period / report.makespan - 1) >= kSame) {
    note = fmt::format("one more, back to back; the first takes {}", to_text(report.makespan));
  } else if (!report.drains) {
    note = "one more, back to back";
  }
  return row("iteration time", to_text(report.period, report.interval), note);
}

/// Tokens or samples a second, and how well devices are used.
std::string rates_text(const Program& program, const Report& report) {
  const std::string samples = fmt::format("{:.4g}/s", report.throughput);
  const DeviceRates* rates = report.rates ? &*report.rates : nullptr;
  if (!rates || rates->tokens_per_second <= 0)
    return row("throughput", samples, fmt::format("samples; {:.6g} in an iteration", program.samples()));
  const int devices = program.work.devices;
  std::string each = devices > 1 ? fmt::format("{}/s for each of {}, ", short_number(rates->tokens_per_second),
                                               pluralize(devices, "device"))
                                 : "";
  std::string text = row("tokens", short_number(rates->tokens_per_second * devices) + "/s",
                         fmt::format("{}{:.4g} samples/s", each, report.throughput));
  const std::string speed = fmt::format("{:.4g} TFLOP/s", rates->model.value / 1e12),
                    model = "of the model on each device";
  if (rates->of_peak <= 0) return text + row("model FLOP/s", speed, model);
  const bool recomputes = percent(rates->hardware_of_peak) != percent(rates->of_peak);
  return text +
         row("MFU", percent(rates->of_peak),
             speed + " " + model +
                 (recomputes ? fmt::format("; {} with recomputation (HFU)", percent(rates->hardware_of_peak)) : ""));
}

std::string memory_row(const Program& program, const Report& report, const Cluster& cluster, bool measured) {
  const auto fullest =
      std::max_element(report.devices.begin(), report.devices.end(),
                       [](const DeviceReport& a, const DeviceReport& b) { return a.memory.total < b.memory.total; });
  if (fullest == report.devices.end()) return {};
  const DeviceId d{fullest - report.devices.begin()};
  const MemoryPeak& m = fullest->memory;
  const std::string room = m.capacity.value > 0 && m.fits()
                               ? fmt::format("fits: {} free of {}, ", to_text(m.capacity - m.total),
                                             memory_text(m.capacity + m.reserved, m.reserved))
                           : m.capacity.value > 0 ? "of " + memory_text(m.capacity + m.reserved, m.reserved) + ", "
                                                  : "";
  return row(
      measured ? "memory, as planned" : "peak memory", to_text(m.total),
      fmt::format("{}on {}{}", room, cluster.devices[d].name, m.at.valid() ? " at " + to_text(program, m.at, d) : ""));
}

/// The fullest host, and what crosses the links to hosts; empty where no host keeps anything.
std::string host_row(const Program& program, const Report& report, const Cluster& cluster) {
  const auto fullest = std::max_element(report.host_peaks.begin(), report.host_peaks.end());
  if (fullest == report.host_peaks.end() || fullest->value <= 0) return {};
  const HostMemory& host = cluster.memories[fullest - report.host_peaks.begin()];
  const Timeline not_needed;
  const RunView view{nullptr, program, cluster, not_needed, report};
  std::string note = fmt::format("on the host {} of {}", host.host, to_text(host.capacity));
  if (const double down = metric_value("offloaded_bytes", view); down > 0) {
    const double busy = metric_value("host_link_utilisation", view);
    note += fmt::format("; {} of activations down and up in an iteration, on links that are {} busy",
                        to_text(Bytes{down}), percent(busy));
    if (busy > 1) note += ", more than they can carry: --backend fluid has copies share them";
  }
  return row("host memory", to_text(*fullest), note);
}

/// "63.4 %   compute + 30.2 % bubble + ...": they sum to the whole.
std::string time_row(const TimeClasses& time) {
  std::string value, note;
  for (const MainTimeClass& c : main_time_classes()) {
    const double share = time.total().value > 0 ? c.seconds(time) / time.total() : 0;
    if (value.empty()) {
      value = percent(share), note = c.name;
    } else if (share >= 5e-4) {
      note += fmt::format(" + {} {}", percent(share), c.name);
    }
  }
  return row("time", value, note + ", mean of the devices");
}

std::string busiest_link_row(const Program& program, const Report& report, const Cluster& cluster, bool measured) {
  if (report.links.empty()) return {};
  const LinkReport& l = report.links.front();
  const std::string note = unrouted_collectives_text(program);
  return row(
      measured ? "busiest link, planned" : "busiest link", percent(l.utilisation),
      fmt::format("{}, {} in all{}{}", cluster.links[l.link].name, to_text(l.traffic), note.empty() ? "" : "; ", note));
}

std::string warnings_text(const Report& report, const Cluster& cluster) {
  std::string text;
  for (const DeviceId d : report.devices.ids()) {
    const MemoryPeak& m = report.devices[d].memory;
    if (!m.fits())
      text +=
          fmt::format("warning: {} would need {} more memory{} with the messages that are on their way\n",
                      cluster.devices[d].name, to_text(m.total - m.capacity),
                      m.reserved.value > 0 ? fmt::format(" in addition to the {} reserved", to_text(m.reserved)) : "");
  }
  return text;
}

std::string changes_text(const Cluster& cluster) {
  constexpr std::size_t kMost = 4;
  std::string text;
  const std::size_t shown = cluster.changes.size() > kMost ? kMost - 1 : cluster.changes.size();
  for (std::size_t i = 0; i < shown; ++i)
    text += row(i == 0 ? "changes" : "", i == 0 ? fmt::format("{}", cluster.changes.size()) : "",
                to_text(cluster.changes[i], cluster));
  if (shown < cluster.changes.size()) text += row("", "", fmt::format("and {} more", cluster.changes.size() - shown));
  if (cluster.jitter.max_fraction > 0)
    text += row("jitter", fmt::format("{:.4g} %", 100 * cluster.jitter.max_fraction), "at most, of every op");
  return text;
}

}  // namespace

std::string answer_text(const Program& program, const Report& report, const Cluster& cluster, bool measured) {
  std::string text = iteration_text(program, report, cluster) + rates_text(program, report);
  if (report.instruction_times)
    text += memory_row(program, report, cluster, measured) + host_row(program, report, cluster);
  if (report.economics)
    for (const EconomicsLine& line : economics_lines(*report.economics)) text += row(line.name, line.number, line.note);
  if (!report.instruction_times)
    return text + row("not timed", "", "instructions, so nothing within an iteration (run.gpu.timing: off)");
  return text + time_row(report.time) + warnings_text(report, cluster);
}

namespace {

/// "68.1 %   products + 17.7 % tensor + ...", the largest first.
/// What allocators of published runs kept for as much memory in use as the fullest device has; empty where all of that
/// would fit, or where the device has no reserve, as no GPU.
std::string kept_memory_row(const Report& report) {
  const auto fullest =
      std::max_element(report.devices.begin(), report.devices.end(),
                       [](const DeviceReport& a, const DeviceReport& b) { return a.memory.total < b.memory.total; });
  if (fullest == report.devices.end() || fullest->memory.reserved.value <= 0 || !fullest->memory.fits()) return {};
  const Bytes needed = fullest->memory.total, usable = fullest->memory.capacity;
  const std::span<const double> ratios = allocator_ratios();
  const auto fitting = std::count_if(ratios.begin(), ratios.end(), [&](double r) { return r * needed <= usable; });
  if (fitting == std::ssize(ratios)) return {};
  return row(
      "kept by allocators", "to " + to_text(ratios.back() * needed),
      fmt::format("{:.2f} to {:.2f} times the peak in {} published runs of BLOOM and torchtitan, of which {} would "
                  "fit in {}",
                  ratios.front(), ratios.back(), ratios.size(), fitting, to_text(usable)));
}

std::string time_by_class_row(const TimeClasses& time) {
  const std::string shares = to_text(time);
  const std::size_t end = shares.find('%') + 1;
  return row("time by class", shares.substr(0, end), shares.substr(end + 1) + ", mean of the devices");
}

}  // namespace

std::string details_text(const Program& program, const Report& report, const Cluster& cluster, bool measured) {
  std::string text = row("first iteration", to_text(report.makespan, report.interval),
                         report.drains ? "fill and drain included" : "the next is already under way");
  if (program.iterations > 1)
    text += row("whole run", to_text(report.length), pluralize(program.iterations, "iteration"));
  if (program.group > 1)
    text += row("group", fmt::format("{} devices", program.group),
                program.group_sizes.empty() ? "of each replica" : "of each replica, at most");
  if (report.interval) text += row("interval", half_width_text(*report.interval), to_text(*report.interval));
  if (!measured) text += kept_memory_row(report);
  if (!report.instruction_times) return text + changes_text(cluster);
  if (!program.parts.empty()) text += time_by_class_row(report.time);
  text += bubble_text(report, cluster) + busiest_link_row(program, report, cluster, measured);
  if (report.energy.value > 0) {
    const double each = report.rates ? report.rates->joules_per_token : 0;
    text +=
        row("energy", to_text(report.energy),
            fmt::format("in {}{}", to_text(report.length), each > 0 ? fmt::format("; {:.4g} J a token", each) : ""));
  }
  return text + critical_path_text(report) + changes_text(cluster);
}

std::string learnt_text(const Learnt& learnt, const Cluster& cluster, const TextLayout& layout) {
  std::string text;
  if (!learnt.losses.empty())
    text += fmt::format("  {:<22} {:>12.6g}   {}\n", "loss", learnt.losses.back(),
                        learnt.losses.size() > 1 ? fmt::format("of the last of {} iterations; {:.6g} at first",
                                                               learnt.losses.size(), learnt.losses.front())
                                                 : std::string("of one iteration"));
  if (!learnt.evaluations.empty())
    text += fmt::format("  {:<22} {:>12.6g}   after {}, of the weights themselves\n", "evaluation",
                        learnt.evaluations.back().loss, pluralize(learnt.evaluations.back().updates, "update"));
  return text + "\n" + measured_memory_table(learnt, cluster, layout);
}

std::string enqueued_text(const Enqueued& e) {
  std::string how;
  if (e.by_graph.value > 0)
    how = fmt::format("; {} as a graph, launched {}", to_text(e.by_graph), pluralize(e.launches, "time"));
  if (e.graphs > 0) how += fmt::format(", {} made while the clock ran", e.graphs);
  std::string text =
      fmt::format("  {:<22} {:>12}   of the host for an iteration{}\n", "enqueueing", to_text(e.by_calls), how);
  if (!e.no_graph.empty()) text += fmt::format("  {:<22} {:>12}   {}\n", "no graph", "", e.no_graph);
  if (!e.warning.empty()) text += fmt::format("  {:<22} {:>12}   {}\n", "warning", "", e.warning);
  return text;
}

std::string lateness_text(const std::vector<double>& lateness) {
  return fmt::format("  {:<22} {:>12}   in the median, {} at worst\n", "sleeps ended late by",
                     to_text(Seconds{lateness[lateness.size() / 2]}), to_text(Seconds{lateness.back()}));
}

std::string unexchanged_text(const Unexchanged& rows) {
  std::vector<std::string> names;
  Bytes min_bytes, max_bytes;
  for (const auto& [name, bytes] : rows) {
    if (bytes.value <= 0) continue;
    min_bytes = names.empty() ? bytes : std::min(min_bytes, bytes);
    max_bytes = std::max(max_bytes, bytes);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (names.empty()) return {};
  const std::string bytes =
      min_bytes < max_bytes ? fmt::format("{} to {}", to_text(min_bytes), to_text(max_bytes)) : to_text(max_bytes);
  return fmt::format(
      "without the exchange of tied weights' gradients ({} for each update), which is simulated only "
      "where a schedule flushes: {}",
      bytes, join(names));
}

}  // namespace stagecraft
