#include "sim/schedule/synthesis/problem.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "sim/cluster/cluster.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft::synthesis {
namespace {

std::size_t at(int i) { return Problem::at(i); }

/// The slowest replica counts.
StageTimes times_of(const Stage& stage, const std::vector<StageCost>& replicas) {
  StageTimes t;
  for (const StageCost& c : replicas) {
    t.forward = std::max(t.forward, c.forward.value);
    t.input_gradient = std::max(t.input_gradient, c.input_gradient.value);
    t.weight_gradient = std::max(t.weight_gradient, c.weight_gradient.value);
    t.backward = std::max(t.backward, c.backward.value);
    t.update = std::max(t.update, c.update.value);
    if (stage.recompute) t.prelude = std::max(t.prelude, c.recompute.value);
  }
  return t;
}

/// Samples that a micro-batch of one stage shares with each of another, whatever the replicas.
template <class Visit>
void for_each_shared(const Stage& a, int micro, const Stage& b, Visit&& visit) {
  Stage one = b, own = a;
  one.devices.resize(1), own.devices.resize(1);
  for_each_overlap(own, micro, 0, one, [&](int m, int, int samples) { visit(m, samples); });
}

class Hops {
 public:
  explicit Hops(const ScheduleInput& in) : in_(in) {
    if (in.cluster) router_.emplace(*in.cluster);
  }
  Output hop(const StageEdge& edge, const Stage& from, const Stage& to, int samples, int piece) const {
    if (!router_ || from.devices.front() == to.devices.front()) return {piece, 0, 0};
    const Route route = router_->require(from.devices.front(), to.devices.front());
    const double share = static_cast<double>(samples) / static_cast<double>(from.devices.size());
    const Bytes bytes = edge.bytes * share;
    const double sending = bytes.value > 0 ? (bytes / route.bandwidth).value : 0;
    if (!in_.one_send_at_a_time) return {piece, 0, sending + route.latency.value};
    return {piece, sending, route.latency.value};
  }

 private:
  const ScheduleInput& in_;
  std::optional<Router> router_;
};

}  // namespace

double StageTimes::of(Kind kind) const {
  switch (kind) {
    case kForward:
      return forward;
    case kInputGradient:
      return input_gradient;
    case kWeightGradient:
      return weight_gradient;
    case kBackward:
      return backward;
  }
  return 0;
}

Problem::Problem(const ScheduleInput& in) : devices(in.plan.device_count()) {
  const Plan& plan = in.plan;
  std::map<std::vector<DeviceId>, int> rank_with;
  std::set<DeviceId> taken;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    const auto [found, is_new] = rank_with.try_emplace(stage.devices, ranks());
    if (is_new) {
      stages.emplace_back();
      rank_devices.push_back(stage.devices);
      for (const DeviceId d : stage.devices)
        if (!taken.insert(d).second)
          throw InputError(
              fmt::format("the schedule 'synthesised' wants stages either on the same devices or on others "
                          "altogether, but stage {} shares only some of its devices",
                          s));
    }
    stages[at(found->second)].push_back(s);
    rank_of.push_back(found->second);
    times.push_back(times_of(stage, in.costs[at(s)]));
    micros.push_back(plan.own_micro_batches(StageId{s}));
    first_piece.push_back(pieces());
    micro_numbers.emplace_back(stage.micros);
    if (stage.micros.empty())
      for (int m = 0; m < micros.back(); ++m) micro_numbers.back().push_back(m);
    stage_of.resize(stage_of.size() + at(micros.back()), s);
  }
  order = *topological_order(plan.graph());

  forward_outputs.resize(stage_of.size());
  gradient_outputs.resize(stage_of.size());
  inputs.assign(2 * stage_of.size(), 0);
  const Hops hops(in);
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    std::map<int, int> piece_of;
    for (int m = 0; m < micros[static_cast<std::size_t>(edge.to)]; ++m)
      piece_of[micro_numbers[static_cast<std::size_t>(edge.to)][at(m)]] =
          first_piece[static_cast<std::size_t>(edge.to)] + m;
    for (int m = 0; m < micros[static_cast<std::size_t>(edge.from)]; ++m) {
      const int own = first_piece[static_cast<std::size_t>(edge.from)] + m;
      for_each_shared(from, micro_numbers[static_cast<std::size_t>(edge.from)][at(m)], to, [&](int other, int samples) {
        const int theirs = piece_of.at(other);
        forward_outputs[at(own)].push_back(hops.hop(edge, from, to, samples, theirs));
        gradient_outputs[at(theirs)].push_back(hops.hop(edge, to, from, samples, own));
        ++inputs[at(2 * theirs)], ++inputs[at(2 * own + 1)];
      });
    }
  }
}

