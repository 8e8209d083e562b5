// Makes the report of a run from its Program, Timeline and Cluster.

#include <algorithm>
#include <limits>
#include <utility>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/thread_scope.hpp"
#include "sim/result/link_use.hpp"
#include "sim/result/memory.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {
namespace {

class Measurement {
 public:
  Measurement(const Program& program, const Timeline& timeline, const Cluster& cluster)
      : p_(program), t_(timeline), cluster_(cluster), worked_(program.devices, 0), warm_(worked_) {
    report_.devices.resize(p_.devices);
  }

  Report run() {
    if (!t_.instruction_times) return iterations_only();
    // The memory of a device depends on nothing else, and that of all devices takes as long as everything else.
    const MemoryHistory history(p_, t_);
    IdVector<DeviceId, MemoryPeak> peaks(p_.devices);
    run_parts(p_.size(), 1 + p_.devices, [&](int part) {
      if (part == 0) return all_but_memory();
      const DeviceId d{part - 1};
      peaks[d] = history.peak(d, cluster_);
    });
    copy_to_counterparts(p_, peaks);
    for (const DeviceId d : peaks.ids()) report_.devices[d].memory = peaks[d];
    report_.host_peaks = host_peaks(p_, t_, cluster_);
    return std::move(report_);
  }

  Report only_times() {
    run_parts(p_.size(), 2, [&](int part) { part == 0 ? times() : work(); });
    use_of_devices();
    if (p_.iterations > 0 && p_.size() > 0) summary();
    return std::move(report_);
  }

 private:
  void all_but_memory() {
    times();
    work();
    use_of_devices();
    stop_point();
    if (p_.iterations > 0 && p_.size() > 0) summary();
    links();
    critical_path();
    stop_point();
    report_.rates = device_rates(p_, report_.throughput);
    if (p_.size() > 0) classes();
    stop_point();
  }

  /// When only whole iterations were timed, everything within them is unknown: NaN.
  Report iterations_only() {
    times();
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    for (const Instruction& i : p_.instructions) report_.devices[i.device].used |= i.is_compute();
    if (report_.period.value > 0) report_.throughput = p_.samples() / report_.period.value;
    links();
    report_.instruction_times = false;
    report_.bubble = report_.fill = report_.drain = report_.steady_bubble = report_.energy.value = unknown;
    report_.critical_compute = report_.critical_transfer = report_.critical_wait = {unknown};
    for (DeviceReport& d : report_.devices) {
      if (!d.used) continue;
      d.busy = {unknown};
      d.utilisation = d.energy.value = d.memory.total.value = unknown;
      d.idle.start_up = d.idle.input = d.idle.drain = d.idle.receiver = d.idle.other = d.idle.exposed.messages = d.busy;
    }
    return std::move(report_);
  }

  /// Without a division where there is one iteration.
  int iteration_of(const Instruction& i) const { return p_.iterations == 1 ? 0 : p_.iteration_of(i); }
  double start(InstructionId i) const { return t_.start[i]; }
  double end(InstructionId i) const { return t_.end[i]; }

  /// Makespan, period and length from the last end of every iteration.
  void times() {
    std::vector<double> last(p_.iterations, 0), first(last.size(), kInfinity);
    IdVector<DeviceId, int> newest(report_.devices.size(), 0);
    report_.drains = true;
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      const int iteration = iteration_of(i);
      const std::size_t k = iteration;
      last[k] = std::max(last[k], t_.end[n]);
      if (i.is_compute() || begins_op(i)) first[k] = std::min(first[k], t_.start[n]);
      if (!i.is_compute()) continue;
      auto& seen = newest[i.device];
      report_.drains = report_.drains && iteration >= seen;
      seen = std::max(seen, iteration);
    }
    bool apart = true;
    for (std::size_t k = 1; k < last.size(); ++k) {
      apart = apart && first[k] >= last[k - 1] * (1 - 1e-12);
      last[k] = std::max(last[k], last[k - 1]);
    }
    begin_ = first.front() == kInfinity ? 0 : first.front();
    first_ = periods_ = {begin_, last.front()};
    report_.makespan = report_.period = {first_.length()};
    report_.length = {last.back() - begin_};
    if (last.size() > 1) set_period(last, apart);
  }

