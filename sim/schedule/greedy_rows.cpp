// Rows that grow op by op with times and memory, for the zero-bubble schedules that are found from the costs: `zb-1p`,
// `zb-2p` and `zb-v-auto`.

#include "sim/schedule/greedy_rows.hpp"

#include <algorithm>

#include "sim/core/numbers.hpp"

namespace stagecraft {

GreedyRows::GreedyRows(const ZeroBubbleWork& work, std::span<const Leg> legs)
    : work_(work),
      legs_(legs),
      ranks_(work.costs.size()),
      ends_(legs_.size(), std::vector<double>(work.costs.size() * work.micro_batches, -1)) {
  for (int r = 0; r <= last_rank(); ++r) {
    ranks_[r].count.assign(legs_.size(), 0);
    ranks_[r].weights.assign(work.costs[r].size(), 0);
  }
}

double GreedyRows::time_of(int rank, int leg) const {
  const RankCost& cost = work_.costs[rank][legs_[leg].chunk];
  return legs_[leg].kind == OpKind::Forward ? cost.forward : cost.input_gradient;
}

double GreedyRows::memory_change(int rank, int leg) const {
  return work_.costs[rank][legs_[leg].chunk].memory * (legs_[leg].kind == OpKind::Forward ? 2 : -1);
}

double GreedyRows::arrival(int rank, int leg) const {
  const int from = source(rank, leg);
  return from < 0 ? -kInfinity : end_of(from, leg, count(rank, leg)) + work_.hop;
}

bool GreedyRows::has_input(int rank, int leg) const {
  const int from = source(rank, leg);
  return from < 0 || end_of(from, leg, count(rank, leg)) >= 0;
}

void GreedyRows::put(int r, int leg) {
  Rank& rank = ranks_[r];
  const double time = time_of(r, leg), without = rank.end + time, end = std::max(without, arrival(r, leg) + time);
  if (rank.count[0] > 0) rank.bubble += end - without, worst_ = std::max(worst_, rank.bubble);
  const int micro = rank.count[leg]++;
  ends_[leg][r * work_.micro_batches + micro] = end;
  rank.end = end;
  rank.memory += memory_change(r, leg);
  rank.row.push_back({legs_[leg].kind, legs_[leg].chunk, micro});
  if (legs_[leg].kind == OpKind::InputGradient) rank.due.push_back(legs_[leg].chunk);
}

void GreedyRows::put_weight(int r) {
  Rank& rank = ranks_[r];
  const int chunk = rank.due.front();
  rank.due.pop_front();
  rank.end += weight_time(r, chunk);
  rank.memory -= work_.costs[r][chunk].memory;
  rank.row.push_back({OpKind::WeightGradient, chunk, rank.weights[chunk]++});
}

bool GreedyRows::make_room(int r, double change) {
  while (memory(r) + change > work_.limit) {
    if (ranks_[r].due.empty()) return false;
    put_weight(r);
  }
  return true;
}

void GreedyRows::fill_gap(int r, int leg) {
  const double arrives = arrival(r, leg);
  const std::deque<int>& due = ranks_[r].due;
  while (!due.empty() && end(r) + weight_time(r, due.front()) <= arrives) put_weight(r);
}

void GreedyRows::put_all_weights() {
  for (int r = 0; r <= last_rank(); ++r)
    while (!ranks_[r].due.empty()) put_weight(r);
}

Schedule schedule_of(const ScheduleInput& in, const GreedyRows& rows) {
  return by_rank(in, in.plan.micro_batches(StageId{0}), [&](const RankInput& r, RankOps& ops) {
    for (const auto& [kind, chunk, micro] : rows.row(r.rank)) ops.add(kind, chunk, micro);
  });
}

}  // namespace stagecraft
