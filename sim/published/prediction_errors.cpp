// Errors of predicted times and memory, compared with a single rate for each device type, and how well pairs are
// ranked.

#include "sim/published/prediction_errors.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

#include "sim/core/numbers.hpp"

namespace stagecraft {
namespace {

constexpr double kSameDivision = 1e-9;  // Predictions so close are of one division that was measured twice.

std::pair<std::string, NumberFormat> rate_key(const MeasuredRun& m) {
  return {m.device, m.format == NumberFormat::Fp16 ? NumberFormat::Bf16 : m.format};  // They have the same peak.
}

/// Seconds of the one-constant formula at a rate of 1 FLOP/s.
double seconds_at_unit_rate(const MeasuredRun& m) {
  const double bubble = (m.count("stages") - 1.0) / m.count("micro_batches") / m.count("chunks");
  return (1 + bubble) * m.predicted.work.value;
}

/// What a run times a rate, and a weight, contribute to the mean error.
struct Sample {
  double rate = 0;    ///< The rate at which the formula is right.
  double weight = 0;  ///< Weight of the relative error.
};

/// The rate with the least sum of weight x |own rate / rate - 1|, over all that are right for one sample: one of these
/// is the best, because the sum is piecewise monotone between them.
double best_rate(const std::vector<Sample>& samples) {
  const auto cost = [&](double rate) {
    return std::accumulate(samples.begin(), samples.end(), 0.0,
                           [&](double sum, const Sample& s) { return sum + s.weight * std::abs(s.rate / rate - 1); });
  };
  double best = 0, min_cost = kInfinity;
  for (const Sample& s : samples)
    if (const double c = cost(s.rate); c < min_cost) best = s.rate, min_cost = c;
  return best;
}

/// What two runs have in common that differ in their division alone.
using PairKey = std::tuple<std::string, NumberFormat, int, int, int, int, int, int, double>;

PairKey pair_key(const MeasuredRun& m) {
  const double global_batch = double(m.count("micro_batch")) * m.count("micro_batches") * m.count("replicas");
  return {m.device,
          m.format,
          m.count("layers"),
          m.count("hidden"),
          m.count("heads"),
          m.count("sequence"),
          m.count("vocabulary"),
          m.devices(),
          global_batch};
}

}  // namespace

ErrorSummary summarize(const std::vector<double>& errors) {
  ErrorSummary s;
  s.count = static_cast<int>(errors.size());
  if (errors.empty()) return s;
  std::vector<double> sizes;
  for (const double e : errors) sizes.push_back(std::abs(e));
  std::sort(sizes.begin(), sizes.end());
  s.median = median(sizes);
  s.p90 = sizes[std::min(sizes.size() - 1, sizes.size() * 9 / 10)];
  s.worst = sizes.back();
  s.mape = std::accumulate(sizes.begin(), sizes.end(), 0.0) / s.count;
  s.mean = std::accumulate(errors.begin(), errors.end(), 0.0) / s.count;
  s.within_tenth = static_cast<int>(std::upper_bound(sizes.begin(), sizes.end(), 0.1) - sizes.begin());
  return s;
}

std::vector<double> time_errors(const PredictionSet& set) {
  std::vector<double> errors;
  for (const MeasuredRun& m : set.runs) errors.push_back(m.predicted.time / m.measured - 1);
  return errors;
}

std::vector<double> memory_errors(const PredictionSet& set) {
  std::vector<double> errors;
  for (const MeasuredRun& m : set.runs)
    if (m.memory.value > 0) errors.push_back((m.predicted.memory + m.process_memory()) / m.memory - 1);
  return errors;
}

OneConstantFormula::OneConstantFormula(std::span<const PredictionSet> sets) {
  std::map<std::pair<std::string, NumberFormat>, std::vector<Sample>> samples;
  for (const PredictionSet& set : sets)
    for (const MeasuredRun& m : set.runs)
      samples[rate_key(m)].push_back(
          {seconds_at_unit_rate(m) / m.measured.value, 1.0 / static_cast<double>(set.runs.size())});
  for (const auto& [key, list] : samples) rates_[key] = best_rate(list);
}

std::vector<double> OneConstantFormula::errors(const PredictionSet& set) const {
  std::vector<double> errors;
  for (const MeasuredRun& m : set.runs)
    errors.push_back(seconds_at_unit_rate(m) / rates_.at(rate_key(m)) / m.measured.value - 1);
  return errors;
}

PairRanking rank_pairs(const PredictionSet& set, const std::vector<double>& errors, double smallest_predicted) {
  std::map<PairKey, std::vector<std::pair<double, double>>> groups;  // Measured and predicted times.
  for (std::size_t i = 0; i < set.runs.size(); ++i) {
    const double measured = set.runs[i].measured.value;
    groups[pair_key(set.runs[i])].emplace_back(measured, measured * (1 + errors[i]));
  }
  PairRanking ranking;
  for (const auto& [key, runs] : groups)
    for (std::size_t i = 0; i < runs.size(); ++i)
      for (std::size_t k = 0; k < i; ++k) {
        const auto& [a, predicted_a] = runs[i];
        const auto& [b, predicted_b] = runs[k];
        if (std::abs(a - b) <= kSmallestDifference * std::min(a, b)) continue;
        const double apart = std::abs(predicted_a - predicted_b);
        if (apart <= std::max(kSameDivision, smallest_predicted) * std::min(predicted_a, predicted_b)) continue;
        ++ranking.pairs;
        ranking.right += (a < b) == (predicted_a < predicted_b);
      }
  return ranking;
}

namespace {

/// Ranks from 1; equal values share the mean of their ranks.
std::vector<double> ranks_of(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  std::vector<double> ranks(values.size());
  for (std::size_t first = 0, last = 0; first < order.size(); first = last) {
    while (last < order.size() && values[order[last]] == values[order[first]]) ++last;
    for (std::size_t i = first; i < last; ++i) ranks[order[i]] = 0.5 * static_cast<double>(first + 1 + last);
  }
  return ranks;
}

}  // namespace

double rank_correlation(const PredictionSet& set, const std::vector<double>& errors) {
  std::vector<double> measured, predicted;
  for (std::size_t i = 0; i < errors.size(); ++i) {
    measured.push_back(set.runs[i].measured.value);
    predicted.push_back(set.runs[i].measured.value * (1 + errors[i]));
  }
  const std::vector<double> a = ranks_of(measured), b = ranks_of(predicted);
  const double mean = 0.5 * static_cast<double>(a.size() + 1);
  double both = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean) * (b[i] - mean);
    square_a += (a[i] - mean) * (a[i] - mean);
    square_b += (b[i] - mean) * (b[i] - mean);
  }
  return square_a * square_b > 0 ? both / std::sqrt(square_a * square_b) : 0;
}

}  // namespace stagecraft
