// Lists for each cut the stages that may follow it, by time and memory, and says when they are too many; Piper's search
// chooses among them.

#include "sim/planners/chain_partition/piper_options.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/planners/chain_partition/whole_stage.hpp"

namespace stagecraft::chain_partition {
namespace {

constexpr std::size_t kMostOptions = 10'000'000;   ///< 1 GB.
constexpr double kPiperMostStates = 1e12;          ///< Some minutes.
constexpr double kMostStatesOfWholeStages = 2e11;  ///< Half a minute: the planner then has fewer places for cuts.
constexpr double kMostLayersOfStages = 5e8;        ///< Some minutes.

std::vector<int> data_degrees(const PiperInput& input) {
  std::vector<int> degrees;
  for (int d = 1; d <= std::min({input.devices, input.micro_batches, input.most_replicas}); ++d)
    if (input.micro_batches % d == 0) degrees.push_back(d);
  return degrees;
}

/// The degrees of tensor parallelism of any layer, ascending.
std::vector<int> tensor_degrees(const PiperInput& input) {
  std::vector<int> degrees;
  for (const PiperLayer& layer : input.layers)
    for (const auto& [degree, variants] : layer.by_degree)
      if (degree <= input.devices) degrees.push_back(degree);
  std::sort(degrees.begin(), degrees.end());
  degrees.erase(std::unique(degrees.begin(), degrees.end()), degrees.end());
  return degrees;
}

bool has_variants(const PiperLayer& layer, int degree) {
  const auto it = layer.by_degree.find(degree);
  return it != layer.by_degree.end() && !it->second.empty();
}

/// The most in flight with which it fits, at most `max`; 0: none.
int most_fitting(int max, const auto& fits) {
  int low = 0;
  while (low < max) {
    const int middle = low + (max - low + 1) / 2;
    if (fits(middle))
      low = middle;
    else
      max = middle - 1;
  }
  return low;
}

}  // namespace

std::string why_too_long(const PiperInput& input, const Cuts& cuts) {
  std::size_t stages = 0, tensors = 1;
  for (const PiperLayer& layer : input.layers) tensors = std::max(tensors, layer.by_degree.size());
  std::vector<int> layers(cuts.count());
  for (int cut = 0; cut < cuts.count(); ++cut) layers[cut] = cuts.size_of(cut);
  double layers_of_stages = 0;  // That the search adds up, at least.
  for (int from = 0; from < cuts.count(); ++from)
    for (int to = from + 1; to < cuts.count(); ++to)
      if (cuts.contains(to, from)) {
        const bool adds_one = input.whole_stages && layers[to] == layers[to - 1] + 1 && cuts.contains(to, to - 1);
        ++stages, layers_of_stages += adds_one ? 1 : layers[to] - layers[from];
      }
  const std::size_t degrees = data_degrees(input).size(), options = stages * degrees * tensors;
  layers_of_stages *= static_cast<double>((input.whole_stages ? 1 : degrees) * tensors);
  // Each step of the bisection fills a row for every sum of degrees from every option.
  const double states = static_cast<double>(options) * (1 + std::log2(static_cast<double>(options) + 1)) *
                        std::min(input.micro_batches, input.devices);
  const double most_states = input.whole_stages ? kMostStatesOfWholeStages : kPiperMostStates;
  if (states > most_states)
    return fmt::format("the search needs up to {:.0e} states; {:.0e} is the most", states, most_states);
  if (options > kMostOptions)
    return fmt::format("there are {} stages and degrees to choose from; {} is the most", options, kMostOptions);
  if (layers_of_stages > kMostLayersOfStages)
    return fmt::format("the {} stages and degrees to choose from have {:.1e} layers together; {:.0e} is the most",
                       options, layers_of_stages, kMostLayersOfStages);
  return {};
}

int StageOption::most_in_flight(double limit) const {
  int max_fitting = 0;
  for (const Step& step : steps) {
    if (step.seconds > limit) break;
    max_fitting = step.in_flight;
  }
  return max_fitting;
}

const StageOption::Step& StageOption::step_at(int in_flight) const {
  const auto it = std::find_if(steps.begin(), steps.end(), [&](const Step& s) { return in_flight <= s.in_flight; });
  STAGECRAFT_CHECK(it != steps.end());
  return *it;
}

StageOptions::StageOptions(const PiperInput& input, const Cuts& cuts)
    : input_(input),
      cuts_(cuts),
      most_degrees_(std::min(input.micro_batches, input.devices)),
      degrees_(data_degrees(input)) {
  if (const std::string why = why_too_long(input, cuts); !why.empty()) {
    const bool has_branches = cuts.count() > cuts.layers() + 1;
    throw Infeasible("size", why,
                     std::string("merge layers") +
                         (has_branches ? ", cut along the order of the model with `cuts: listed`" : "") +
                         ", or use fewer micro-batches");
  }
  std::vector<std::pair<int, WholeStages>> wholes;
  const std::vector<int> tensors = tensor_degrees(input);
  for (const int tensor : tensors)
    if (input.whole_stages) wholes.emplace_back(tensor, WholeStages({&input}, cuts, tensor));
  for (int from = 0; from < cuts.count(); ++from) {
    first_.push_back(options_.size());
    for (int to = from + 1; to < cuts.count(); ++to) {
      if (!cuts.contains(to, from)) continue;
      stop_point();
      for (auto& [tensor, whole] : wholes) add_whole({.to = to, .tensor = tensor}, whole.between(from, to));
      if (wholes.empty()) add_layered(from, to, tensors);
    }
  }
  first_.push_back(options_.size());
  const StageOption::Step* next = steps_.data();
  for (StageOption& option : options_) {
    option.steps = {next, option.steps.size()};
    next += option.steps.size();
  }
}

void StageOptions::add_option(StageOption option, std::size_t first_step) {
  const std::size_t count = steps_.size() - first_step;
  if (count == 0) return;
  option.steps = {static_cast<const StageOption::Step*>(nullptr), count};  // Their place follows when all are known.
  options_.push_back(option);
}

void StageOptions::add_whole(StageOption option, const std::vector<WholeStage>& variants) {
  for (const int data : degrees_) {
    if (option.tensor * data > input_.devices) break;
    option.data = data;
    const int max_in_flight = ceil_div(most_degrees_, data);
    std::vector<StageOption::Step> steps;
    for (std::size_t v = 0; v < variants.size(); ++v) {
      const WholeStage& whole = variants[v];
      const auto fits = [&](int in_flight) { return whole.memory(in_flight) <= input_.memory; };
      const int max_fitting = most_fitting(max_in_flight, fits);
      const double seconds = whole.seconds_with(whole.seconds.front(), data, input_);
      if (max_fitting > 0) steps.push_back({max_fitting, static_cast<int>(v), seconds});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.seconds < b.seconds; });
    const std::size_t first_step = steps_.size();
    for (const StageOption::Step& step : steps)
      if (steps_.size() == first_step || step.in_flight > steps_.back().in_flight) steps_.push_back(step);
    add_option(option, first_step);
  }
}

