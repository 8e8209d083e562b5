#include <fmt/format.h>

#include "sim/plan/gradient_groups.hpp"
#include "sim/plan/overlap.hpp"
#include "sim/schedule/turns.hpp"
#include "sim/schedule/validate.hpp"

namespace stagecraft {
namespace {

/// Runs the rows with every op taking one turn.
class Walk {
 public:
  Walk(const Schedule& schedule, const Plan& plan, int iterations)
      : schedule_(schedule),
        plan_(plan),
        groups_(plan),
        edges_(plan),
        index_(plan, iterations),
        turns_(schedule.devices.size()) {
    forward_missing_.resize(index_.size());
    backward_missing_.resize(index_.size());
    head_.assign(schedule.devices.size(), 0);
    blocked_.assign(schedule.devices.size(), false);
    arrived_.assign(plan.stages.size(), 0);
    released_.assign(plan.stages.size(), 0);
    for (int s = 0; s < plan.stage_count(); ++s) count_inputs(StageId{s}, iterations);
  }

  GlobalOrder run() {
    GlobalOrder order;
    order.devices.reserve(schedule_.op_count());
    while (turns_.pass([&](int d) { step(d, order); })) {
    }
    for (std::size_t d = 0; d < head_.size(); ++d)
      if (head_[d] < schedule_.devices[d].size()) return explain(std::move(order));
    return order;
  }

 private:
  const std::vector<Op>& row(int d) const { return schedule_.devices[d]; }

  void count_inputs(StageId s, int iterations) {
    const Stage& stage = plan_.stage(s);
    const auto count = [&](const std::vector<int>& list, bool upstream, int m, int r) {
      int n = 0;
      for (const int e : list) {
        const StageEdge& edge = plan_.edges[e];
        for_each_overlap(stage, m, r, plan_.stage(upstream ? edge.from : edge.to), [&](int, int, int) { ++n; });
      }
      return n;
    };
    for (int m = 0; m < plan_.micro_batches(s) * iterations; ++m) {
      const ReplicaRange own = replicas_of(stage, m);
      for (int r = own.first; r < own.end; ++r) {
        forward_missing_[index_.of(s, m, r)] = count(edges_.in[s], true, m, r);
        backward_missing_[index_.of(s, m, r)] = count(edges_.out[s], false, m, r);
      }
    }
  }

  bool ready(int d, std::size_t i) const {
    const Op& op = row(d)[i];
    if (op.kind == OpKind::Update) return !groups_.waits(op.stage) || released_[groups_.round(op.stage)] > op.micro;
    if (op.kind != OpKind::Forward && !passes_gradient(op.kind)) return true;
    const std::size_t piece = index_.of(op.stage, op.micro, replica_on(plan_.stage(op.stage), DeviceId{d}));
    return (op.kind == OpKind::Forward ? forward_missing_ : backward_missing_)[piece] == 0;
  }

  bool group_ready(int d) const {
    std::size_t i = head_[d];
    for (;; ++i) {
      if (!ready(d, i)) return false;
      if (!row(d)[i].fused || i + 1 == row(d).size()) return true;
    }
  }

  void step(int d, GlobalOrder& order) {
    auto& head = head_[d];
    if (head == row(d).size()) return;
    if (row(d)[head].kind == OpKind::Update && !ready(d, head)) arrive(d, row(d)[head]);
    if (!group_ready(d)) {
      blocked_[d] = true;
      return;
    }
    for (bool more = true; more && head < row(d).size(); ++head) {
      more = row(d)[head].fused;
      order.devices.push_back(DeviceId{d});
      release(d, row(d)[head]);
    }
    turns_.later(d);
  }

  /// An update waits until every device of its round has come to its own: their gradients are reduced together.
  void arrive(int d, const Op& op) {
    const auto s = static_cast<std::size_t>(groups_.round(op.stage));
    const auto& devices = groups_.round_devices(op.stage);
    if (blocked_[d] || ++arrived_[s] < static_cast<int>(devices.size())) return;
    arrived_[s] = 0;
    released_[s] = op.micro + 1;
    for (const DeviceId other : devices)
      if (other != d) wake(other, d);
  }

  bool joins(const Op& update, const Op& o) const {
    return o.kind == OpKind::Update && o.micro == update.micro && groups_.round(o.stage) == groups_.round(update.stage);
  }

