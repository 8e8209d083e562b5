// For the search of `v-adaptive`: how long rows take with the costs of each rank, and a lower bound for all rows with a
// number of activations.

#include <algorithm>

#include "sim/schedule/v_shape/adaptive_search.hpp"

namespace stagecraft {
namespace {

double time_of(const VWork& work, VPass pass, int rank) {
  const RankCost& cost = work.costs[rank][chunk_of(pass)];
  if (is_forward(pass)) return cost.forward;
  return is_input_gradient(pass) ? cost.input_gradient : cost.weight_gradient;
}

}  // namespace

double span_of(const VRows& rows, const VWork& work) {
  VClock<double> clock(work.ranks(), work.micro_batches);
  std::vector<double> now(rows.size(), 0), start(rows.size(), -1);
  each_by_step(rows, [&](int r, const VStep& step) {
    const int from = comes_from(step.pass, r);
    double begin = now[r];
    if (from >= 0 && from < work.ranks()) begin = std::max(begin, *clock.input(r, step.pass) + work.hop);
    if (start[r] < 0) start[r] = begin;
    now[r] = begin + time_of(work, step.pass, r);
    clock.run(r, step.pass, now[r]);
    return true;
  });
  double longest = 0;
  for (int r = 0; r < work.ranks(); ++r) longest = std::max(longest, now[r] - start[r]);
  return longest;
}

VBound::VBound(const VWork& work) : work_(work), legs_(work.costs.size()) {
  const int last = work.ranks() - 1;
  // The time from the start of a pass on a rank to the start of the next pass of its micro-batch there. The way turns
  // on the rank itself, or goes on to the rank `next` (-1: none) and comes back from it.
  const auto round_trip = [&](int r, VPass out, VPass back, int next, int leg) {
    return time_of(work_, out, r) + (next < 0 ? 0 : 2 * work_.hop + time_of(work_, back, next) + legs_[next][leg]);
  };
  for (int r = last; r >= 0; --r) {
    legs_[r][0] = round_trip(r, VPass::F0, VPass::F1, r < last ? r + 1 : -1, 0);
    legs_[r][2] = round_trip(r, VPass::I1, VPass::I0, r < last ? r + 1 : -1, 2);
  }
  for (int r = 0; r <= last; ++r) legs_[r][1] = round_trip(r, VPass::F1, VPass::I1, r - 1, 1);
}

double VBound::operator()(int activations) const {
  double longest = 0;
  for (int r = 0; r < work_.ranks(); ++r) longest = std::max(longest, of_rank(r, activations));
  return longest;
}

double VBound::of_rank(int r, int activations) const {
  const auto time = [&](VPass pass) { return time_of(work_, pass, r); };
  const double first = time(VPass::F0), second = time(VPass::F1), m = work_.micro_batches;
  const double turn = time(VPass::I1) + time(VPass::W1);
  const double work = m * (first + second + turn + time(VPass::I0) + time(VPass::W0));
  const double fit = std::min<double>(m, activations), others = std::min(m, activations - fit);
  const double before_second = std::min<double>(m, activations - 1) * first;
  const double before_turn = fit * std::max(first, second) + others * std::min(first, second);
  const double before_last = fit * first + m * (second + turn);
  const auto& leg = legs_[r];
  return work +
         std::max({0.0, leg[0] - before_second, leg[0] + leg[1] - before_turn, leg[0] + leg[1] + leg[2] - before_last});
}

}  // namespace stagecraft
