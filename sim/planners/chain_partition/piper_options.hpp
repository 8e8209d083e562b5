#pragma once

#include <span>
#include <vector>

#include "sim/planners/chain_partition/piper.hpp"
#include "sim/planners/chain_partition/whole_stage.hpp"
#include "sim/planners/chain_partition/workload.hpp"

// The stages that may follow each cut, by time and memory, among which Piper's search chooses.

namespace stagecraft::chain_partition {

/// a / b, rounded up.
constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }

/// A stage after a cut. Its time grows with the number of micro-batches in flight, because faster variants need more
/// memory.
struct StageOption {
  struct Step {
    int in_flight;  ///< Up to this number the stage takes `seconds`.
    int variant;    ///< The variant of all layers; -1: each layer has its own.
    double seconds;
  };
  int to = 0, tensor = 1, data = 1;
  std::span<const Step> steps = {};

  /// The largest number in flight with which the stage takes at most `limit`; 0: none.
  int most_in_flight(double limit) const;
  /// The first step for this number, which must fit.
  const Step& step_at(int in_flight) const;
};

/// Every stage that the search may choose.
class StageOptions {
 public:
  /// Infeasible if there are too many.
  StageOptions(const PiperInput&, const Cuts&);

  std::span<const StageOption> after(int cut) const {
    return {options_.data() + first_[cut], options_.data() + first_[cut + 1]};
  }
  /// The different times of stages, ascending.
  std::vector<double> times() const;
  /// The stage with its variants and its memory.
  PiperStage stage(int from, const StageOption&, int in_flight) const;
  /// Larger sums of data degrees count as this one.
  int most_degrees() const { return most_degrees_; }

 private:
  void add_whole(StageOption, const std::vector<WholeStage>& variants);
  void add_layered(int from, int to, const std::vector<int>& tensors);
  void add_steps(const LayerVariants&, int max_in_flight);
  /// Adds the option, unless no step of it was added to the first `first_step` ones.
  void add_option(StageOption, std::size_t first_step);
  LayerVariants layer_variants(int from, int to, int tensor, int data) const;

  const PiperInput& input_;
  const Cuts& cuts_;
  int most_degrees_;
  std::vector<int> degrees_;              ///< Degrees of data parallelism to try.
  std::vector<StageOption> options_;      ///< In the order of the cut in front.
  std::vector<std::size_t> first_;        ///< [cut] Its first option.
  std::vector<StageOption::Step> steps_;  ///< The steps of every option, in their order.
};

}  // namespace stagecraft::chain_partition