  /// Whether it is a collective inside an op, which may begin before the computation.
  bool begins_op(const Instruction& i) const {
    return i.kind == InstructionKind::Collective && p_.collective(i).op != 0;
  }

  /// The iterations that stand for all, and what one more costs. Simulated iterations that stand apart are alike, so
  /// the last one suffices; while the cluster changes they differ, so the mean of all after the first counts. Where
  /// iterations overlap, nothing follows the last one and the first ones still fill the pipeline, so the mean over the
  /// second half of the others counts.
  void set_period(const std::vector<double>& last, bool apart) {
    std::size_t to = last.size() - 1, from = 0;
    if (!measured() && p_.load_iterations > 1) {
      set_period_of_different(last);
      return;
    }
    if (const std::size_t every = p_.drain_every; every > 1 && last.size() >= 2 * every) {
      to = last.size() / every * every - 1;
      from = to - every;
    } else if (!measured() && apart) {
      if (cluster_.changes.empty() && cluster_.jitter.max_fraction <= 0) from = to - 1;
    } else if (!measured()) {
      if (to > 1) --to;
      from = std::min(to - 1, (to + 1) / 2);
    } else {
      report_.period = median_step(last);
      periods_ = {last.front(), last.back()};
      return;
    }
    periods_ = {last[from], last[to]};
    report_.period = {periods_.length() / static_cast<double>(to - from)};
  }

  /// Iterations with loads of their own all count, from the first on.
  void set_period_of_different(const std::vector<double>& last) {
    for (std::size_t k = 0; k < last.size(); ++k)
      report_.iterations.push_back(last[k] - (k == 0 ? begin_ : last[k - 1]));
    periods_ = {begin_, last.back()};
    report_.period = {periods_.length() / static_cast<double>(last.size())};
  }

  /// Real iterations are never alike, and the first warms up.
  bool measured() const { return t_.clock != Clock::Simulated; }
  static Seconds median_step(const std::vector<double>& last) {
    std::vector<double> steps;
    for (std::size_t k = 1; k < last.size(); ++k) steps.push_back(last[k] - last[k - 1]);
    std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
    return {steps[steps.size() / 2]};
  }

