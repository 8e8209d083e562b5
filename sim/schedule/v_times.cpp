#include "sim/schedule/v_times.hpp"

#include <algorithm>

#include "sim/core/id_vector.hpp"

namespace stagecraft {
namespace {

double seconds(const VWork& work, VPass pass, int rank) {
  const RankCost& cost = work.costs[rank][chunk_of(pass)];
  if (is_forward(pass)) return cost.forward.value;
  return (pass == VPass::I0 || pass == VPass::I1 ? cost.input_gradient : cost.weight_gradient).value;
}

}  // namespace

double span_of(const VRows& rows, const VWork& work) {
  const int ranks = work.ranks();
  EnumArray<VPass, std::vector<double>, kVPasses> ends;
  for (auto& list : ends) list.assign(rows.size() * work.micro_batches, 0);
  std::vector<EnumArray<VPass, int, kVPasses>> counts(rows.size());
  std::vector<double> now(rows.size(), 0), start(rows.size(), -1);
  each_by_step(rows, [&](int r, const VStep& step) {
    const VPass pass = step.pass;
    const int micro = counts[r][pass]++, from = comes_from(pass, r);
    double begin = now[r];
    if (from >= 0 && from < ranks) begin = std::max(begin, ends[pass][from * work.micro_batches + micro] + work.hop);
    if (start[r] < 0) start[r] = begin;
    now[r] = begin + seconds(work, pass, r);
    ends[pass][r * work.micro_batches + micro] = now[r];
    return true;
  });
  double longest = 0;
  for (int r = 0; r < ranks; ++r) longest = std::max(longest, now[r] - start[r]);
  return longest;
}

VFloor::VFloor(const VWork& work) : work_(work), ways_(work.costs.size()) {
  const int last = work.ranks() - 1;
  // From the start of a pass on a rank to that of its micro-batch's next leg there, where the way turns behind the
  // rank `next`; -1 where it turns on the rank itself.
  const auto turned = [&](int r, VPass out, VPass back, int next, std::size_t leg) {
    return seconds(work_, out, r) + (next < 0 ? 0 : 2 * work_.hop + seconds(work_, back, next) + ways_[next][leg]);
  };
  for (int r = last; r >= 0; --r) {
    ways_[r][0] = turned(r, VPass::F0, VPass::F1, r < last ? r + 1 : -1, 0);
    ways_[r][2] = turned(r, VPass::I1, VPass::I0, r < last ? r + 1 : -1, 2);
  }
  for (int r = 0; r <= last; ++r) ways_[r][1] = turned(r, VPass::F1, VPass::I1, r - 1, 1);
}

double VFloor::operator()(int activations) const {
  double most = 0;
  for (int r = 0; r < work_.ranks(); ++r) most = std::max(most, of(r, activations));
  return most;
}

double VFloor::of(int r, int activations) const {
  const auto time = [&](VPass pass) { return seconds(work_, pass, r); };
  const double first = time(VPass::F0), second = time(VPass::F1), m = work_.micro_batches;
  const double turn = time(VPass::I1) + time(VPass::W1);
  const double work = m * (first + second + turn + time(VPass::I0) + time(VPass::W0));
  const double fit = std::min<double>(m, activations), others = std::min(m, activations - fit);
  const double before_second = std::min<double>(m, activations - 1) * first;
  const double before_turn = fit * std::max(first, second) + others * std::min(first, second);
  const double before_last = fit * first + m * (second + turn);
  const auto& way = ways_[r];
  return work +
         std::max({0.0, way[0] - before_second, way[0] + way[1] - before_turn, way[0] + way[1] + way[2] - before_last});
}

}  // namespace stagecraft
