// The one table of metrics: key, heading, unit, meaning and value of each number of a run. A new metric is one entry.

#include "sim/result/metrics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/result/link_use.hpp"

namespace stagecraft {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

/// NaN where it is zero, which stands for not known.
double or_unknown(double value) { return value > 0 ? value : kUnknown; }

const DeviceReport* fullest(const RunView& r) {
  const auto& devices = r.report.devices;
  const auto it = std::max_element(devices.begin(), devices.end(), [](const DeviceReport& a, const DeviceReport& b) {
    return a.memory.total < b.memory.total;
  });
  return it == devices.end() ? nullptr : &*it;
}

double used_devices(const RunView& r) {
  return static_cast<double>(
      std::count_if(r.report.devices.begin(), r.report.devices.end(), [](const DeviceReport& d) { return d.used; }));
}

double share_of_period(const RunView& r, Seconds part) {
  if (!r.report.instruction_times) return kUnknown;
  return r.report.period.value > 0 ? part / r.report.period : 0;
}

double mean_utilisation(const RunView& r) {
  double sum = 0;
  for (const DeviceReport& d : r.report.devices) sum += d.used ? d.utilisation : 0;
  return used_devices(r) > 0 ? sum / used_devices(r) : kUnknown;
}

bool fits(const RunView& r) {
  return std::all_of(r.report.devices.begin(), r.report.devices.end(),
                     [](const DeviceReport& d) { return d.memory.fits(); });
}

double traffic(const RunView& r) {
  const std::vector<double> routes = bytes_on_routes(r.program);
  return r.program.copies * std::accumulate(routes.begin(), routes.end(), 0.0) / r.program.iterations;
}

double memory_traffic(const RunView& r) {
  std::set<LinkId> memories;
  for (const Device& d : r.cluster.devices) memories.insert(d.memory);
  double sum = 0;
  for (const LinkReport& l : r.report.links)
    if (memories.contains(l.link)) sum += l.traffic.value;
  return sum / r.program.iterations;
}

/// Bytes of stashes in an iteration, to host memory or back; NaN where none is copied.
double stash_bytes(const RunView& r, bool up) {
  double sum = 0;
  for (const CollectiveCall& c : r.program.collectives)
    if (c.purpose == Purpose::Stash && goes_up(r.program, c) == up) {
      const CollectivePhase& phase = r.program.phases_of(c).front();
      sum += static_cast<double>(phase.bytes) * phase.routes;
    }
  return sum > 0 ? r.program.copies * sum / r.program.iterations : kUnknown;
}

double host_link_utilisation(const RunView& r) {
  const LinkReport* const busiest = busiest_host_link(r);
  return busiest ? busiest->utilisation : kUnknown;
}

double peak_host_memory(const RunView& r) {
  const auto& peaks = r.report.host_peaks;
  return peaks.empty() ? kUnknown : or_unknown(std::max_element(peaks.begin(), peaks.end())->value);
}

double dollars_per_billion_samples(const RunView& r) {
  const Economics* e = r.report.economics ? &*r.report.economics : nullptr;
  if (!e || e->dollars_per_hour <= 0 || r.report.throughput <= 0) return kUnknown;
  return e->dollars_per_hour / 3600 * 1e9 / (r.report.throughput * e->goodput);
}

double peak_activations(const RunView& r) {
  int peak = 0;
  for (const DeviceReport& d : r.report.devices) peak = std::max(peak, d.memory.activations);
  return peak;
}

using Unit = MetricUnit;

constexpr Metric kMetrics[] = {
    {"makespan_s", "first iteration", "first", Unit::Time, Better::Less, kMain | kCompared | kPredicted,
     "Length of the first iteration, fill and drain included.",
     [](const RunView& r) { return r.report.makespan.value; }},
    {"period_s", "iteration time", "period", Unit::Time, Better::Less, kMain | kCompared | kPredicted,
     "Time of one more iteration, back to back; in a measured run the median without the first.",
     [](const RunView& r) { return r.report.period.value; }},
    {"iteration_p50_s", "median iteration", "p50", Unit::Time, Better::Less, 0,
     "Half of the iterations take at most this long, where their sequences differ in length.",
     [](const RunView& r) { return r.report.iterations.empty() ? kUnknown : quantile(r.report.iterations, 0.5); }},
    {"iteration_p95_s", "slow iteration", "p95", Unit::Time, Better::Less, 0,
     "95 % of the iterations take at most this long, where their sequences differ in length.",
     [](const RunView& r) { return r.report.iterations.empty() ? kUnknown : quantile(r.report.iterations, 0.95); }},
    {"length_s", "whole run", "", Unit::Time, Better::Less, kCompared, "Length of the whole run.",
     [](const RunView& r) { return r.report.length.value; }},
    {"throughput_samples_per_s", "throughput", "", Unit::SampleRate, Better::More, kMain | kCompared,
     "Samples per second at the period.", [](const RunView& r) { return r.report.throughput; }},
    {"tokens_per_s", "tokens", "", Unit::TokenRate, Better::More, kCompared,
     "Tokens per second of all devices at the period, for models of text.",
     [](const RunView& r) {
       return r.report.rates ? or_unknown(r.report.rates->tokens_per_second * r.program.work.devices) : kUnknown;
     },
     "rates.tokens_per_s"},
    {"mfu", "MFU", "", Unit::Share, Better::More, kCompared | kOnAnyDevices, "Model FLOPs utilization.",
     [](const RunView& r) { return r.report.rates ? or_unknown(r.report.rates->of_peak) : kUnknown; }, "rates.mfu"},
    {"hfu", "HFU", "", Unit::Share, Better::More, kCompared | kOnAnyDevices,
     "Hardware FLOPs utilization: with recomputation.",
     [](const RunView& r) {
       return r.report.rates && r.report.rates->of_peak > 0 ? r.report.rates->hardware_of_peak : kUnknown;
     },
     "rates.hfu"},
    {"dollars_per_billion_tokens", "$ for 10^9 tokens", "cost", Unit::Cost, Better::Less, kCompared | kOnAnyDevices,
     "Cost of 10^9 tokens, with `report.price`.",
     [](const RunView& r) {
       return r.report.economics ? or_unknown(r.report.economics->dollars_per_billion_tokens) : kUnknown;
     },
     "economics.dollars_per_billion_tokens"},
    {"dollars_per_billion_samples", "$ for 10^9 samples", "", Unit::Cost, Better::Less, kOnAnyDevices,
     "Cost of 10^9 samples, with `report.price`, of any model.", dollars_per_billion_samples},
    {"training_s", "training", "", Unit::TrainingTime, Better::Less, kMain | kCompared,
     "Time of the whole training, with `report.tokens`, and with failures.",
     [](const RunView& r) { return r.report.economics ? or_unknown(r.report.economics->duration.value) : kUnknown; },
     "economics.duration_s"},
    {"training_dollars", "$ for the training", "total", Unit::Cost, Better::Less, kMain | kCompared | kOnAnyDevices,
     "Cost of the whole training, with `report.tokens` and `report.price`.",
     [](const RunView& r) { return r.report.economics ? or_unknown(r.report.economics->dollars) : kUnknown; },
     "economics.dollars"},
    {"energy_per_token_J", "energy per token", "", Unit::Energy, Better::Less, kCompared | kOnAnyDevices,
     "Energy of a token in this run, fill and drain included, for models of text.",
     [](const RunView& r) { return r.report.rates ? or_unknown(r.report.rates->joules_per_token) : kUnknown; },
     "rates.energy_per_token_J"},
    {"energy_per_sample_J", "energy per sample", "", Unit::Energy, Better::Less, kOnAnyDevices,
     "Energy of a sample in this run, fill and drain included, of any model.",
     [](const RunView& r) {
       const double samples = r.program.iterations * r.program.samples();
       return samples > 0 ? or_unknown(r.report.energy.value / samples) : kUnknown;
     }},
    {"goodput", "goodput", "", Unit::Share, Better::More, kCompared | kOnAnyDevices,
     "Share of the time that is training which no failure undoes, with `report.failures`.",
     [](const RunView& r) {
       return r.report.economics && r.report.economics->interval.value > 0 ? r.report.economics->goodput : kUnknown;
     },
     "economics.goodput"},
    {"bubble", "bubble", "", Unit::Share, Better::Less, kMain | kCompared,
     "Share of a period in which a device waits for other stages, mean over the devices that have a stage.",
     [](const RunView& r) { return r.report.bubble; }},
    {"steady_bubble", "busiest idle", "", Unit::Share, Better::Less, kCompared,
     "Share of a period in which the busiest device is neither in an op nor in a collective of one.",
     [](const RunView& r) { return r.report.steady_bubble; }},
    {"exposed_collectives", "exposed collectives", "", Unit::Share, Better::Less, kCompared,
     "Share of a period in which a device waits for its collectives on the wire, mean over the devices that "
     "have a stage.",
     [](const RunView& r) { return share_of_period(r, r.report.time.spent.collectives()); }},
    {"exposed_messages", "exposed messages", "", Unit::Share, Better::Less, kCompared,
     "Share of a period in which a device waits for its messages on the wire, mean over the devices that "
     "have a stage.",
     [](const RunView& r) { return share_of_period(r, r.report.time.spent.messages); }},
    {"utilisation", "devices busy", "", Unit::Share, Better::More, kCompared | kOnAnyDevices,
     "Share of the run in which a device is busy, mean over the devices that have a stage.", mean_utilisation},
    {"energy_J", "energy", "", Unit::Energy, Better::Less, kCompared, "Energy of the run.",
     [](const RunView& r) { return r.report.energy.value; }},
    {"peak_memory_bytes", "peak memory", "memory", Unit::Size, Better::Less, kMain | kCompared,
     "Peak memory of the fullest device.",
     [](const RunView& r) { return fullest(r) ? fullest(r)->memory.total.value : kUnknown; }},
    {"memory_capacity_bytes", "memory of that device", "", Unit::Size, Better::Neither, 0,
     "Memory of the fullest device, with its reserve.",
     [](const RunView& r) {
       return fullest(r) ? (fullest(r)->memory.capacity + fullest(r)->memory.reserved).value : kUnknown;
     }},
    {"peak_host_memory_bytes", "peak host memory", "host memory", Unit::Size, Better::Less, 0,
     "Most memory of a host that activations and states of the optimizer take at one time, with `plan.offload`.",
     peak_host_memory},
    {"fits", "fits with messages", "", Unit::YesNo, Better::More, kOnAnyDevices,
     "1 if no device needs more memory than it has, 0 otherwise.",
     [](const RunView& r) { return fits(r) ? 1.0 : 0.0; }},
    {"peak_activations", "micro-batches in flight", "in flight", Unit::Count, Better::Less, 0,
     "Most micro-batches in flight on a device.", peak_activations},
    {"host_memory_stall", "waiting for host memory", "stall", Unit::Share, Better::Less, 0,
     "Share of a period in which a device waits for activations that come back from host memory, mean over the devices "
     "that have a stage.",
     [](const RunView& r) { return share_of_period(r, r.report.time.spent.host_memory); }},
    {"offloaded_bytes", "to host memory", "", Unit::Size, Better::Less, 0,
     "Bytes that devices copy to host memory in an iteration.", [](const RunView& r) { return stash_bytes(r, false); }},
    {"fetched_bytes", "from host memory", "", Unit::Size, Better::Less, 0,
     "Bytes that come back from host memory in an iteration.", [](const RunView& r) { return stash_bytes(r, true); }},
    {"host_link_utilisation", "busiest host link", "", Unit::Share, Better::Less, 0,
     "Share of what the busiest link to host memory could carry during the run, in one direction where it has two. "
     "With "
     "cluster.host.pcie, PCIe that messages share is such a link.",
     host_link_utilisation},
    {"exposed_communication_s", "exposed communication", "", Unit::Time, Better::Less, kMain,
     "Time of a period in which a device waits for its collectives and messages on the wire, mean over the "
     "devices that have a stage.",
     [](const RunView& r) { return exposed_communication(r.report.time).value; }},
    {"traffic_bytes", "traffic", "", Unit::Size, Better::Less, 0,
     "Bytes that devices send each other in an iteration, in messages and in collectives that run as messages; each "
     "counts once, however many links it crosses.",
     traffic},
    {"memory_traffic_bytes", "memory traffic", "", Unit::Size, Better::Less, 0,
     "Bytes that cross memory that devices share in an iteration.", memory_traffic},
    {"busiest_link_utilisation", "busiest link", "", Unit::Share, Better::Less, 0,
     "Share of what the busiest link could carry during the run; collectives count with `run.collectives: "
     "flows`.",
     [](const RunView& r) { return r.report.links.empty() ? 0 : r.report.links.front().utilisation; }},
    {"critical_compute_s", "critical path: compute", "", Unit::Time, Better::Neither, 0,
     "Computation on the critical path.", [](const RunView& r) { return r.report.critical_compute.value; },
     "critical_path.compute_s"},
    {"critical_transfer_s", "critical path: transfers", "", Unit::Time, Better::Less, 0,
     "Communication on the critical path.", [](const RunView& r) { return r.report.critical_transfer.value; },
     "critical_path.transfer_s"},
    {"critical_wait_s", "critical path: waiting", "", Unit::Time, Better::Less, 0,
     "Time on the critical path in which nothing of the program runs.",
     [](const RunView& r) { return r.report.critical_wait.value; }, "critical_path.wait_s"},
    {"final_loss", "last loss", "", Unit::Number, Better::Less, kMain | kOnAnyDevices,
     "Loss of the last iteration of a real run.",
     [](const RunView& r) {
       return r.timeline.learnt && !r.timeline.learnt->losses.empty() ? r.timeline.learnt->losses.back() : kUnknown;
     }},
    {"drains", "drains", "", Unit::YesNo, Better::Neither, kOnAnyDevices,
     "1 if the pipeline empties between iterations, 0 otherwise.",
     [](const RunView& r) { return r.report.drains ? 1.0 : 0.0; }},
    {"stages", "stages", "", Unit::Count, Better::Neither, 0, "Pipeline stages; replicas of a stage count once.",
     [](const RunView& r) { return r.plan ? r.plan->different_stages() : kUnknown; }, "setup.stages"},
    {"devices", "devices", "", Unit::Count, Better::Less, kMain | kOnAnyDevices,
     "Devices that have a stage, all of each group.",
     [](const RunView& r) { return r.plan ? static_cast<double>(devices_of(*r.plan).size()) : kUnknown; },
     "setup.devices"},
    {"samples", "samples in an iteration", "samples", Unit::Count, Better::Neither, 0, "Samples of an iteration.",
     [](const RunView& r) { return r.program.samples(); }},
    {"iterations", "iterations", "", Unit::Count, Better::Neither, 0, "Iterations of the run.",
     [](const RunView& r) { return static_cast<double>(r.program.iterations); }},
    {"instructions", "instructions", "", Unit::Count, Better::Neither, 0, "Instructions of the program.",
     [](const RunView& r) { return static_cast<double>(r.program.copies) * static_cast<double>(r.program.size()); }},
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

const Metric* find_metric(std::string_view name) {
  const auto it =
      std::find_if(std::begin(kMetrics), std::end(kMetrics), [&](const Metric& m) { return name == m.name; });
  return it == std::end(kMetrics) ? nullptr : it;
}

std::size_t metric(std::string_view name) {
  if (const Metric* m = find_metric(name)) return static_cast<std::size_t>(m - kMetrics);
  throw InternalError(fmt::format("no metric '{}'", name));
}

const LinkReport* busiest_host_link(const RunView& r) {
  std::set<LinkId> links;
  for (const Device& d : r.cluster.devices) links.insert({d.down, d.up, d.bus_out, d.bus_in});
  const LinkReport* busiest = nullptr;
  for (const LinkReport& l : r.report.links)
    if (links.contains(l.link) && (!busiest || l.utilisation > busiest->utilisation)) busiest = &l;
  return busiest;
}

double metric_value(std::string_view name, const RunView& run) { return kMetrics[metric(name)].value_of(run); }

}  // namespace stagecraft
