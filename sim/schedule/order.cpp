#include <fmt/format.h>

#include "sim/plan/overlap.hpp"
#include "sim/schedule/dispatcher.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule/wait_graph.hpp"

namespace stagecraft {
namespace {

/// Runs the rows: an op as soon as its inputs are there, an update as soon as all devices have reached its barrier.
class OrderWalk {
 public:
  OrderWalk(const Schedule& schedule, const Plan& plan, int iterations)
      : schedule_(schedule),
        plan_(plan),
        barriers_(plan),
        edges_(plan),
        index_(plan, iterations),
        dispatcher_(schedule.device_rows(), *this) {
    forward_missing_.resize(index_.size());
    backward_missing_.resize(index_.size());
    arrived_.assign(barriers_.all().size(), 0);
    released_.assign(barriers_.all().size(), 0);
    for (const StageId s : plan.stages.ids()) count_inputs(s, iterations);
  }

  GlobalOrder run() {
    order_.devices.reserve(schedule_.op_count());
    if (!dispatcher_.run()) explain();
    return std::move(order_);
  }

  bool ready(int d, std::size_t i) const {
    const Op& op = row(d)[i];
    if (op.kind == OpKind::Update)
      return !barriers_.delays(op.stage) || released_[barriers_.index(op.stage)] > op.micro;
    if (op.kind != OpKind::Forward && !passes_gradient(op.kind)) return true;
    const std::size_t piece = index_.of(op.stage, op.micro, replica_on(plan_.stage(op.stage), DeviceId{d}));
    return (op.kind == OpKind::Forward ? forward_missing_ : backward_missing_)[piece] == 0;
  }

  /// An update waits until every device of its barrier has reached its own.
  void arrive(int d, const Op& op) {
    if (op.kind != OpKind::Update || ready(d, dispatcher_.head(d))) return;
    const int barrier = barriers_.index(op.stage);
    const auto& devices = barriers_.at(op.stage).devices;
    if (++arrived_[barrier] < std::ssize(devices)) return;
    arrived_[barrier] = 0;
    released_[barrier] = op.micro + 1;
    for (const DeviceId other : devices)
      if (other.value != d) dispatcher_.wake(other.value);
  }

  void take(int d, std::size_t first, std::size_t end) {
    for (std::size_t i = first; i < end; ++i) {
      order_.devices.push_back(DeviceId{d});
      release(d, row(d)[i]);
    }
  }

 private:
  const std::vector<Op>& row(int d) const { return schedule_.row(DeviceId{d}); }

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

  /// Whether two updates wait at the same barrier.
  bool joins(const Op& update, const Op& o) const {
    return o.kind == OpKind::Update && o.micro == update.micro &&
           barriers_.index(o.stage) == barriers_.index(update.stage);
  }

  void release(int d, const Op& op) {
    const bool forward = op.kind == OpKind::Forward;
    if (!forward && !passes_gradient(op.kind)) return;
    const Stage& stage = plan_.stage(op.stage);
    const StageId s = op.stage;
    auto& missing = forward ? forward_missing_ : backward_missing_;
    for (const int e : forward ? edges_.out[s] : edges_.in[s]) {
      const StageEdge& edge = plan_.edges[e];
      const StageId other = forward ? edge.to : edge.from;
      for_each_overlap(stage, op.micro, replica_on(stage, DeviceId{d}), plan_.stage(other), [&](int m, int r, int) {
        if (--missing[index_.of(other, m, r)] == 0) dispatcher_.wake(plan_.stage(other).devices()[r].value);
      });
    }
  }

  /// What the next op of a device waits for: another device and the index of an op there that has not run.
  struct Wait {
    int device = -1;
    std::size_t index = 0;
  };
  std::vector<Wait> waits_of(int d) const {
    std::vector<Wait> waits;
    for (std::size_t i = dispatcher_.head(d); i < row(d).size(); ++i) {
      const Op& op = row(d)[i];
      const int replica = replica_on(plan_.stage(op.stage), DeviceId{d});
      const auto look = [&](int device, auto&& matches) {
        for (std::size_t j = dispatcher_.head(device); j < row(device).size(); ++j)
          if (matches(row(device)[j])) return waits.push_back({device, j});
      };
      if (!ready(d, i) && op.kind == OpKind::Update)
        for (const DeviceId other : barriers_.at(op.stage).devices)
          if (other.value != d && !joins(op, row(other.value)[dispatcher_.head(other.value)]))
            look(other.value, [&](const Op& o) { return joins(op, o); });
      if (!ready(d, i) && op.kind != OpKind::Update) {
        const bool forward = op.kind == OpKind::Forward;
        const StageId s = op.stage;
        for (const int e : forward ? edges_.in[s] : edges_.out[s]) {
          const StageEdge& edge = plan_.edges[e];
          const StageId other = forward ? edge.from : edge.to;
          for_each_overlap(plan_.stage(op.stage), op.micro, replica, plan_.stage(other), [&](int m, int r, int) {
            look(plan_.stage(other).devices()[r].value, [&](const Op& o) {
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

  void explain() {
    WaitGraph waits(schedule_.device_count());
    for (int d = 0; d < waits.size(); ++d)
      if (!dispatcher_.ended(d))
        for (const Wait& w : waits_of(d)) waits.add(d, w.device, reason_of(d, w));
    const auto cycle = waits.shortest_cycle();
    for (const WaitGraph::Wait& w : cycle)
      order_.blocked.emplace_back(DeviceId{w.node}, static_cast<int>(dispatcher_.head(w.node)));
    order_.cycle = joined_reasons(cycle);
  }

  std::string reason_of(int d, const Wait& w) const {
    const std::size_t head = dispatcher_.head(w.device);
    std::string reason = fmt::format("{} (rank {}) waits for {} (rank {})", to_text(row(d)[dispatcher_.head(d)]), d,
                                     to_text(row(w.device)[w.index]), w.device);
    if (w.index != head) reason += ", which comes behind " + to_text(row(w.device)[head]);
    return reason;
  }

  const Schedule& schedule_;
  const Plan& plan_;
  UpdateBarriers barriers_;
  EdgeLists edges_;
  PieceIndex index_;
  Dispatcher<Op, OrderWalk> dispatcher_;
  GlobalOrder order_;
  std::vector<std::int32_t> forward_missing_, backward_missing_;
  std::vector<int> arrived_, released_;  ///< [barrier]: devices that wait there, and updates that may run.
};

}  // namespace

GlobalOrder global_order(const Schedule& schedule, const Plan& plan, int iterations) {
  return OrderWalk(schedule, plan, iterations).run();
}

}  // namespace stagecraft
