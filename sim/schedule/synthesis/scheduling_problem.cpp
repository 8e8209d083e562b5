// Turns one iteration of a plan into a job shop (a machine for each rank) for the search of `synthesised`, turns its
// rows back into schedules, and checks the memory that rows need.

#include "sim/schedule/synthesis/scheduling_problem.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <fmt/core.h>

#include "sim/cluster/link_table.hpp"
#include "sim/cluster/phases.hpp"
#include "sim/core/common_unit.hpp"
#include "sim/core/numbers.hpp"
#include "sim/plan/overlap.hpp"

namespace stagecraft::synthesis {
namespace {

/// The ops with all of their collectives, as the search expects them.
OpTimes whole_times(const StageCost& c) {
  return {c.forward, c.input_gradient, c.weight_gradient, c.backward, c.recompute, c.update};
}

/// `times` of a replica; `pick` is std::max or std::min over the replicas.
template <class Pick>
StageTimes times_of(const Stage& stage, std::span<const StageCost> replicas, OpTimes times(const StageCost&),
                    Pick&& pick) {
  const auto over = [&](Seconds OpTimes::*op) {
    double value = (times(replicas.front()).*op).value;
    for (const StageCost& c : replicas) value = pick(value, (times(c).*op).value);
    return value;
  };
  StageTimes t;
  t.forward = over(&OpTimes::forward);
  t.input_gradient = over(&OpTimes::input_gradient);
  t.weight_gradient = over(&OpTimes::weight_gradient);
  t.backward = over(&OpTimes::backward);
  t.update = over(&OpTimes::update);
  if (stage.shape.recomputes_all()) t.prelude = over(&OpTimes::recompute);
  return t;
}

/// The least that one replica works in an iteration: B may take less than I and W together.
double work_of(const Stage& stage, const StageCost& cost, int micros) {
  const OpTimes t = least_times(cost);
  const Seconds backward = std::min(t.backward, t.input_gradient + t.weight_gradient);
  const Seconds each = t.forward + backward + (stage.shape.recomputes_all() ? t.recompute : Seconds{0});
  return micros * each.value + t.update.value;
}

/// Calls visit(micro, samples) for the samples that a micro-batch of one stage shares with each of another stage. Both
/// stages are on one device.
template <class Visit>
void for_each_shared(const Stage& a, int micro, const Stage& b, Visit&& visit) {
  for_each_overlap(a, micro, 0, b, [&](int m, int, int samples) { visit(m, samples); });
}

/// The messages between stages.
class MessageTimes {
 public:
  explicit MessageTimes(const ScheduleInput& in) : in_(in) {
    if (in.cluster) links_.emplace(*in.cluster);
  }
  Output output(const StageEdge& edge, const Stage& from, const Stage& to, int samples, int piece) const {
    if (!links_ || from.leaders.front() == to.leaders.front()) return {piece, 0, 0, true};
    const LinkRate rate = links_->link(from.leaders.front(), to.leaders.front());
    const double share = static_cast<double>(samples) / static_cast<double>(from.leaders.size());
    const Bytes bytes = edge.bytes * share;
    const double sending = bytes.value > 0 ? (bytes / rate.bandwidth).value : 0;
    const bool members_send = in_.costs.at(edge.to, 0).written() == Written::All;
    const bool exact = from.leaders.size() == 1 && to.leaders.size() == 1 && !members_send;
    if (!in_.one_send_at_a_time) return {piece, 0, sending + rate.latency.value, exact};
    return {piece, sending, rate.latency.value, exact};
  }

