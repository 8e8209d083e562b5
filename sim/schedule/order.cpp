// One order of all ops of a schedule that no wait contradicts, in which lowering writes the program, or the shortest
// cycle of ops that wait for each other.

#include <fmt/core.h>

#include "sim/plan/overlap.hpp"
#include "sim/schedule/dispatcher.hpp"
#include "sim/schedule/validate.hpp"
#include "sim/schedule/vocabulary_progress.hpp"
#include "sim/schedule/wait_graph.hpp"

namespace stagecraft {
namespace {

/// Runs the rows: an op as soon as its inputs are there, an update as soon as all devices have reached its barrier.
/// Rows are numbered by stage, so that no tie is broken by the order in which the cluster lists its devices.
class OrderWalk {
 public:
  OrderWalk(const Schedule& schedule, const Plan& plan, int iterations, const std::vector<std::vector<DeviceId>>& joint)
      : schedule_(schedule),
        plan_(plan),
        barriers_(plan),
        edges_(plan),
        index_(plan, iterations),
        vocabulary_(schedule, plan, iterations),
        devices_(devices_by_stage(plan, schedule.device_count())),
        dispatcher_(rows(), *this) {
    row_of_.resize(devices_.size());
    for (int r = 0; r < std::ssize(devices_); ++r) row_of_[devices_[r]] = r;
    forward_missing_.resize(index_.size());
    backward_missing_.resize(index_.size());
    arrived_.assign(barriers_.list().size(), 0);
    released_.assign(barriers_.list().size(), 0);
    for (const StageId s : plan.stages.ids()) count_inputs(s, iterations);
    set_of_.assign(devices_.size(), -1);
    begun_.assign(joint.size(), 0);
    ready_rows_.assign(joint.size(), {});
    for (const std::vector<DeviceId>& set : joint) {
      std::vector<int>& rows = sets_.emplace_back();
      for (const DeviceId d : set) {
        rows.push_back(row_of_[d]);
        set_of_[row_of_[d]] = static_cast<int>(std::ssize(sets_)) - 1;
      }
    }
  }

  GlobalOrder run() {
    order_.devices.reserve(schedule_.op_count());
    if (!dispatcher_.run()) explain();
    return std::move(order_);
  }

  bool ready(int r, std::size_t i) const { return has_inputs(r, i) && others_are_ready(r, i); }

  bool has_inputs(int r, std::size_t i) const {
    const Op& op = row(r)[i];
    if (vocabulary_.is_used() && !vocabulary_.allows(op, replica_on(plan_.stage(op.stage), devices_[r]))) return false;
    if (op.kind == OpKind::Update) return is_released(op);
    if (op.kind != OpKind::Forward && !passes_gradient(op.kind)) return true;
    const std::size_t piece = index_.index(op.stage, op.micro, replica_on(plan_.stage(op.stage), devices_[r]));
    return (op.kind == OpKind::Forward ? forward_missing_ : backward_missing_)[piece] == 0;
  }

  /// An update waits until every device of its barrier has reached its own.
  void arrive(int r, const Op& op) {
    if (op.kind != OpKind::Update || is_released(op)) return;
    const int barrier = barriers_.index(op.stage);
    const auto& devices = barriers_.at(op.stage).devices;
    if (++arrived_[barrier] < std::ssize(devices)) return;
    arrived_[barrier] = 0;
    released_[barrier] = op.micro + 1;
    for (const DeviceId other : devices)
      if (row_of_[other] != r) dispatcher_.wake(row_of_[other]);
  }

  void take(int r, std::size_t first, std::size_t end) {
    if (const int set = set_of_[r]; set >= 0 && begun_[set] < end) {
      begun_[set] = end;
      for (const int other : sets_[set])
        if (other != r) dispatcher_.wake(other);
    }
    for (std::size_t i = first; i < end; ++i) {
      order_.devices.push_back(devices_[r]);
      release(devices_[r], row(r)[i]);
    }
  }

 private:
  bool is_released(const Op& update) const {
    return !barriers_.delays(update.stage) || released_[barriers_.index(update.stage)] > update.micro;
  }

