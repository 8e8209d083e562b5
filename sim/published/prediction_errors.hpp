#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/config/columns.hpp"
#include "sim/output/picture.hpp"
#include "sim/output/text_layout.hpp"
#include "sim/published/predictions.hpp"

namespace stagecraft {

/// How far predictions are off: relative errors, (predicted - measured) / measured.
struct ErrorSummary {
  int count = 0;
  double median = 0, p90 = 0, worst = 0, mape = 0;  ///< Absolute errors; p90: nine of ten are at most so large.
  double mean = 0;                                  ///< With signs: positive where predictions are too long.
  int within_tenth = 0;                             ///< Errors of 10 % at most.
};
ErrorSummary summarize(const std::vector<double>& errors);

/// Errors of the predicted times, run by run. Here and below, predict() has predicted the runs.
std::vector<double> time_errors(const PredictionSet&);
/// Errors of the predicted memory, for the runs whose memory was published.
std::vector<double> memory_errors(const PredictionSet&);

/// The formula that a prediction has to beat: the operations of a device over one rate for its type and number format,
/// times the bubble of a pipeline of equal stages, (1 + (p - 1)/(m v)). A rate has the least mean absolute error over
/// all given runs of its device type and format, where each set counts equally: it has seen every run that it predicts.
class OneConstantFormula {
 public:
  explicit OneConstantFormula(std::span<const PredictionSet>);
  std::vector<double> errors(const PredictionSet&) const;

 private:
  std::map<std::pair<std::string, NumberFormat>, double> rates_;
};

/// Which of two divisions is faster: pairs of runs of a set with the same network, devices and batch whose measured
/// times differ by more than 2 %. One division that was measured twice is no pair.
struct PairRanking {
  int pairs = 0, right = 0;
  double share() const { return pairs == 0 ? 0 : double(right) / pairs; }
};
/// `smallest_predicted`: predicted times have to differ by more than this share, too.
PairRanking rank_pairs(const PredictionSet&, const std::vector<double>& errors, double smallest_predicted = 0);
/// Times that differ by less, as a share of the shorter one, may differ by noise.
inline constexpr double kSmallestDifference = 0.02;

/// Correlation of the ranks of predicted and of measured times (Spearman), from the errors of predictions. Networks of
/// different sizes make it large, so pairs of one network say more.
double rank_correlation(const PredictionSet&, const std::vector<double>& errors);

/// The tables that `reproduce` prints: errors of each set next to the errors of the one-constant formula, what could
/// not be simulated, intervals, pairs, and memory.
std::string prediction_text(std::span<const PredictionSet>, const TextLayout& = {});
/// A line for each run: set, name, measured and predicted seconds, error, and where the time of its devices goes.
std::string prediction_csv(std::span<const PredictionSet>);
std::vector<FileColumn> prediction_columns();
/// Predicted against measured times on logarithmic axes.
Picture prediction_picture(std::span<const PredictionSet>, const PictureSize&);
/// A page with the distribution of errors, the picture, a line for each publication, and their sources.
std::string prediction_html(std::span<const PredictionSet>);

}  // namespace stagecraft
