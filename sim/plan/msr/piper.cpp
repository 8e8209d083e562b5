// A stage with tensor degree t and data degree d, when s is the sum of the data degrees from it on, takes
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

#include "sim/plan/msr/piper.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "sim/core/activity.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/plan/msr/workload.hpp"

namespace stagecraft::msr {
namespace {

constexpr std::size_t kMostOptions = 5'000'000;
constexpr double kPiperMostStates = 1e12;    ///< Some minutes.
constexpr double kMostLayersOfStages = 5e8;  ///< Some minutes.
constexpr int kUnreachable = 1 << 29;

int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// A stage after a cut: its time by the number of micro-batches in flight.
struct Option {
  int to, tensor, data;
  int free;                    ///< Up to this number in flight, memory does not limit the choice of variants.
  double seconds;              ///< Time with up to `free` in flight.
  std::vector<double> slower;  ///< Time with `free` + 1, + 2, ... in flight, until the stage no longer fits.

  /// The largest number in flight with which the stage takes at most `limit`.
  int most_in_flight(double limit) const {
    if (seconds > limit) return 0;
    return free + static_cast<int>(std::upper_bound(slower.begin(), slower.end(), limit) - slower.begin());
  }
  double seconds_with(int in_flight) const { return in_flight <= free ? seconds : slower[in_flight - free - 1]; }
};

class PiperSearch {
 public:
  PiperSearch(const PiperInput& input, const Cuts& cuts)
      : input_(input), cuts_(cuts), most_degrees_(std::min(input.micro_batches, input.devices)) {
    for (int d = 1; d <= std::min({input.devices, input.micro_batches, input.most_replicas}); ++d)
      if (input.micro_batches % d == 0) degrees_.push_back(d);
    refuse_too_many();
    options_.resize(cuts.count());
    for (int from = 0; from < cuts.count(); ++from)
      for (int to = from + 1; to < cuts.count(); ++to)
        if (cuts.contains(to, from)) stop_point(), add_options(from, to);
  }

