// The second part of the search of `synthesised`: moves steps on the critical path of an order (simulated annealing),
// then tries all orders of short windows on the critical path of the best one.

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/schedule/synthesis/candidate_pool.hpp"

namespace stagecraft::synthesis {
namespace {

constexpr int kFarthest = 40;   // The most places that a step moves.
constexpr double kChain = 0.5;  // Probability that a step moves on several stages.
constexpr int kWindow = 5;
constexpr double kHeat = 0.003;  // The first temperature, as a share of the cost.

/// Takes the step at one index of a row and puts it at another.
struct Move {
  int rank = -1, from = 0, to = 0;
  void apply(std::vector<Step>& row) const {
    const auto begin = row.begin();
    if (from < to)
      std::rotate(begin + from, begin + from + 1, begin + to + 1);
    else
      std::rotate(begin + to, begin + from, begin + from + 1);
  }
};

/// Steps of one piece keep their order, and steps of the same kind and stage gain nothing from another order.
bool may_pass(const SchedulingProblem& p, Step a, Step b) {
  if (a.piece() == b.piece()) return false;
  return p.stage_of[a.piece()] != p.stage_of[b.piece()] || a.kind() != b.kind();
}

/// When a forward finds no room, moves the next step that frees memory before it, if that step can run by then. False
/// when there is none.
bool make_room(const SchedulingProblem& p, const ResourceLimits& limit, std::vector<Step>& row, int rank) {
  std::vector<double> in_use(limit.size(), 0);
  const auto stage_of = [&](Step s) { return p.stage_of[s.piece()]; };
  const auto lacks = [&](Step s) {
    for (std::size_t k = 0; k < limit.size(); ++k)
      if (in_use[k] + limit[k].taken_by(s, stage_of(s)) > limit[k].capacity[rank] * (1 + 1e-12)) return true;
    return false;
  };
  const auto done = [&](Step s) {
    for (std::size_t k = 0; k < limit.size(); ++k)
      in_use[k] += limit[k].taken_by(s, stage_of(s)) - limit[k].given_by(s, stage_of(s));
  };
  for (std::size_t i = 0; i < row.size(); ++i) {
    while (lacks(row[i])) {
      const auto here = row.begin() + i;
      const auto next = std::find_if(here + 1, row.end(), [](Step s) { return s.frees(); });
      if (next == row.end() || std::any_of(here, next, [&](Step s) { return s.piece() == next->piece(); }))
        return false;
      const Step freeing = *next;
      if (lacks(freeing)) return false;
      std::rotate(here, next, next + 1);
      done(freeing);
      ++i;
    }
    done(row[i]);
  }
  return true;
}

/// A stretch of the critical path on one rank: indices first..last of its row.
struct Block {
  int rank, first, last;
};
std::vector<Block> blocks_of(const std::vector<StepPosition>& path) {
  std::vector<Block> blocks;
  for (const StepPosition& p : path) {
    if (!blocks.empty() && blocks.back().rank == p.rank && blocks.back().first == p.index + 1)
      --blocks.back().first;
    else
      blocks.push_back({p.rank, p.index, p.index});
  }
  return blocks;
}

Move as_far_as_it_goes(const SchedulingProblem& p, const std::vector<Step>& row, Move m) {
  m.to = std::clamp(m.to, 0, static_cast<int>(row.size()) - 1);
  const int step = m.to < m.from ? -1 : 1;
  int reached = m.from;
  while (reached != m.to && may_pass(p, row[m.from], row[reached + step])) reached += step;
  m.to = reached;
  return m;
}

Move random_move(const SchedulingProblem& p, const Rows& rows, const std::vector<Block>& blocks, Rng& rng) {
  const Block& b = blocks[rng.integer(0, static_cast<int>(blocks.size()) - 1)];
  const int i = rng.integer(b.first, b.last);
  Move m{b.rank, i, i};
  switch (rng.integer(0, 4)) {
    case 0:
      m.to = i - 1;
      break;
    case 1:
      m.to = i + 1;
      break;
    case 2:
      m.to = std::max(b.first, i - rng.integer(1, kFarthest));
      break;
    case 3:
      m.to = std::min(b.last, i + rng.integer(1, kFarthest));
      break;
    default: {  // Out of the block: a weight gradient moves later, any other step earlier.
      const int far = rng.integer(1, kFarthest);
      m.to = rows[b.rank][i].kind() == kWeightGradient ? b.last + far : b.first - far;
    }
  }
  return as_far_as_it_goes(p, rows[b.rank], m);
}

/// The step of the same kind and micro-batch on this stage and some next to it.
std::vector<Step> chain_of(const SchedulingProblem& p, Step step, Rng& rng) {
  const int stage = p.stage_of[step.piece()], micro = p.micro_of(step.piece());
  const int stages = static_cast<int>(p.rank_of.size());
  const int side = rng.integer(0, 2);  // Stages before it, after it, or both.
  const int begin = side == 1 ? stage : rng.integer(0, stage);
  const int end = side == 0 ? stage + 1 : rng.integer(stage + 1, stages);
  std::vector<Step> steps;
  for (int s = begin; s < end; ++s)
    if (micro < p.micros[s]) steps.emplace_back(step.kind(), p.first_piece[s] + micro);
  return steps;
}

/// Moves each of the steps by `by` places, or as far as it can go, and makes room for it. False when there is none.
bool move_all(const SchedulingProblem& p, const ResourceLimits& limit, Rows& rows, const std::vector<Step>& steps,
              int by) {
  for (const Step s : steps) {
    const int rank = p.rank_of[p.stage_of[s.piece()]];
    std::vector<Step>& row = rows[rank];
    const auto it = std::find(row.begin(), row.end(), s);
    if (it == row.end()) continue;  // That stage runs a whole backward.
    const int from = static_cast<int>(it - row.begin());
    as_far_as_it_goes(p, row, {rank, from, from + by}).apply(row);
    if (!make_room(p, limit, row, rank)) return false;
  }
  return true;
}

}  // namespace

void anneal(CandidatePool& pool, Rng& rng, const Rows& from, double effort) {
  const SchedulingProblem& p = pool.problem;
  const double begin = pool.effort();
  Rows rows = from, before;
  double cost = pool.cost(rows), best = cost;
  std::vector<Block> blocks = blocks_of(pool.clock.critical_path(rows));
  while (!pool.spent(effort)) {
    stop_point();
    const Move m = random_move(p, rows, blocks, rng);
    pool.spend(1);
    if (m.from == m.to) continue;
    const Step step = rows[m.rank][m.from];
    std::vector<Step> steps{step};
    if (rng.uniform() < kChain) steps = chain_of(p, step, rng);
    before = rows;
    double next = kInfinity;
    pool.spend(static_cast<double>(steps.size() * rows[m.rank].size()) / 4);
    if (move_all(p, pool.limit, rows, steps, m.to - m.from)) next = pool.cost(rows);
    const double left = 1 - (pool.effort() - begin) / (effort - begin);
    if (next <= cost || rng.uniform() < std::exp((cost - next) / (kHeat * cost * left * left))) {
      cost = next;
      blocks = blocks_of(pool.clock.critical_path(rows));
      if (cost < best) best = cost, pool.add(rows);
    } else {
      std::swap(rows, before);
    }
  }
}

void polish(CandidatePool& pool, double effort) {
  if (pool.best().empty()) return;
  const SchedulingProblem& p = pool.problem;
  Rows rows = pool.best().front().rows;
  for (bool better = true; better;) {
    better = false;
    double cost = pool.cost(rows);
    std::set<std::pair<int, int>> windows;
    for (const StepPosition& place : pool.clock.critical_path(rows))
      for (int first = place.index - kWindow + 1; first <= place.index; first += 2)
        if (first >= 0 && first + kWindow <= std::ssize(rows[place.rank])) windows.insert({place.rank, first});
    for (const auto& [rank, first] : windows) {
      if (pool.spent(effort)) {
        pool.add(rows);
        return;
      }
      stop_point();
      const auto begin = rows[rank].begin() + first, end = begin + kWindow;
      const std::vector<Step> before(begin, end);
      std::vector<Step> best = before;
      std::vector<int> index(kWindow);
      for (int i = 0; i < kWindow; ++i) index[i] = i;
      while (std::next_permutation(index.begin(), index.end())) {
        bool legal = true;
        for (int a = 0; a < kWindow && legal; ++a)
          for (int b = a + 1; b < kWindow && legal; ++b)
            legal = index[a] < index[b] || may_pass(p, before[index[a]], before[index[b]]);
        if (!legal) continue;
        for (int i = 0; i < kWindow; ++i) *(begin + i) = before[index[i]];
        if (!row_fits(p, rows[rank], rank, pool.limit)) continue;
        const double next = pool.cost(rows);
        if (next < cost) cost = next, best.assign(begin, end), better = true;
      }
      std::copy(best.begin(), best.end(), begin);
    }
    if (better) pool.add(rows);
  }
}

}  // namespace stagecraft::synthesis