  void wake(int d, int current) {
    if (!blocked_[d] || !group_ready(d)) return;
    blocked_[d] = false;
    turns_.wake(d, current);
  }

  void release(int d, const Op& op) {
    const bool forward = op.kind == OpKind::Forward;
    if (!forward && !passes_gradient(op.kind)) return;
    const Stage& stage = plan_.stage(op.stage);
    const auto s = static_cast<std::size_t>(op.stage);
    auto& missing = forward ? forward_missing_ : backward_missing_;
    for (const int e : forward ? edges_.out[s] : edges_.in[s]) {
      const StageEdge& edge = plan_.edges[e];
      const StageId other = forward ? edge.to : edge.from;
      for_each_overlap(stage, op.micro, replica_on(stage, DeviceId{d}), plan_.stage(other), [&](int m, int r, int) {
        if (--missing[index_.of(other, m, r)] == 0) wake(plan_.stage(other).devices[r], d);
      });
    }
  }

  /// What the head of a device waits for: the device and the index of the first op that has not run.
  struct Wait {
    int device = -1;
    std::size_t index = 0;
  };
  std::vector<Wait> waits_of(int d) const {
    std::vector<Wait> waits;
    for (std::size_t i = head_[d]; i < row(d).size(); ++i) {
      const Op& op = row(d)[i];
      const int replica = replica_on(plan_.stage(op.stage), DeviceId{d});
      const auto look = [&](int device, auto&& matches) {
        for (std::size_t j = head_[device]; j < row(device).size(); ++j)
          if (matches(row(device)[j])) return waits.push_back({device, j});
      };
      if (!ready(d, i) && op.kind == OpKind::Update)
        for (const DeviceId other : groups_.round_devices(op.stage))
          if (other != d && !joins(op, row(other)[head_[other]]))
            look(other, [&](const Op& o) { return joins(op, o); });
      if (!ready(d, i) && op.kind != OpKind::Update) {
        const bool forward = op.kind == OpKind::Forward;
        const auto s = static_cast<std::size_t>(op.stage);
        for (const int e : forward ? edges_.in[s] : edges_.out[s]) {
          const StageEdge& edge = plan_.edges[e];
          const StageId other = forward ? edge.from : edge.to;
          for_each_overlap(plan_.stage(op.stage), op.micro, replica, plan_.stage(other), [&](int m, int r, int) {
            look(plan_.stage(other).devices[r], [&](const Op& o) {
              return o.stage == other && o.micro == m &&
                     (forward ? o.kind == OpKind::Forward : passes_gradient(o.kind));
            });
          });
        }
      }
      if (!op.fused) break;
    }
    return waits;
  }

  GlobalOrder explain(GlobalOrder order) const {
    Digraph graph(static_cast<int>(head_.size()));
    for (int d = 0; d < graph.size(); ++d)
      if (head_[d] < row(d).size())
        for (const Wait& w : waits_of(d)) graph.add(d, w.device);
    const auto cycle = shortest_cycle(graph);
    STAGECRAFT_CHECK(!cycle.empty());
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      const int d = cycle[i], other = cycle[(i + 1) % cycle.size()];
      const std::size_t at = head_[d];
      order.blocked.emplace_back(DeviceId{d}, static_cast<int>(at));
      for (const Wait& w : waits_of(d)) {
        if (w.device != other) continue;
        const std::size_t head = head_[other];
        order.cycle += fmt::format("{}{} (rank {}) waits for {} (rank {})", order.cycle.empty() ? "" : "; ",
                                   to_text(row(d)[at]), d, to_text(row(other)[w.index]), other);
        if (w.index != head) order.cycle += ", which comes behind " + to_text(row(other)[head]);
        break;
      }
    }
    return order;
  }

  const Schedule& schedule_;
  const Plan& plan_;
  GradientGroups groups_;
  EdgeLists edges_;
  PieceIndex index_;
  Turns turns_;
  std::vector<std::int32_t> forward_missing_, backward_missing_;
  std::vector<std::size_t> head_;
  std::vector<bool> blocked_;
  std::vector<int> arrived_, released_;  ///< Of each round: devices at an update, and updates that may run.
};

}  // namespace

GlobalOrder global_order(const Schedule& schedule, const Plan& plan, int iterations) {
  return Walk(schedule, plan, iterations).run();
}

}  // namespace stagecraft