  /// Whether the devices that begin this op with it have begun, or are at it with all inputs.
  bool others_are_ready(int r, std::size_t i) const {
    const int set = set_of_[r];
    if (set < 0 || begun_[set] > i) return true;
    // Rows stay at an op, with their inputs, until the set begins it, so each is looked at until it is ready once.
    auto& [head, next] = ready_rows_[set];
    if (head != dispatcher_.head(r)) head = dispatcher_.head(r), next = 0;
    while (next < sets_[set].size() && is_at(sets_[set][next], head)) ++next;
    return next == sets_[set].size();
  }

  /// Whether a row is at the ops from this index on that run as one, and they have their inputs.
  bool is_at(int r, std::size_t head) const {
    if (dispatcher_.head(r) != head) return false;
    for (std::size_t i = head;; ++i) {
      if (!has_inputs(r, i)) return false;
      if (!row(r)[i].fused || i + 1 == row(r).size()) return true;
    }
  }

  const std::vector<Op>& row(int r) const { return schedule_.row(devices_[r]); }
  std::vector<std::span<const Op>> rows() const {
    std::vector<std::span<const Op>> rows;
    for (const DeviceId d : devices_) rows.emplace_back(schedule_.row(d));
    return rows;
  }

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
      const ReplicaRange replicas = replicas_of(stage, m);
      for (int r = replicas.first; r < replicas.end; ++r) {
        forward_missing_[index_.index(s, m, r)] = count(edges_.in[s], true, m, r);
        backward_missing_[index_.index(s, m, r)] = count(edges_.out[s], false, m, r);
      }
    }
  }

  const Op& next(DeviceId d) const { return schedule_.row(d)[dispatcher_.head(row_of_[d])]; }

  /// Whether two updates wait at the same barrier.
  bool joins(const Op& update, const Op& o) const {
    return o.kind == OpKind::Update && o.micro == update.micro &&
           barriers_.index(o.stage) == barriers_.index(update.stage);
  }

  /// Wakes the ranks that wait for the last one to run its part of the scores, or what comes before an embedding.
  void meet(DeviceId device, const Op& op) {
    if (!vocabulary_.add(op, replica_on(plan_.stage(op.stage), device))) return;
    for (const Stage& stage : plan_.stages)
      for (const DeviceId other : stage.leaders)
        if (other != device) dispatcher_.wake(row_of_[other]);
  }

  void release(DeviceId device, const Op& op) {
    if (vocabulary_.is_used()) meet(device, op);
    const bool forward = op.kind == OpKind::Forward;
    if (!forward && !passes_gradient(op.kind)) return;
    const Stage& stage = plan_.stage(op.stage);
    const StageId s = op.stage;
    auto& missing = forward ? forward_missing_ : backward_missing_;
    for (const int e : forward ? edges_.out[s] : edges_.in[s]) {
      const StageEdge& edge = plan_.edges[e];
      const StageId other = forward ? edge.to : edge.from;
      for_each_overlap(stage, op.micro, replica_on(stage, device), plan_.stage(other), [&](int m, int r, int) {
        if (--missing[index_.index(other, m, r)] == 0) dispatcher_.wake(row_of_[plan_.stage(other).leaders[r]]);
      });
    }
  }

