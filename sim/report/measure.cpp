#include <algorithm>
#include <limits>
#include <utility>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/report/link_use.hpp"
#include "sim/report/memory.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

class Measurement {
 public:
  Measurement(const Program& program, const Timeline& timeline, const Cluster& cluster)
      : p_(program), t_(timeline), cluster_(cluster) {
    report_.devices.resize(p_.devices);
  }

  Report run() {
    times();
    if (!t_.instruction_times) return iterations_only();
    computing();
    stop_point();
    if (p_.iterations > 0 && p_.size() > 0) summary();
    links();
    critical_path();
    stop_point();
    report_.rates = device_rates(p_, report_.throughput);
    const IdVector<DeviceId, IdleTimes> idle = idle_times(p_, t_);
    report_.classes = time_classes(p_, t_, idle);
    for (const DeviceId d : idle.ids()) report_.devices[d].idle = idle[d];
    stop_point();
    const MemoryHistory memory(p_, t_);
    for (const DeviceId d : report_.devices.ids())
      report_.devices[d].memory = peak_of(memory.curve(d), p_, cluster_, d);
    return std::move(report_);
  }

 private:
  /// When only whole iterations were timed, everything within them is unknown: NaN.
  Report iterations_only() {
    constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
    for (const Instruction& i : p_.instructions) report_.devices[i.device].used |= i.is_compute();
    if (report_.period.value > 0) report_.throughput = p_.mini_batch / report_.period.value;
    links();
    report_.instruction_times = false;
    report_.bubble = report_.steady_bubble = report_.energy.value = unknown;
    report_.critical_compute = report_.critical_transfer = report_.critical_wait = {unknown};
    for (DeviceReport& d : report_.devices) {
      if (!d.used) continue;
      d.busy = d.exposed = {unknown};
      d.utilisation = d.energy.value = d.memory.total.value = unknown;
      d.idle = {d.busy, d.busy, d.busy, d.busy, d.busy, d.busy, d.busy};
    }
    return std::move(report_);
  }

  double start(InstructionId i) const { return t_.start[i]; }
  double end(InstructionId i) const { return t_.end[i]; }

  /// Makespan, period and length from the last end of every iteration.
  void times() {
    std::vector<double> last(p_.iterations, 0), first(last.size(), kInfinity);
    IdVector<DeviceId, int> newest(report_.devices.size(), 0);
    report_.drains = true;
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      const int iteration = p_.iteration_of(i);
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
    report_.makespan = {last.front() - begin_};
    report_.length = {last.back() - begin_};
    report_.period = last.size() < 2 ? report_.makespan : one_more(last, apart);
  }

  /// Whether it is a collective inside an op, which may begin before the computation.
  bool begins_op(const Instruction& i) const {
    return i.kind == InstructionKind::Collective && p_.collective(i).op != 0;
  }

  Seconds one_more(const std::vector<double>& last, bool apart) const {
    const std::size_t every = p_.drain_every;
    if (every > 1 && last.size() >= 2 * every) {
      const std::size_t end = last.size() / every * every - 1;
      return {(last[end] - last[end - every]) / static_cast<double>(every)};
    }
    return measured() ? median_step(last) : slope(last, apart);
  }

