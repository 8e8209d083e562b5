#include "sim/experiment/metrics.hpp"

#include <algorithm>
#include <limits>
#include <set>

#include <fmt/core.h>

namespace stagecraft {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

const DeviceReport* fullest(const Outcome& o) {
  const auto& devices = o.report.devices;
  const auto it = std::max_element(devices.begin(), devices.end(), [](const DeviceReport& a, const DeviceReport& b) {
    return a.memory.total < b.memory.total;
  });
  return it == devices.end() ? nullptr : &*it;
}

double used_devices(const Outcome& o) {
  return static_cast<double>(
      std::count_if(o.report.devices.begin(), o.report.devices.end(), [](const DeviceReport& d) { return d.used; }));
}

double share_of_period(const Outcome& o, Seconds part) {
  if (!o.report.instruction_times) return kUnknown;
  return o.report.period.value > 0 ? part / o.report.period : 0;
}

double mean_utilisation(const Outcome& o) {
  double sum = 0;
  for (const DeviceReport& d : o.report.devices) sum += d.used ? d.utilisation : 0;
  return used_devices(o) > 0 ? sum / used_devices(o) : kUnknown;
}

bool fits(const Outcome& o) {
  return std::all_of(o.report.devices.begin(), o.report.devices.end(),
                     [](const DeviceReport& d) { return d.memory.fits(); });
}

/// Bytes over links to memory that devices share, by ops and messages; or over all other links.
double traffic(const CompiledExperiment& p, const Outcome& o, bool of_memory) {
  std::set<LinkId> memories;
  for (const Device& d : p.cluster().devices) memories.insert(d.memory);
  double sum = 0;
  for (const LinkReport& l : o.report.links)
    if (memories.contains(l.link) == of_memory) sum += l.traffic.value;
  return sum;
}

double dollars_per_billion_samples(const Outcome& o) {
  const Economics* e = o.report.economics ? &*o.report.economics : nullptr;
  if (!e || e->dollars_per_hour <= 0 || o.report.throughput <= 0) return kUnknown;
  return e->dollars_per_hour / 3600 * 1e9 / (o.report.throughput * e->goodput);
}

constexpr Metric kMetrics[] = {
    {"makespan_s", "s", "Length of the first iteration, fill and drain included.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.makespan.value; }},
    {"period_s", "s", "Time of one more iteration, back to back.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.period.value; }},
    {"length_s", "s", "Length of the whole run.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.length.value; }},
    {"throughput_samples_per_s", "samples/s", "Samples per second at the period.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.throughput; }},
    {"tokens_per_s", "tokens/s", "Tokens per second of all devices, for models of text.", false,
     [](const CompiledExperiment& p, const Outcome& o) {
       const bool has_tokens = o.report.rates && o.report.rates->tokens_per_second > 0;
       return has_tokens ? o.report.rates->tokens_per_second * p.program.work.devices : kUnknown;
     }},
    {"mfu", "", "Model FLOPs utilization.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.rates && o.report.rates->of_peak > 0 ? o.report.rates->of_peak : kUnknown;
     }},
    {"hfu", "", "Hardware FLOPs utilization: with recomputation.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.rates && o.report.rates->of_peak > 0 ? o.report.rates->hardware_of_peak : kUnknown;
     }},
    {"dollars_per_billion_tokens", "$", "Cost of 10^9 tokens, with `report.price`.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       const bool has_cost = o.report.economics && o.report.economics->dollars_per_billion_tokens > 0;
       return has_cost ? o.report.economics->dollars_per_billion_tokens : kUnknown;
     }},
    {"dollars_per_billion_samples", "$", "Cost of 10^9 samples, with `report.price`, of any model.", false,
     [](const CompiledExperiment&, const Outcome& o) { return dollars_per_billion_samples(o); }},
    {"training_s", "s", "Time of the whole training, with `report.tokens`, and with failures.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.economics && o.report.economics->duration.value > 0 ? o.report.economics->duration.value
                                                                           : kUnknown;
     }},
    {"training_dollars", "$", "Cost of the whole training, with `report.tokens` and `report.price`.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.economics && o.report.economics->dollars > 0 ? o.report.economics->dollars : kUnknown;
     }},
    {"energy_per_token_J", "J", "Energy of a token in this run, fill and drain included, for models of text.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       const bool is_known = o.report.rates && o.report.rates->joules_per_token > 0;
       return is_known ? o.report.rates->joules_per_token : kUnknown;
     }},
    {"energy_per_sample_J", "J", "Energy of a sample in this run, fill and drain included, of any model.", false,
     [](const CompiledExperiment& p, const Outcome& o) {
       const double samples = static_cast<double>(p.program.iterations) * p.program.mini_batch;
       return o.report.energy.value > 0 && samples > 0 ? o.report.energy.value / samples : kUnknown;
     }},
    {"goodput", "", "Share of the time that is training which no failure undoes, with `report.failures`.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.economics && o.report.economics->interval.value > 0 ? o.report.economics->goodput : kUnknown;
     }},
    {"bubble", "",
     "Share of a period in which a device waits for other stages, mean over the devices that have a stage.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.bubble; }},
    {"steady_bubble", "",
     "Share of a period in which the busiest device is neither in an op nor in a collective of one.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.steady_bubble; }},
    {"exposed_collectives", "",
     "Share of a period in which a device waits for its collectives on the wire, mean over the devices that have a "
     "stage.",
     false,
     [](const CompiledExperiment&, const Outcome& o) { return share_of_period(o, o.report.time.spent.collectives()); }},
    {"exposed_messages", "",
     "Share of a period in which a device waits for its messages on the wire, mean over the devices that have a stage.",
     false,
     [](const CompiledExperiment&, const Outcome& o) { return share_of_period(o, o.report.time.spent.messages); }},
    {"utilisation", "", "Share of the run in which a device is busy, mean over the devices that have a stage.", false,
     [](const CompiledExperiment&, const Outcome& o) { return mean_utilisation(o); }},
    {"energy_J", "J", "Energy of the run.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.energy.value; }},
    {"peak_memory_bytes", "bytes", "Peak memory of the fullest device.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return fullest(o) ? fullest(o)->memory.total.value : kUnknown;
     }},
    {"memory_capacity_bytes", "bytes", "Memory of the fullest device, with its reserve.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return fullest(o) ? (fullest(o)->memory.capacity + fullest(o)->memory.reserved).value : kUnknown;
     }},
    {"fits", "", "1 if no device needs more memory than it has, 0 otherwise.", true,
     [](const CompiledExperiment&, const Outcome& o) { return fits(o) ? 1.0 : 0.0; }},
    {"peak_activations", "", "Most micro-batches in flight on a device.", true,
     [](const CompiledExperiment&, const Outcome& o) {
       int peak = 0;
       for (const DeviceReport& d : o.report.devices) peak = std::max(peak, d.memory.activations);
       return static_cast<double>(peak);
     }},
    {"exposed_communication_s", "s",
     "Time of a period in which a device waits for its collectives and messages on the wire, mean over the devices "
     "that "
     "have a stage.",
     false, [](const CompiledExperiment&, const Outcome& o) { return exposed_communication(o.report.time).value; }},
    {"traffic_bytes", "bytes", "Bytes that cross links in the whole run, without memory that devices share.", false,
     [](const CompiledExperiment& p, const Outcome& o) { return traffic(p, o, false); }},
    {"memory_traffic_bytes", "bytes", "Bytes that cross memory that devices share in the whole run.", false,
     [](const CompiledExperiment& p, const Outcome& o) { return traffic(p, o, true); }},
    {"busiest_link_utilisation", "",
     "Share of what the busiest link could carry during the run; collectives count with `run.collectives: flows`.",
     false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.report.links.empty() ? 0 : o.report.links.front().utilisation;
     }},
    {"critical_compute_s", "s", "Computation on the critical path.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.critical_compute.value; }},
    {"critical_transfer_s", "s", "Communication on the critical path.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.critical_transfer.value; }},
    {"critical_wait_s", "s", "Time on the critical path in which nothing of the program runs.", false,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.critical_wait.value; }},
    {"final_loss", "", "Loss of the last iteration of a real run.", false,
     [](const CompiledExperiment&, const Outcome& o) {
       return o.timeline.learnt && !o.timeline.learnt->losses.empty() ? o.timeline.learnt->losses.back() : kUnknown;
     }},
    {"drains", "", "1 if the pipeline empties between iterations, 0 otherwise.", true,
     [](const CompiledExperiment&, const Outcome& o) { return o.report.drains ? 1.0 : 0.0; }},
    {"stages", "", "Pipeline stages; replicas of a stage count once.", true,
     [](const CompiledExperiment& p, const Outcome&) { return static_cast<double>(p.plan.different_stages()); }},
    {"devices", "", "Devices that have a stage, all of each group.", true,
     [](const CompiledExperiment& p, const Outcome&) { return static_cast<double>(devices_of(p.plan).size()); }},
    {"samples", "", "Samples of an iteration.", true,
     [](const CompiledExperiment& p, const Outcome&) { return static_cast<double>(p.program.mini_batch); }},
    {"iterations", "", "Iterations of the run.", true,
     [](const CompiledExperiment& p, const Outcome&) { return static_cast<double>(p.program.iterations); }},
    {"instructions", "", "Instructions of the program.", true,
     [](const CompiledExperiment& p, const Outcome&) { return static_cast<double>(p.program.size()); }},
};

}  // namespace

std::span<const Metric> metrics() { return kMetrics; }

std::size_t metric(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kMetrics); ++i)
    if (name == kMetrics[i].name) return i;
  throw InternalError(fmt::format("no metric '{}'", name));
}

}  // namespace stagecraft