  std::optional<PiperPlan> run() {
    std::vector<double> times;  // The answer is the time of some stage.
    for (const std::vector<Option>& options : options_)
      for (const Option& option : options) {
        times.push_back(option.seconds);
        times.insert(times.end(), option.slower.begin(), option.slower.end());
      }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
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
  void refuse_too_many() const {
    std::size_t stages = 0, tensors = 1;
    for (const PiperLayer& layer : input_.layers) tensors = std::max(tensors, layer.by_degree.size());
    std::vector<int> layers(static_cast<std::size_t>(cuts_.count()));
    for (int cut = 0; cut < cuts_.count(); ++cut) layers[cut] = cuts_.size_of(cut);
    double layers_of_stages = 0;
    for (int from = 0; from < cuts_.count(); ++from)
      for (int to = from + 1; to < cuts_.count(); ++to)
        if (cuts_.contains(to, from)) ++stages, layers_of_stages += layers[to] - layers[from];
    const std::size_t options = stages * degrees_.size() * tensors;
    layers_of_stages *= static_cast<double>(degrees_.size() * tensors);
    // Each step of the bisection fills a row of `most_degrees_` numbers from every option.
    const double rows = static_cast<double>(options) * (1 + std::log2(static_cast<double>(options) + 1));
    const bool has_branches = cuts_.count() > cuts_.layers() + 1;
    const std::string help = std::string("merge layers") +
                             (has_branches ? ", cut along the order of the model with `cuts: listed`" : "") +
                             ", or use fewer micro-batches";
    if (rows * most_degrees_ > kPiperMostStates)
      throw Infeasible("size",
                       fmt::format("the search needs up to {:.0e} states; {:.0e} is the most", rows * most_degrees_,
                                   kPiperMostStates),
                       help);
    if (options > kMostOptions)
      throw Infeasible(
          "size", fmt::format("there are {} stages and degrees to choose from; {} is the most", options, kMostOptions),
          help);
    if (layers_of_stages > kMostLayersOfStages)
      throw Infeasible(
          "size",
          fmt::format("the {} stages and degrees to choose from have {:.1e} layers together; {:.0e} is the most",
                      options, layers_of_stages, kMostLayersOfStages),
          help);
  }

  void add_options(int from, int to) {
    const std::vector<int> layers = cuts_.layers_between(from, to);
    for (const auto& [tensor, unused] : input_.layers[layers.front()].by_degree) {
      if (tensor > input_.devices) break;
      const int degree = tensor;
      if (!std::all_of(layers.begin(), layers.end(), [&](int l) { return has_variants(input_.layers[l], degree); }))
        continue;
      for (const int data : degrees_)
        if (tensor * data <= input_.devices) add_option(from, to, tensor, data, layers);
    }
  }

  static bool has_variants(const PiperLayer& layer, int degree) {
    const auto it = layer.by_degree.find(degree);
    return it != layer.by_degree.end() && !it->second.empty();
  }

  void add_option(int from, int to, int tensor, int data, const std::vector<int>& layers) {
    const LayerVariants ways = ways_of(from, to, tensor, data, layers);
    const int max_degree = ceil_div(most_degrees_, data);
    const auto seconds = [&](int in_flight) {
      const auto chosen = fit(ways, in_flight);
      return chosen ? seconds_of(ways, *chosen) : kInfinity;
    };
    Option option{to, tensor, data, 1, seconds(1), {}};
    if (option.seconds == kInfinity) return;
    option.free = most_at_once(ways, max_degree, option.seconds, seconds);
    double last = option.seconds;
    for (int y = option.free + 1; y <= max_degree && last != kInfinity; ++y) {
      last = std::max(last, seconds(y));
      if (last != kInfinity) option.slower.push_back(last);
    }
    options_[from].push_back(std::move(option));
  }

  /// The most in flight for which the fastest variants fit; 1 when they never do.
  int most_at_once(const LayerVariants& ways, int max_degree, double bound, const auto& seconds) const {
    const std::vector<int> fastest = fastest_of(ways);
    if (seconds_of(ways, fastest) < bound) return 1;
    int low = 1, high = max_degree;
    while (low < high) {
      const int middle = (low + high + 1) / 2;
      if (seconds(middle) <= bound)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }

  std::optional<std::vector<int>> fit(const LayerVariants& ways, int in_flight) const {
    return input_.whole_stages ? fit_stage(ways, in_flight, input_.memory) : fit_layers(ways, in_flight, input_.memory);
  }

  LayerVariants ways_of(int from, int to, int tensor, int data, const std::vector<int>& layers) const {
    const auto outside = [&](int layer) { return cuts_.has(from, layer) || !cuts_.has(to, layer); };
    LayerVariants ways;
    for (const int layer : layers) {
      std::vector<LayerVariant>& row = ways.emplace_back();
      const auto &inputs = input_.graph.previous[layer], &users = input_.graph.next[layer];
      for (const Variant& variant : input_.layers[layer].by_degree.at(tensor)) {
        double bytes = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) bytes += outside(inputs[i]) ? 2 * variant.in[i] : 0;
        for (std::size_t i = 0; i < users.size(); ++i) bytes += outside(users[i]) ? 2 * variant.out[i] : 0;
        const double reduced = 4.0 * (data - 1) * variant.parameters / data / input_.micro_batches;
        row.push_back({(bytes / data + reduced) / input_.bandwidth + variant.seconds / data, variant.memory});
      }
    }
    return ways;
  }

  std::optional<PiperPlan> within(double limit) {
    const std::size_t width = most_degrees_ + 1;
    fewest_.assign(cuts_.count() * width, kUnreachable);
    const int last = cuts_.count() - 1;
    row(last)[0] = 0;
    for (int from = last - 1; from >= 0; --from) {
      activity_.count(states_, "states");
      int* to_fill = row(from);
      for (const Option& option : options_[from]) {
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
      const Option& option = *chosen;
      const int in_flight = ceil_div(degrees, option.data);
      const std::vector<int> layers = cuts_.layers_between(from, option.to);
      const LayerVariants ways = ways_of(from, option.to, option.tensor, option.data, layers);
      const auto variants = fit(ways, in_flight);
      STAGECRAFT_CHECK(variants.has_value());
      plan.seconds = std::max(plan.seconds, option.seconds_with(in_flight));
      plan.stages.push_back(
          {from, option.to, option.tensor, option.data, *variants, memory_of(ways, *variants, in_flight)});
      from = option.to, degrees = degrees_after;
    }
    return plan;
  }

  /// The last column also stands for larger sums.
  bool is_last_column(int degrees) const { return degrees == most_degrees_ && degrees == input_.micro_batches; }

  /// The first stage after a cut, and the column of the stages after it.
  std::pair<const Option*, int> chosen_option(int from, int degrees, double limit) {
    for (const Option& option : options_[from]) {
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
  int most_degrees_;
  std::vector<int> degrees_;                  ///< Degrees of data parallelism to try.
  std::vector<std::vector<Option>> options_;  ///< [cut in front of the stage]
  std::vector<int> fewest_;                   ///< f, row by row.
  std::int64_t states_ = 0;
  StopCounter stops_;
  Activity activity_{"searching stages with the least time of the slowest"};
};

}  // namespace

std::optional<PiperPlan> search_piper(const PiperInput& input, const Cuts& cuts) {
  return PiperSearch(input, cuts).run();
}

}  // namespace stagecraft::msr