  /// Real iterations are never alike, and the first warms up.
  bool measured() const { return t_.clock != Clock::Simulated; }
  static Seconds median_step(const std::vector<double>& last) {
    std::vector<double> steps;
    for (std::size_t k = 1; k < last.size(); ++k) steps.push_back(last[k] - last[k - 1]);
    std::nth_element(steps.begin(), steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2), steps.end());
    return {steps[steps.size() / 2]};
  }

  /// What one more iteration costs. Iterations that stand apart are alike, so the last one suffices; while the cluster
  /// changes they differ, so the mean of all after the first counts. Where iterations overlap, nothing follows the last
  /// one and the first ones still fill the pipeline, so the mean over the second half of the others counts.
  Seconds slope(const std::vector<double>& last, bool apart) const {
    const bool alike = cluster_.changes.empty() && cluster_.jitter.max_fraction <= 0;
    const std::size_t k = last.size() - (!apart && last.size() > 2 ? 2 : 1);
    const std::size_t from = apart ? (alike ? k - 1 : 0) : std::min(k - 1, (k + 1) / 2);
    return {(last[k] - last[from]) / static_cast<double>(k - from)};
  }

  /// Work of every device, and the part of its waiting that messages under way explain.
  void computing() {
    IdVector<DeviceId, double> total(report_.devices.size(), 0), warm(total), previous(report_.devices.size(), begin_);
    inside_.assign(report_.devices.size(), 0);
    const double until = begin_ + report_.makespan.value;
    for (const InstructionId n : p_.instructions.ids()) {
      const Instruction& i = p_.at(n);
      if (!i.is_compute()) continue;
      const DeviceId d = i.device;
      total[d] += t_.end[n] - t_.start[n];
      if (p_.iteration_of(i) > 0) warm[d] += t_.end[n] - t_.start[n];
      inside_[d] += std::max(0.0, std::min(t_.end[n], until) - t_.start[n]);
      report_.devices[d].used = true;
      if (p_.iteration_of(i) == 0) {
        report_.devices[d].busy += Seconds{t_.end[n] - t_.start[n]};
        report_.devices[d].exposed += on_the_wire(n, previous[d]);
      }
      previous[d] = t_.end[n];
    }
    for (const double w : warm) warm_ = std::max(warm_, w / std::max(1, p_.iterations - 1));
    const double length = report_.length.value;
    for (const DeviceId d : total.ids()) {
      DeviceReport& r = report_.devices[d];
      r.utilisation = length > 0 ? total[d] / length : 0;
      if (!r.used || !cluster_.devices.contains(d)) continue;
      const DeviceType& type = cluster_.type_of(d);
      const int devices = p_.group_sizes.empty() ? p_.group : p_.group_sizes[d];
      r.energy = devices * (type.busy * Seconds{total[d]} + type.idle * Seconds{length - total[d]});
      report_.energy += r.energy;
    }
  }

  /// How long any message that instruction n waits for is under way between `from` and its start.
  Seconds on_the_wire(InstructionId n, double from) {
    spans_.clear();
    for (const InstructionId w : p_.waits_for(n)) {
      const Instruction& i = p_.at(w);
      if (i.is_compute()) continue;
      const bool received = i.kind == InstructionKind::Receive;
      const InstructionId begins = received ? p_.transfer(i).send : w;
      spans_.emplace_back(std::max(start(begins), from), std::min(end(w), t_.start[n]));
    }
    std::sort(spans_.begin(), spans_.end());
    double total = 0;
    for (const auto& [begins, ends] : spans_) {
      total += std::max(0.0, ends - std::max(begins, from));
      from = std::max(from, ends);
    }
    return {total};
  }

  void summary() {
    double busy = 0, busiest = 0, used = 0;
    for (const DeviceId d : report_.devices.ids()) {
      const DeviceReport& r = report_.devices[d];
      used += r.used;
      busy += report_.drains ? r.busy.value : inside_[d];
      busiest = std::max(busiest, r.busy.value);
    }
    // No iteration can follow another sooner than the busiest device is through with it.
    if (p_.iterations > 1 && !measured()) report_.period = std::max(report_.period, Seconds{busiest});
    const double makespan = report_.makespan.value, period = report_.period.value;
    if (makespan > 0) report_.bubble = 1 - busy / (makespan * used);
    if (measured() && p_.iterations > 1) busiest = warm_;
    if (period > 0) report_.steady_bubble = 1 - busiest / period;
    if (period > 0) report_.throughput = p_.mini_batch / period;
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
    std::vector<double> traffic(p_.routes.size(), 0);
    for (const Transfer& t : p_.transfers) traffic[p_.shape(t).route] += static_cast<double>(p_.bytes(t));
    for (const Collective& c : p_.collectives)
      for (const CollectivePhase& phase : p_.phases_of(c))
        for (int k = 0; k < phase.routes; ++k) traffic[phase.first_route + k] += static_cast<double>(c.bytes(phase));
    const Router router(cluster_);
    for (std::size_t r = 0; r < traffic.size(); ++r) {
      if (traffic[r] == 0) continue;
      for (const Hop& hop : router.require(p_.routes[r].from, p_.routes[r].to).hops) {
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

  InstructionId predecessor(InstructionId at) const {
    InstructionId best;
    const auto consider = [&](InstructionId i) {
      for (const InstructionId w : p_.waits_for(i))
        if (!best.valid() || end(w) > end(best)) best = w;
    };
    consider(at);
    const Instruction& i = p_.at(at);
    if (i.kind == InstructionKind::Collective) {
      const Collective& c = p_.collective(i);
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
  double warm_ = 0;                    ///< Work of the busiest device in an iteration, without the first iteration.
  IdVector<DeviceId, double> inside_;  ///< Work within the makespan, of any iteration.
  std::vector<std::pair<double, double>> spans_;
  Report report_;
};

}  // namespace

Report measure(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  return Measurement(program, timeline, cluster).run();
}

}  // namespace stagecraft