Rows Problem::rows_of(const Schedule& iteration) const {
  std::vector<std::map<int, int>> piece_of(stages.empty() ? 0 : rank_of.size());
  for (std::size_t s = 0; s < rank_of.size(); ++s)
    for (int m = 0; m < micros[s]; ++m) piece_of[s][micro_numbers[s][at(m)]] = first_piece[s] + m;
  Rows rows(stages.size());
  for (int r = 0; r < ranks(); ++r)
    for (const Op& op : iteration.devices[static_cast<std::size_t>(rank_devices[at(r)].front())]) {
      if (op.kind == OpKind::Update || op.kind == OpKind::Recompute) continue;
      const Kind kind = op.kind == OpKind::Forward         ? kForward
                        : op.kind == OpKind::InputGradient ? kInputGradient
                        : op.kind == OpKind::Backward      ? kBackward
                                                           : kWeightGradient;
      rows[at(r)].emplace_back(kind, piece_of[static_cast<std::size_t>(op.stage)].at(op.micro));
    }
  return rows;
}

Schedule Problem::schedule_of(const Rows& rows) const {
  constexpr OpKind kKinds[] = {OpKind::Forward, OpKind::InputGradient, OpKind::WeightGradient, OpKind::Backward};
  Schedule schedule;
  schedule.devices.resize(at(devices));
  for (int r = 0; r < ranks(); ++r) {
    std::vector<Op> row;
    for (const Step s : rows[at(r)]) {
      const int stage = stage_of[at(s.piece())];
      row.push_back({kKinds[s.kind()], false, StageId{stage}, micro_numbers[at(stage)][at(micro_of(s.piece()))]});
    }
    for (const DeviceId d : rank_devices[at(r)]) schedule.devices[static_cast<std::size_t>(d)] = row;
  }
  return schedule;
}

std::vector<double> peaks(const Problem& problem, const Rows& rows, const Limit& limit) {
  std::vector<double> result;
  for (const auto& row : rows) {
    double held = 0, most = 0;
    for (const Step s : row) {
      const double size = limit.stash[at(problem.stage_of[at(s.piece())])];
      if (s.kind() == kForward) most = std::max(most, held += size);
      if (s.kind() == kInputGradient) held -= size * limit.freed_at_input;
      if (s.kind() == kWeightGradient) held -= size * (1 - limit.freed_at_input);
      if (s.kind() == kBackward) held -= size;
    }
    result.push_back(most);
  }
  return result;
}

bool fits(const Problem& problem, const Rows& rows, const Limit& limit) {
  const std::vector<double> held = peaks(problem, rows, limit);
  for (std::size_t r = 0; r < held.size(); ++r)
    if (held[r] > limit.most[r] * (1 + 1e-12)) return false;
  return true;
}

bool well_formed(const Problem& problem, const Rows& rows) {
  std::vector<char> state(problem.stage_of.size(), 0);  // 0 nothing yet, 1 forward, 2 input gradient, 3 done
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (const Step s : rows[r]) {
      if (s.piece() >= problem.pieces()) return false;
      if (problem.rank_of[at(problem.stage_of[at(s.piece())])] != static_cast<int>(r)) return false;
      char& now = state[at(s.piece())];
      const char needed = s.kind() == kForward ? 0 : s.kind() == kWeightGradient ? 2 : 1;
      if (now != needed) return false;
      now = s.kind() == kForward ? 1 : s.kind() == kInputGradient ? 2 : 3;
    }
  return std::all_of(state.begin(), state.end(), [](char c) { return c == 3; });
}

}  // namespace stagecraft::synthesis
