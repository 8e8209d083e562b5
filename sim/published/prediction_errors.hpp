#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "sim/published/predictions.hpp"
#include "sim/report/columns.hpp"
#include "sim/report/picture.hpp"
#include "sim/report/text_layout.hpp"

namespace stagecraft {

/// The device types that runs name.
using AcceleratorsByName = std::map<std::string, Accelerator, std::less<>>;
/// Loads the files of topologies/devices that the runs need.
AcceleratorsByName accelerators_of(std::span<const PredictionSet>);

/// How far predictions are off: relative errors, (predicted - measured) / measured.
struct ErrorSummary {
  int count = 0;
  double median = 0, p90 = 0, worst = 0, mape = 0;  ///< Absolute errors; p90: nine of ten are at most so large.
  double mean = 0;                                  ///< With signs: positive where predictions are too long.
  int within_tenth = 0;                             ///< Errors of 10 % at most.
};
ErrorSummary summarize(const std::vector<double>& errors);

/// Errors of the closed form, run by run.
std::vector<double> time_errors(const PredictionSet&, const AcceleratorsByName&, const CostTerms& = {});
/// Errors of its memory, for the runs whose memory was published.
std::vector<double> memory_errors(const PredictionSet&);

/// The one-constant formula with one rate for each device type and number format. A rate has the least mean absolute
/// error over all given runs of its device type and format, where each set counts equally: it has seen every run that
/// it predicts.
class OneConstantFormula {
 public:
  OneConstantFormula(std::span<const PredictionSet>, const AcceleratorsByName&);
  std::vector<double> errors(const PredictionSet&) const;

 private:
  double base(const MeasuredRun&) const;  ///< Seconds at a rate of 1 FLOP/s.

  std::map<std::pair<std::string, NumberFormat>, double> rates_;
  const AcceleratorsByName& devices_;
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

/// A variant of the formula without one of its terms.
struct Ablation {
  std::string name;
  CostTerms terms;
};
/// All terms, and each term left out.
std::vector<Ablation> ablations();

/// The device types with the share of products of each multiplied by the factor that gives the least mean absolute
/// error over the runs of `group` without some terms: what is left is what these terms explain across runs.
AcceleratorsByName with_shares_fitted(std::span<const PredictionSet>, PredictionSet::AblationGroup group,
                                      AcceleratorsByName, const CostTerms&);

/// The tables that `reproduce` prints: errors of each set next to the errors of the one-constant formula, pairs,
/// memory, and what each term is worth.
std::string prediction_text(std::span<const PredictionSet>, const TextLayout& = {});
/// Errors of simulations of the same runs next to errors of the closed form, and what could not be simulated.
std::string simulated_text(std::span<const PredictionSet>, const TextLayout& = {});
/// A line for each run: set, name, measured and predicted seconds, error, and where the time of its slowest stage goes.
std::string prediction_csv(std::span<const PredictionSet>);
std::vector<FileColumn> prediction_columns();
/// Predicted against measured times on logarithmic axes.
Picture prediction_picture(std::span<const PredictionSet>, const PictureSize&);
/// A page with the distribution of errors, the picture, a line for each publication, and their sources.
std::string prediction_html(std::span<const PredictionSet>);

}  // namespace stagecraft