  /// What each device is busy with: its ops, and the collectives of its ops that it does not compute next to. Whether
  /// these are a part of the op or instructions of their own makes no difference.
  void work() {
    IdVector<DeviceId, double> counted(report_.devices.size(), -kInfinity);
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      const bool waits = begins_op(i) && !p_.collective(i).hidden;
      if (!i.is_compute() && !waits) continue;
      const DeviceId d = i.device;
      const double took =
          waits ? std::max(0.0, t_.end[n] - std::max(t_.start[n], counted[d])) : t_.end[n] - t_.start[n];
      if (waits) counted[d] = std::max(counted[d], t_.end[n]);
      worked_[d] += took;
      (iteration_of(i) > 0 ? warm_[d] : report_.devices[d].busy.value) += took;
      report_.devices[d].used |= i.is_compute();
    }
  }

  /// The share of the run in which devices work, and the energy that they take.
  void use_of_devices() {
    copy_to_counterparts(p_, worked_);
    copy_to_counterparts(p_, report_.devices);
    const double length = report_.length.value;
    const int copies = p_.counterparts.empty() ? p_.copies : 1;
    for (const DeviceId d : worked_.ids()) {
      DeviceReport& r = report_.devices[d];
      r.utilisation = length > 0 ? worked_[d] / length : 0;
      if (!r.used || !cluster_.devices.contains(d)) continue;
      const DeviceType& type = cluster_.type_of(d);
      const int devices = copies * (p_.group_sizes.empty() ? p_.group : p_.group_sizes[d]);
      r.energy = devices * (type.busy * Seconds{worked_[d]} + type.idle * Seconds{length - worked_[d]});
      report_.energy += r.energy;
    }
  }

  void summary() {
    double busiest = 0;
    for (const DeviceReport& r : report_.devices) busiest = std::max(busiest, r.busy.value);
    // No iteration can follow another sooner than the busiest device is through with it.
    if (p_.iterations > 1 && !measured() && p_.load_iterations == 1)
      report_.period = std::max(report_.period, Seconds{busiest});
    const double period = report_.period.value;
    if (measured() && p_.iterations > 1) busiest = *std::max_element(warm_.begin(), warm_.end()) / (p_.iterations - 1);
    if (!report_.iterations.empty()) busiest = *std::max_element(worked_.begin(), worked_.end()) / p_.iterations;
    // Where the clocks of processes differ, or some iterations were slow, a device may have more work than the measured
    // period is long: it is then never idle.
    if (period > 0) report_.steady_bubble = std::max(0.0, 1 - busiest / period);
    if (period > 0) report_.throughput = p_.samples() / period;
  }

  /// Where the time goes, of each device and as a mean over the used ones.
  void classes() {
    const TimeSpan spans[] = {whole_run(p_, t_), first_, periods_};
    std::vector<IdVector<DeviceId, IdleTimes>> idle = idle_times(p_, t_, spans);
    for (IdVector<DeviceId, IdleTimes>& of_span : idle) copy_to_counterparts(p_, of_span);
    IdVector<DeviceId, TimeClasses> times = runs_ahead() ? classes_of_all_iterations(idle[0], spans[0])
                                                         : time_classes(p_, t_, idle[2], periods_, report_.period);
    copy_to_counterparts(p_, times);
    double used = 0;
    for (const DeviceReport& r : report_.devices) used += r.used;
    for (const DeviceId d : report_.devices.ids()) {
      DeviceReport& r = report_.devices[d];
      r.idle = idle[0][d];
      if (!r.used) continue;
      r.time = times[d];
      report_.time.spent += (1 / used) * r.time.spent;
      report_.time.bubble += (1 / used) * r.time.bubble;
      report_.time.unexplained += (1 / used) * r.time.unexplained;
      if (first_.length() <= 0) continue;
      report_.fill += idle[1][d].start_up.value / (used * first_.length());
      report_.drain += idle[1][d].drain.value / (used * first_.length());
    }
    if (report_.period.value > 0) report_.bubble = report_.time.bubble / report_.period;
  }

  /// Whether a device has done all of its work before the iterations that stand for all begin: without backwards
  /// nothing holds the first stages back.
  bool runs_ahead() const {
    if (p_.iterations == 1 || measured()) return false;
    IdVector<DeviceId, double> ends(report_.devices.size(), kInfinity);
    for (const InstructionId n : p_.instructions.ids())
      if (const Instruction& i = p_.at(n); i.is_compute())
        ends[i.device] = ends[i.device] == kInfinity ? t_.end[n] : std::max(ends[i.device], t_.end[n]);
    return std::any_of(ends.begin(), ends.end(), [&](double end) { return end <= periods_.begin; });
  }

  /// The work and the exposed messages of an iteration in the mean, which may wait longer while the pipeline fills; the
  /// rest of a period is bubble.
  IdVector<DeviceId, TimeClasses> classes_of_all_iterations(const IdVector<DeviceId, IdleTimes>& idle,
                                                            const TimeSpan& run) const {
    IdVector<DeviceId, TimeClasses> times = time_classes(p_, t_, idle, run, Seconds{run.length()} / p_.iterations);
    for (TimeClasses& t : times) {
      t.bubble = {};
      if (t.total() > report_.period) t.spent = (report_.period / t.total()) * t.spent;
      t.bubble = std::max(Seconds{}, report_.period - t.total());
    }
    return times;
  }

  void links() {
    IdVector<LinkId, double> forward(cluster_.links.size(), 0), backward(forward);
    add_messages(forward, backward);
    for (const InstructionId n : p_.traffic.ids())
      if (const MemoryUse m = memory_use(p_, cluster_, n); m.link.valid()) forward[m.link] += m.bytes;
    for (const LinkId l : forward.ids()) {
      for (const bool way : {true, false}) {
        const double bytes = (way ? forward : backward)[l];
        const bool shared = cluster_.links[l].duplex != Duplex::Unshared;
        const double capacity = shared ? cluster_.links[l].bandwidth.value * report_.length.value : 0;
        if (bytes > 0) report_.links.push_back({l, way, {bytes}, capacity > 0 ? bytes / capacity : 0});
      }
    }
    std::stable_sort(report_.links.begin(), report_.links.end(),
                     [](const LinkReport& a, const LinkReport& b) { return a.utilisation > b.utilisation; });
  }

  void add_messages(IdVector<LinkId, double>& forward, IdVector<LinkId, double>& backward) const {
    const std::vector<double> traffic = bytes_on_routes(p_);
    const Router router(cluster_);
    for (std::size_t r = 0; r < traffic.size(); ++r) {
      if (traffic[r] == 0) continue;
      for (const RouteEnds& ends : p_.copies_of(p_.routes[r]))
        for (const Hop& hop : router.require(ends.from, ends.to).hops) {
          const Link& link = cluster_.links[hop.link];
          const bool one_way = link.duplex == Duplex::Half || hop.forward;
          (one_way ? forward : backward)[hop.link] += traffic[r];
        }
    }
  }

  /// Goes back from the last end, each time to the instruction that ended last among all that were waited for.
  void critical_path() {
    if (p_.size() == 0) return;
    InstructionId at{std::max_element(t_.end.begin(), t_.end.end()) - t_.end.begin()};
    while (at.valid()) {
      report_.critical_path.push_back(at);
      const InstructionId before = predecessor(at);
      const double from = before.valid() ? std::min(end(before), end(at)) : begin_;
      const double began = std::max(start(at), from);
      (p_.at(at).is_compute() ? report_.critical_compute : report_.critical_transfer) += Seconds{end(at) - began};
      report_.critical_wait += Seconds{std::max(0.0, began - from)};
      at = before;
    }
    std::reverse(report_.critical_path.begin(), report_.critical_path.end());
  }

  bool is_late(const Instruction& i) const {
    return i.kind == InstructionKind::Collective && p_.collective(i).purpose == Purpose::LateForward;
  }

  InstructionId predecessor(InstructionId at) const {
    InstructionId best;
    const auto consider = [&](InstructionId i) {
      for (const InstructionId w : p_.waits_for(i))
        if (!is_late(p_.at(w)) && (!best.valid() || end(w) > end(best))) best = w;
    };
    consider(at);
    const Instruction& i = p_.at(at);
    if (i.kind == InstructionKind::Collective) {
      const CollectiveCall& c = p_.collective(i);
      for (int m = 0; m < c.members; ++m) consider(c.member(m));
    } else if (!i.is_compute()) {
      const Transfer& t = p_.transfer(i);
      if (p_.rendezvous)
        consider(t.send), consider(t.receive);
      else if (at == t.receive && (!best.valid() || end(t.send) > end(best)))
        best = t.send;
    }
    return best;
  }

  const Program& p_;
  const Timeline& t_;
  const Cluster& cluster_;
  double begin_ = 0;
  IdVector<DeviceId, double> worked_;  ///< Seconds that each device was busy with its work.
  IdVector<DeviceId, double> warm_;    ///< The part of it after the first iteration.
  TimeSpan first_;                     ///< The first iteration.
  TimeSpan periods_;                   ///< The iterations that stand for all.
  Report report_;
};

}  // namespace

Report measure(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  return Measurement(program, timeline, cluster).run();
}

Report measure_times(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  return Measurement(program, timeline, cluster).only_times();
}

}  // namespace stagecraft
