#pragma once

#include <vector>

#include "sim/core/numbers.hpp"
#include "sim/schedule/synthesis/least.hpp"

namespace stagecraft::synthesis {

/// A piece of work of one machine with the least times before and behind it.
struct Job {
  double head = 0, time = 0, tail = 0;
};

/// The end, tails included, of one machine that takes the job with the longest tail among those that are there and may
/// interrupt it: no order is shorter (Carlier, EJOR 1982).
double one_machine(std::vector<Job>);

/// The earliest start of the k-th F, I and W of each stage, and the least time behind the k-th last, counted as they
/// are run, whatever micro-batch each belongs to. Of one rank: from its own first start on, and to its own last end;
/// what does not come from it, or does not come back, does not count.
class Ways {
 public:
  static constexpr int kAll = -1;
  Ways(const Least&, int rank);

  /// Adds the work of a stage, as far as it comes from the rank.
  void add_jobs(int stage, std::vector<Job>&) const;
  double there_and_back() const;

 private:
  struct Times {
    std::vector<double> forward, input, weight;
  };
  bool counts(int s) const;
  bool alike(int a, int b) const;
  bool takes_part(int s, const Exchange&) const;
  double exchange_of(int s) const;
  double after_gradients(int s) const;
  void begin(int s, int k);
  double end_of(int s, Kind, int k) const;
  double wanted(int s, Kind, int n) const;
  void turn(int s, int k);
  void end_gradient(int s, int n);
  void end_forward(int s, int n);

  static constexpr double kNowhere = -kInfinity;
  const Least& least_;
  const Problem& p_;
  int rank_;
  std::vector<Times> head_;  ///< Of each stage, by k: earliest starts, and of W the end. Empty: it does not come here.
  std::vector<Times> tail_;  ///< Of each stage, by n-th last: least times behind the end.
  std::vector<double> after_;
};

}  // namespace stagecraft::synthesis
