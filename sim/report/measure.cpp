#include <algorithm>
#include <cmath>

#include "sim/report/memory.hpp"
#include "sim/report/report.hpp"

namespace stagecraft {
namespace {

class Measurement {
 public:
  Measurement(const Program& program, const Timeline& timeline, const Cluster& cluster)
      : p_(program), t_(timeline), cluster_(cluster) {
    report_.devices.resize(static_cast<std::size_t>(p_.devices));
  }

  Report run() {
    times();
    computing();
    if (p_.iterations > 0 && p_.size() > 0) summary();
    links();
    critical_path();
    const MemoryHistory memory(p_, t_);
    for (int d = 0; d < p_.devices; ++d)
      report_.devices[static_cast<std::size_t>(d)].memory =
          peak_of(memory.curve(DeviceId{d}), p_, cluster_, DeviceId{d});
    return std::move(report_);
  }

 private:
  double start(InstructionId i) const { return t_.start[static_cast<std::size_t>(i)]; }
  double end(InstructionId i) const { return t_.end[static_cast<std::size_t>(i)]; }

  /// Makespan, period and length from the last end of every iteration.
  void times() {
    std::vector<double> last(static_cast<std::size_t>(p_.iterations), 0);
    std::vector<int> newest(report_.devices.size(), 0);
    double first = p_.size() ? t_.end[0] : 0;
    bool drains = true;
    for (std::size_t i = 0; i < p_.size(); ++i) {
      const Instruction& instruction = p_.instructions[i];
      const int iteration = p_.iteration_of(instruction);
      auto& end_of_iteration = last[static_cast<std::size_t>(iteration)];
      end_of_iteration = std::max(end_of_iteration, t_.end[i]);
      if (!instruction.is_compute()) continue;
      first = std::min(first, t_.start[i]);
      auto& seen = newest[static_cast<std::size_t>(instruction.device)];
      drains = drains && iteration >= seen;
      seen = std::max(seen, iteration);
    }
    for (std::size_t i = 1; i < last.size(); ++i) last[i] = std::max(last[i], last[i - 1]);
    report_.makespan = {last.front() - first};
    report_.length = {last.back() - first};
    // Where iterations run into each other, the last one has nothing behind it in its way: the one before counts.
    const std::size_t k = last.size() - (!drains && last.size() > 2 ? 2 : 1);
    report_.period = k > 0 ? Seconds{last[k] - last[k - 1]} : report_.makespan;
    begin_ = first;
  }

  /// Work of every device, and the part of its waiting that a transfer under way explains.
  void computing() {
    std::vector<double> total(report_.devices.size(), 0), previous(report_.devices.size(), begin_);
    for (std::size_t n = 0; n < p_.size(); ++n) {
      const Instruction& i = p_.instructions[n];
      if (!i.is_compute()) continue;
      const auto d = static_cast<std::size_t>(i.device);
      total[d] += t_.end[n] - t_.start[n];
      report_.devices[d].used = true;
      if (p_.iteration_of(i) == 0) report_.devices[d].busy += Seconds{t_.end[n] - t_.start[n]};
      InstructionId latest;
      for (const InstructionId w : p_.waits_for(InstructionId{static_cast<std::int64_t>(n)}))
        if (!latest.valid() || end(w) > end(latest)) latest = w;
      if (latest.valid() && !p_.at(latest).is_compute())
        report_.devices[d].exposed += Seconds{std::max(0.0, end(latest) - std::max(previous[d], start(latest)))};
      previous[d] = t_.end[n];
    }
    const double length = report_.length.value;
    for (std::size_t d = 0; d < total.size(); ++d) {
      DeviceReport& r = report_.devices[d];
      r.utilisation = length > 0 ? total[d] / length : 0;
      if (!r.used || d >= cluster_.devices.size()) continue;
      const DeviceType& type = cluster_.type_of(DeviceId{static_cast<std::int64_t>(d)});
      r.energy = type.busy * Seconds{total[d]} + type.idle * Seconds{length - total[d]};
      report_.energy += r.energy;
    }
  }

  void summary() {
    double busy = 0, most = 0, used = 0;
    for (const DeviceReport& d : report_.devices) {
      used += d.used;
      busy += d.busy.value;
      most = std::max(most, d.busy.value);
    }
    const double makespan = report_.makespan.value, period = report_.period.value;
    if (makespan > 0) report_.bubble = 1 - busy / (makespan * used);
    if (period > 0) report_.steady_bubble = 1 - most / period;
    if (period > 0) report_.throughput = p_.mini_batch / period;
  }

  void links() {
    std::vector<double> traffic(p_.routes.size(), 0);
    for (const Transfer& t : p_.transfers) traffic[static_cast<std::size_t>(t.route)] += static_cast<double>(t.bytes);
    for (const Collective& c : p_.collectives)
      for (int m = 0; m < c.members; ++m)
        traffic[static_cast<std::size_t>(c.first_route + m)] +=
            std::round(2.0 * (c.members - 1) / c.members * static_cast<double>(c.bytes));
    const Router router(cluster_);
    std::vector<double> forward(cluster_.links.size(), 0), backward(forward);
    for (std::size_t r = 0; r < traffic.size(); ++r) {
      if (traffic[r] == 0) continue;
      for (const Hop& hop : router.require(p_.routes[r].from, p_.routes[r].to).hops) {
        const Link& link = cluster_.links[static_cast<std::size_t>(hop.link)];
        const bool one_way = link.duplex == Duplex::Half || hop.forward;
        (one_way ? forward : backward)[static_cast<std::size_t>(hop.link)] += traffic[r];
      }
    }
    for (std::size_t l = 0; l < forward.size(); ++l) {
      for (const bool way : {true, false}) {
        const double bytes = (way ? forward : backward)[l];
        const double capacity = cluster_.links[l].bandwidth.value * report_.length.value;
        if (bytes > 0)
          report_.links.push_back(
              {LinkId{static_cast<std::int64_t>(l)}, way, {bytes}, capacity > 0 ? bytes / capacity : 0});
      }
    }
    std::stable_sort(report_.links.begin(), report_.links.end(),
                     [](const LinkReport& a, const LinkReport& b) { return a.utilisation > b.utilisation; });
  }

  /// From the last end back: each time to what ended last among everything waited for.
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
    const auto look = [&](InstructionId i) {
      for (const InstructionId w : p_.waits_for(i))
        if (!best.valid() || end(w) > end(best)) best = w;
    };
    look(at);
    const Instruction& i = p_.at(at);
    if (i.kind == InstructionKind::AllReduce) {
      const Collective& c = p_.collectives[static_cast<std::size_t>(i.link)];
      for (int m = 0; m < c.members; ++m) look(InstructionId{static_cast<std::int64_t>(c.first) + m});
    } else if (!i.is_compute()) {
      const Transfer& t = p_.transfers[static_cast<std::size_t>(i.link)];
      if (p_.rendezvous)
        look(t.send), look(t.receive);
      else if (at == t.receive && (!best.valid() || end(t.send) > end(best)))
        best = t.send;
    }
    return best;
  }

  const Program& p_;
  const Timeline& t_;
  const Cluster& cluster_;
  double begin_ = 0;
  Report report_;
};

}  // namespace

Report measure(const Program& program, const Timeline& timeline, const Cluster& cluster) {
  return Measurement(program, timeline, cluster).run();
}

}  // namespace stagecraft