  /// What the next op of a row waits for: another row and the index of an op there that has not run.
  struct Wait {
    int row = -1;
    std::size_t index = 0;
  };
  std::vector<Wait> waits_of(int waiting) const {
    std::vector<Wait> waits;
    for (std::size_t i = dispatcher_.head(waiting); i < row(waiting).size(); ++i) {
      const Op& op = row(waiting)[i];
      const int replica = replica_on(plan_.stage(op.stage), devices_[waiting]);
      const auto add_first_match = [&](DeviceId device, auto&& matches) {
        const int other = row_of_[device];
        for (std::size_t j = dispatcher_.head(other); j < row(other).size(); ++j)
          if (matches(row(other)[j])) return waits.push_back({other, j});
      };
      if (op.kind == OpKind::Update && !is_released(op))
        for (const DeviceId other : barriers_.at(op.stage).devices)
          if (other != devices_[waiting] && !joins(op, next(other)))
            add_first_match(other, [&](const Op& o) { return joins(op, o); });
      if (const std::optional<OpKind> need = vocabulary_.need(op);
          need && !vocabulary_.is_complete(*need, op.micro, replica))
        for (const Stage& stage : plan_.stages)
          add_first_match(stage.leaders[replica], [&](const Op& o) {
            return o.kind == *need && o.micro == op.micro &&
                   (o.kind != OpKind::Forward || o.stage.value == plan_.stage_count() - 1);
          });
      if (!has_inputs(waiting, i) && (op.kind == OpKind::Forward || passes_gradient(op.kind))) {
        const bool forward = op.kind == OpKind::Forward;
        const StageId s = op.stage;
        for (const int e : forward ? edges_.in[s] : edges_.out[s]) {
          const StageEdge& edge = plan_.edges[e];
          const StageId other = forward ? edge.from : edge.to;
          for_each_overlap(plan_.stage(op.stage), op.micro, replica, plan_.stage(other), [&](int m, int r, int) {
            add_first_match(plan_.stage(other).leaders[r], [&](const Op& o) {
              return o.stage == other && o.micro == m &&
                     (forward ? o.kind == OpKind::Forward : passes_gradient(o.kind));
            });
          });
        }
      }
      if (const int set = set_of_[waiting]; set >= 0 && has_inputs(waiting, i) && !others_are_ready(waiting, i))
        for (const int other : sets_[set])
          if (other != waiting && dispatcher_.head(other) < i) waits.push_back({other, i});
      if (!op.fused) break;
    }
    return waits;
  }

  void explain() {
    WaitGraph waits(schedule_.device_count());
    for (int r = 0; r < waits.size(); ++r)
      if (!dispatcher_.ended(r))
        for (const Wait& w : waits_of(r)) waits.add(r, w.row, reason_of(r, w));
    const auto cycle = waits.shortest_cycle();
    for (const WaitGraph::Wait& w : cycle)
      order_.blocked.emplace_back(devices_[w.node], static_cast<int>(dispatcher_.head(w.node)));
    order_.cycle = joined_reasons(cycle);
  }

  std::string reason_of(int waiting, const Wait& w) const {
    const std::size_t head = dispatcher_.head(w.row);
    std::string reason =
        fmt::format("{} (rank {}) waits for {} (rank {})", to_text(row(waiting)[dispatcher_.head(waiting)]),
                    devices_[waiting].value, to_text(row(w.row)[w.index]), devices_[w.row].value);
    if (w.index != head) reason += ", which comes after " + to_text(row(w.row)[head]);
    return reason;
  }

  const Schedule& schedule_;
  const Plan& plan_;
  UpdateBarriers barriers_;
  EdgeLists edges_;
  PieceIndex index_;
  VocabularyProgress vocabulary_;
  std::vector<DeviceId> devices_;  ///< [row]
  IdVector<DeviceId, int> row_of_;
  Dispatcher<Op, OrderWalk> dispatcher_;
  GlobalOrder order_;
  std::vector<std::int32_t> forward_missing_, backward_missing_;
  std::vector<std::vector<int>> sets_;  ///< Rows that begin each op together.
  std::vector<int> set_of_;             ///< [row]; -1: in none.
  mutable std::vector<std::pair<std::size_t, std::size_t>>
      ready_rows_;                       ///< [set]: the op, and its first rows that are ready.
  std::vector<std::size_t> begun_;       ///< [set]: the index after the ops that one of its rows has begun.
  std::vector<int> arrived_, released_;  ///< [barrier]: devices that wait there, and updates that may run.
};

}  // namespace

GlobalOrder global_order(const Schedule& schedule, const Plan& plan, int iterations,
                         const std::vector<std::vector<DeviceId>>& joint) {
  return OrderWalk(schedule, plan, iterations, joint).run();
}

}  // namespace stagecraft