void StageOptions::add_layered(int from, int to, const std::vector<int>& tensors) {
  const std::vector<int> layers = cuts_.layers_between(from, to);
  for (const int tensor : tensors) {
    const auto can_run = [&](int layer) { return has_variants(input_.layers[layer], tensor); };
    if (!std::all_of(layers.begin(), layers.end(), can_run)) continue;
    for (const int data : degrees_) {
      if (tensor * data > input_.devices) break;
      const std::size_t first_step = steps_.size();
      add_steps(layer_variants(from, to, tensor, data), ceil_div(most_degrees_, data));
      add_option({.to = to, .tensor = tensor, .data = data}, first_step);
    }
  }
}

void StageOptions::add_steps(const LayerVariants& ways, int max_in_flight) {
  const auto seconds = [&](int in_flight) {
    const auto chosen = fit_layers(ways, in_flight, input_.memory);
    return chosen ? seconds_of(ways, *chosen) : kInfinity;
  };
  double last = seconds(1);
  if (last == kInfinity) return;
  int max_fitting = 1;
  if (seconds_of(ways, fastest_of(ways)) >= last)  // Memory does not limit the choice of variants yet.
    max_fitting =
        most_fitting(max_in_flight, [&](int in_flight) { return in_flight <= 1 || seconds(in_flight) <= last; });
  steps_.push_back({max_fitting, -1, last});
  for (int in_flight = max_fitting + 1; in_flight <= max_in_flight; ++in_flight) {
    const double slower = std::max(last, seconds(in_flight));
    if (slower == kInfinity) return;
    if (slower > last) steps_.push_back({in_flight, -1, slower});
    steps_.back().in_flight = in_flight;
    last = slower;
  }
}

LayerVariants StageOptions::layer_variants(int from, int to, int tensor, int data) const {
  const auto outside = [&](int layer) { return cuts_.has(from, layer) || !cuts_.has(to, layer); };
  LayerVariants ways;
  for (const int layer : cuts_.layers_between(from, to)) {
    std::vector<LayerVariant>& row = ways.emplace_back();
    const auto &inputs = input_.graph.previous[layer], &users = input_.graph.next[layer];
    for (const PiperVariant& variant : input_.layers[layer].by_degree.at(tensor)) {
      double bytes = 0;
      for (std::size_t i = 0; i < inputs.size(); ++i) bytes += outside(inputs[i]) ? 2 * variant.in[i] : 0;
      for (std::size_t i = 0; i < users.size(); ++i) bytes += outside(users[i]) ? 2 * variant.out[i] : 0;
      const double reduced = 4.0 * (data - 1) * variant.parameters / data / input_.micro_batches;
      row.push_back({(bytes / data + reduced) / input_.bandwidth + variant.seconds / data, variant.memory});
    }
  }
  return ways;
}

std::vector<double> StageOptions::times() const {
  std::vector<double> times;
  times.reserve(steps_.size());
  for (const StageOption::Step& step : steps_) times.push_back(step.seconds);
  std::sort(times.begin(), times.end());
  times.erase(std::unique(times.begin(), times.end()), times.end());
  return times;
}

PiperStage StageOptions::stage(int from, const StageOption& option, int in_flight) const {
  const LayerVariants ways = layer_variants(from, option.to, option.tensor, option.data);
  const int variant = option.step_at(in_flight).variant;
  std::vector<int> chosen(ways.size(), variant);
  if (variant < 0) chosen = fit_layers(ways, in_flight, input_.memory).value();
  return {from, option.to, option.tensor, option.data, chosen, memory_of(ways, chosen, in_flight)};
}

}  // namespace stagecraft::chain_partition