 private:
  const ScheduleInput& in_;
  std::optional<LinkTable> links_;
};

/// The times of the quickest and the slowest process group of a reduction, as the backend `ideal` has them. Without
/// groups, which is on the same devices, the sum takes no time. Where it has a price, it takes that; where software
/// says that members of groups play messages, no bound is known.
TiedSum exchange_of(const Reduction& reduction, const StageCosts& costs, const LinkTable* links) {
  TiedSum exchange;
  for (const StageId s : reduction.stages) exchange.stages.push_back(s.value);
  if (links == nullptr || reduction.groups.empty()) return exchange;
  if (reduction.cost) {
    exchange.time = exchange.min_time = reduction.cost->value;
    return exchange;
  }
  const auto bytes = static_cast<std::uint64_t>(std::round(reduction.bytes.value));
  exchange.min_time = kInfinity;
  for (const std::vector<DeviceId>& group : reduction.groups) {
    const auto phases = phases_of(CollectiveKind::AllReduce, collective_algorithms::ring, {group}, bytes);
    const double time = time_of(phases, *links).value;
    exchange.min_time = std::min(exchange.min_time, time);
    exchange.time = std::max(exchange.time, time);
  }
  if (costs.at(reduction.stages.front(), 0).written() == Written::All) exchange.min_time = 0;
  return exchange;
}

Exchanges exchanges_of(const ScheduleInput& in) {
  const Plan& plan = in.plan;
  Exchanges exchanges;
  exchanges.tied.assign(plan.stages.size(), false);
  const auto is_tied = [](const Reduction& r) { return r.source == ReductionSource::TiedParameters; };
  if (std::none_of(plan.reductions.begin(), plan.reductions.end(), is_tied)) return exchanges;
  std::optional<LinkTable> links;
  if (in.cluster) links.emplace(*in.cluster);
  const UpdateBarriers barriers(plan);
  for (const UpdateBarrier& barrier : barriers.list()) {
    const std::size_t before = exchanges.list.size();
    for (const ReductionId id : barrier.reductions)
      if (const Reduction& r = plan.reductions[id]; is_tied(r))
        exchanges.list.push_back(exchange_of(r, in.costs, links ? &*links : nullptr));
    if (exchanges.list.size() == before) continue;
    for (const StageId s : barrier.stages) {
      exchanges.tied[s.value] = true;
      exchanges.updates.push_back(s.value);
    }
  }
  return exchanges;
}

}  // namespace

double StageTimes::time_of(Kind kind) const {
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

SchedulingProblem::SchedulingProblem(const ScheduleInput& in)
    : exchanges(exchanges_of(in)), empty(empty_schedule(in.plan)) {
  const Plan& plan = in.plan;
  std::map<std::vector<DeviceId>, int> rank_with;
  std::set<DeviceId> taken;
  for (int s = 0; s < plan.stage_count(); ++s) {
    const Stage& stage = plan.stage(StageId{s});
    const auto [entry, is_new] = rank_with.try_emplace(stage.leaders, ranks());
    if (is_new) {
      stages.emplace_back();
      rank_devices.push_back(stage.leaders);
      for (const DeviceId d : stage.leaders)
        if (!taken.insert(d).second)
          throw InputError(
              fmt::format("the schedule 'synthesised' wants stages either on the same devices or on others "
                          "altogether, but stage {} shares only some of its devices",
                          s));
    }
    stages[entry->second].push_back(s);
    rank_of.push_back(entry->second);
    const auto slower = [](double a, double b) { return std::max(a, b); };
    const auto quicker = [](double a, double b) { return std::min(a, b); };
    times.push_back(times_of(stage, in.costs.replicas(StageId{s}), whole_times, slower));
    min_times.push_back(times_of(stage, in.costs.replicas(StageId{s}), least_times, quicker));
    micros.push_back(plan.micro_batches_run(StageId{s}));
    first_piece.push_back(pieces());
    micro_numbers.emplace_back(stage.micros);
    if (stage.micros.empty())
      for (int m = 0; m < micros.back(); ++m) micro_numbers.back().push_back(m);
    stage_of.resize(stage_of.size() + micros.back(), s);
  }
  order = *topological_order(plan.graph());
  for (int r = 0; r < ranks(); ++r) {
    busy.push_back(0);
    for (std::size_t d = 0; d < rank_devices[r].size(); ++d) {
      double sum = 0;
      for (const int s : stages[r])
        sum += work_of(plan.stage(StageId{s}), in.costs.at(StageId{s}, static_cast<int>(d)), micros[s]);
      busy.back() = std::max(busy.back(), sum);
    }
  }

  forward_outputs.resize(stage_of.size());
  gradient_outputs.resize(stage_of.size());
  inputs.assign(2 * stage_of.size(), 0);
  const MessageTimes messages(in);
  for (const StageEdge& edge : plan.edges) {
    const Stage &from = plan.stage(edge.from), &to = plan.stage(edge.to);
    const Stage one_from = on_one_device(from), one_to = on_one_device(to);
    for (int m = 0; m < micros[edge.from.value]; ++m) {
      const int piece = first_piece[edge.from.value] + m;
      for_each_shared(one_from, micro_numbers[edge.from.value][m], one_to, [&](int other, int samples) {
        const int theirs = piece_with(edge.to.value, other);
        forward_outputs[piece].push_back(messages.output(edge, from, to, samples, theirs));
        gradient_outputs[theirs].push_back(messages.output(edge, to, from, samples, piece));
        ++inputs[2 * theirs], ++inputs[2 * piece + 1];
      });
    }
  }
}

SchedulingProblem SchedulingProblem::in_common_unit() const {
  std::vector<double> passes;
  for (const StageTimes& t : times)
    passes.insert(passes.end(), {t.forward, t.input_gradient, t.weight_gradient, t.backward, t.prelude});
  const CommonUnit unit(passes);
  SchedulingProblem scaled = *this;
  for (auto* list : {&scaled.times, &scaled.min_times})
    for (StageTimes& t : *list)
      for (double* time : {&t.forward, &t.input_gradient, &t.weight_gradient, &t.backward, &t.prelude, &t.update})
        *time = unit(*time);
  for (double& time : scaled.busy) time = unit(time);
  for (auto* pieces_outputs : {&scaled.forward_outputs, &scaled.gradient_outputs})
    for (std::vector<Output>& outputs : *pieces_outputs)
      for (Output& o : outputs) o.sending = unit(o.sending), o.delay = unit(o.delay);
  for (TiedSum& e : scaled.exchanges.list) e.time = unit(e.time), e.min_time = unit(e.min_time);
  return scaled;
}

int SchedulingProblem::piece_with(int stage, int micro) const {
  const std::vector<int>& numbers = micro_numbers[stage];
  const bool is_in_place = micro < std::ssize(numbers) && numbers[micro] == micro;  // As in stages that run all.
  const auto at = is_in_place ? numbers.begin() + micro : std::lower_bound(numbers.begin(), numbers.end(), micro);
  STAGECRAFT_CHECK(at != numbers.end() && *at == micro);
  return first_piece[stage] + static_cast<int>(at - numbers.begin());
}

Rows SchedulingProblem::rows_of(const Schedule& iteration) const {
  Rows rows(stages.size());
  for (int r = 0; r < ranks(); ++r)
    for (const Op& op : iteration.row(rank_devices[r].front())) {
      if (op.kind == OpKind::Update || op.kind == OpKind::Recompute) continue;
      const Kind kind = op.kind == OpKind::Forward         ? kForward
                        : op.kind == OpKind::InputGradient ? kInputGradient
                        : op.kind == OpKind::Backward      ? kBackward
                                                           : kWeightGradient;
      rows[r].emplace_back(kind, piece_with(op.stage.value, op.micro));
    }
  return rows;
}

Schedule SchedulingProblem::schedule_of(const Rows& rows) const {
  constexpr OpKind kKinds[] = {OpKind::Forward, OpKind::InputGradient, OpKind::WeightGradient, OpKind::Backward};
  Schedule schedule = empty;
  for (int r = 0; r < ranks(); ++r) {
    std::vector<Op> row;
    for (const Step s : rows[r]) {
      const int stage = stage_of[s.piece()];
      row.push_back({kKinds[s.kind()], false, StageId{stage}, micro_numbers[stage][micro_of(s.piece())]});
    }
    schedule.ranks[schedule.rank(rank_devices[r].front())] = std::move(row);
  }
  return schedule;
}

double Resource::taken_by(Step s, int stage) const {
  if (s.kind() == kForward) return boundary[stage];
  return s.passes_gradient() ? stash[stage] - boundary[stage] : 0;
}

double Resource::given_by(Step s, int stage) const {
  switch (s.kind()) {
    case kForward:
      return 0;
    case kInputGradient:
      return stash[stage] * freed_at_input;
    case kWeightGradient:
      return stash[stage] * (1 - freed_at_input);
    case kBackward:
      return stash[stage];
  }
  return 0;
}

std::vector<double> peaks(const SchedulingProblem& problem, const Rows& rows, const Resource& resource) {
  std::vector<double> result;
  for (const auto& row : rows) {
    double in_use = 0, peak = 0;
    for (const Step s : row) {
      const int stage = problem.stage_of[s.piece()];
      peak = std::max(peak, in_use += resource.taken_by(s, stage));
      in_use -= resource.given_by(s, stage);
    }
    result.push_back(peak);
  }
  return result;
}

bool row_fits(const SchedulingProblem& problem, const std::vector<Step>& row, int rank, const ResourceLimits& limit) {
  for (const Resource& resource : limit) {
    const double capacity = resource.capacity[rank] * (1 + 1e-12);
    double in_use = 0;
    for (const Step s : row) {
      const int stage = problem.stage_of[s.piece()];
      if ((in_use += resource.taken_by(s, stage)) > capacity) return false;
      in_use -= resource.given_by(s, stage);
    }
  }
  return true;
}

bool fits(const SchedulingProblem& problem, const Rows& rows, const ResourceLimits& limit) {
  for (int r = 0; r < problem.ranks(); ++r)
    if (!row_fits(problem, rows[r], r, limit)) return false;
  return true;
}

bool well_formed(const SchedulingProblem& problem, const Rows& rows) {
  std::vector<char> state(problem.stage_of.size(), 0);  // 0 nothing yet, 1 forward, 2 input gradient, 3 done
  for (int r = 0; r < std::ssize(rows); ++r)
    for (const Step s : rows[r]) {
      if (s.piece() >= problem.pieces()) return false;
      if (problem.rank_of[problem.stage_of[s.piece()]] != r) return false;
      char& now = state[s.piece()];
      const char needed = s.kind() == kForward ? 0 : s.kind() == kWeightGradient ? 2 : 1;
      if (now != needed) return false;
      now = s.kind() == kForward ? 1 : s.kind() == kInputGradient ? 2 : 3;
    }
  return std::all_of(state.begin(), state.end(), [](char c) { return c == 3; });
}

}  // namespace stagecraft::synthesis
