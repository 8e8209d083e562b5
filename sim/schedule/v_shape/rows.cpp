// Rows of passes that take one step each, for `v-adaptive`: their order over all ranks, their peak of activations,
// moving passes as early as possible, and ordering weight gradients.

#include "sim/schedule/v_shape/rows.hpp"

#include <algorithm>
#include <deque>
#include <numeric>

namespace stagecraft {
namespace {

using enum VPass;

bool goes_down(VPass pass) { return pass == F0 || pass == I1 || pass == W1; }

}  // namespace

bool operator==(const VStep& a, const VStep& b) { return a.time == b.time && a.pass == b.pass; }

std::vector<int> ranks_by_step(const VRows& rows) {
  std::vector<int> place(end_of(rows) + 1, 0);
  for (const VRow& row : rows)
    for (const VStep& step : row) ++place[step.time + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<int> ranks(place.back());
  const auto add = [&](int r, bool down) {
    for (const auto& [time, pass] : rows[r])
      if (goes_down(pass) == down) ranks[place[time]++] = r;
  };
  const int last = static_cast<int>(rows.size()) - 1;
  for (int r = 0; r <= last; ++r) add(r, true);
  for (int r = last; r >= 0; --r) add(r, false);
  return ranks;
}

int end_of(const VRow& row) { return row.empty() ? 0 : row.back().time + 1; }

int end_of(const VRows& rows) {
  int end = 0;
  for (const VRow& row : rows) end = std::max(end, end_of(row));
  return end;
}

int peak_of(const VRow& row) {
  int alive = 0, peak = 0;
  for (const VStep& step : row) peak = std::max(peak, alive += activations(step.pass));
  return peak;
}

int peak_of(const VRows& rows) {
  int peak = 0;
  for (const VRow& row : rows) peak = std::max(peak, peak_of(row));
  return peak;
}

bool squeeze(VRows& rows, int micro_batches) {
  VClock<int> clock(static_cast<int>(rows.size()), micro_batches);
  std::vector<int> ends(rows.size(), 0);
  return each_by_step(rows, [&](int rank, VStep& step) {
    const auto input = clock.input(rank, step.pass);
    if (!input) return false;
    step.time = std::max(ends[rank], *input + 1);
    ends[rank] = step.time + 1;
    clock.run(rank, step.pass, step.time);
    return true;
  });
}

bool order_weights(VRows& rows, int micro_batches) {
  std::vector<std::deque<VPass>> due(rows.size());
  VClock<int> clock(static_cast<int>(rows.size()), micro_batches);
  const auto complete = [&](const VRow& row) { return std::ssize(row) == kVPasses * micro_batches; };
  return std::all_of(rows.begin(), rows.end(), complete) && each_by_step(rows, [&](int rank, VStep& step) {
           auto& queue = due[rank];
           if (is_weight(step.pass)) {
             if (queue.empty()) return false;
             step.pass = queue.front();
             queue.pop_front();
           }
           if (is_input_gradient(step.pass)) queue.push_back(step.pass == I1 ? W1 : W0);
           const auto input = clock.input(rank, step.pass);
           if (!input || *input >= step.time) return false;
           clock.run(rank, step.pass, step.time);
           return true;
         });
}

}  // namespace stagecraft
