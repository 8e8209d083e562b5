// Piper's search on devices of one type, for the planner `piper`: the least time of the slowest stage, by bisection. A
// stage with tensor degree t and data degree d, when s is the sum of the data degrees from it on, takes
//
//   sum of seconds / d + (sum over cut edges of 2 bytes / d + sum of 4 (d-1)/d parameters / N) / bandwidth
//
// and has ceil(s/d) micro-batches in flight (Piper, section 3; the 4 is its code's, from PipeDream's). Piper
// tabulates the least time for every number of devices and every s. Here, for one time T after another, f(cut, s) is
// the least number of devices on which the layers after the cut take no longer:
//
//   f(c, s) = min over cuts c' after c, t and d whose stage takes at most T with ceil(s/d) of f(c', s-d) + t d
//
// A replica has at most its share N / d of the micro-batches in flight, so the last column stands for every sum of N or
// more. The minimum is over whole rows and needs little memory. Bisection among the times of all stages finds the least
// T.

#include "sim/planners/chain_partition/piper.hpp"

#include <algorithm>

#include "sim/core/activity.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/planners/chain_partition/piper_options.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr int kUnreachable = 1 << 29;

class PiperSearch {
 public:
  PiperSearch(const PiperInput& input, const Cuts& cuts)
      : input_(input), cuts_(cuts), options_(input, cuts), most_degrees_(options_.most_degrees()) {}

  std::optional<PiperPlan> run() {
    const std::vector<double> times = options_.times();  // The answer is the time of some stage.
    std::optional<PiperPlan> best;
    for (std::size_t low = 0, high = times.size(); low < high;) {
      const std::size_t middle = best ? (low + high) / 2 : high - 1;
      if (auto better = within(times[middle]))
        best = std::move(better), high = middle;
      else
        low = middle + 1;
    }
    if (best) best->states = states_;
    return best;
  }

 private:
  std::optional<PiperPlan> within(double limit) {
    const std::size_t width = most_degrees_ + 1;
    fewest_.assign(cuts_.count() * width, kUnreachable);
    const int last = cuts_.count() - 1;
    row(last)[0] = 0;
    for (int from = last - 1; from >= 0; --from) {
      activity_.count(states_, "states");
      int* to_fill = row(from);
      for (const StageOption& option : options_.after(from)) {
        stops_.pass();
        const int max_degree = std::min(most_degrees_, option.most_in_flight(limit) * option.data);
        const int* next_row = row(option.to);
        const int devices = option.tensor * option.data;
        for (int s = option.data; s <= max_degree; ++s)
          to_fill[s] = std::min(to_fill[s], next_row[s - option.data] + devices);
        for (int s = most_degrees_ - option.data + 1; is_last_column(max_degree) && s <= most_degrees_; ++s)
          to_fill[most_degrees_] = std::min(to_fill[most_degrees_], next_row[s] + devices);
        states_ += std::max(0, max_degree - option.data + 1);
      }
    }
    const int* whole = row(0);
    const auto fewest = std::min_element(whole, whole + width);
    if (*fewest > input_.devices) return std::nullopt;
    return read_off(static_cast<int>(fewest - whole), limit);
  }

  PiperPlan read_off(int degrees, double limit) {
    PiperPlan plan;
    for (int from = 0; from != cuts_.count() - 1;) {
      const auto [chosen, degrees_after] = chosen_option(from, degrees, limit);
      const StageOption& option = *chosen;
      const int in_flight = ceil_div(degrees, option.data);
      plan.seconds = std::max(plan.seconds, option.step_at(in_flight).seconds);
      plan.stages.push_back(options_.stage(from, option, in_flight));
      from = option.to, degrees = degrees_after;
    }
    return plan;
  }

  /// The last column also stands for larger sums.
  bool is_last_column(int degrees) const { return degrees == most_degrees_ && degrees == input_.micro_batches; }

  /// The first stage after a cut, and the column of the stages after it.
  std::pair<const StageOption*, int> chosen_option(int from, int degrees, double limit) {
    for (const StageOption& option : options_.after(from)) {
      if (degrees < option.data || degrees > option.most_in_flight(limit) * option.data) continue;
      const int last = is_last_column(degrees) ? degrees : degrees - option.data;
      for (int s = degrees - option.data; s <= last; ++s)
        if (row(from)[degrees] == row(option.to)[s] + option.tensor * option.data) return {&option, s};
    }
    throw InternalError("no stage leads to a number of devices that was found");
  }

  int* row(int cut) { return fewest_.data() + cut * (most_degrees_ + 1); }

  const PiperInput& input_;
  const Cuts& cuts_;
  StageOptions options_;
  int most_degrees_;
  std::vector<int> fewest_;  ///< f, row by row.
  std::int64_t states_ = 0;
  StopCounter stops_;
  Activity activity_{"searching stages with the least time of the slowest"};
};

}  // namespace

std::optional<PiperPlan> search_piper(const PiperInput& input, const Cuts& cuts) {
  return PiperSearch(input, cuts).run();
}

}  // namespace stagecraft::chain_partition
