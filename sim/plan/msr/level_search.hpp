#pragma once

#include <utility>

#include "sim/plan/msr/pipedream.hpp"

namespace stagecraft::msr {

/// Costs of replicas and messages on one level. In the released code, a stage alone on its level shares the links of
/// the machines inside.
struct Rates {
  double bandwidth;
  Formula formula;
  double transfers;
  bool trains;

  double stage(double seconds, double parameters, int replicas, int inside) const;
  double edge(double bytes, int replicas) const;
};

/// Seconds of the layers between two cuts on replicas that take `seconds` for one micro-batch each, and of the stage's
/// messages. The optimizer charges a message to its receiver, and none to the first stage, which is alone on its level
/// when the dynamic program begins with it.
double stage_seconds(const Rates&, const Workload&, std::pair<int, int> cuts, double seconds, int replicas, int inside);

/// The memory test of the released code, for the layers between two cuts that have `machines_behind` machines after
/// them: one version of the weights and the outputs for each micro-batch after the stage, without its own.
bool fits(const Workload&, const PipeDreamOptions&, int from, int to, int machines_behind, int replicas);

/// seconds[b * cuts + a] of the layers from cut a to cut b on one machine; infinite where there are none.
std::vector<double> compute_seconds(const Workload&);

/// The dynamic program on the equal machines of one level.
class LevelSearch {
 public:
  LevelSearch(const Workload&, const PipeDreamOptions&, std::size_t level, std::vector<double> seconds);

  int machines() const { return machines_; }

  /// rows[m][b] = A[a][b][m].
  std::vector<std::vector<double>> rows_from(int a) const;
  /// A[a][b][all] for all pairs, or only for a = 0, in the layout of compute_seconds().
  std::vector<double> on_all_machines(bool from_first_alone) const;

  /// One stage of this level: layers between two cuts, on `replicas` machines from `first` on.
  struct LevelStage {
    int from, to, first, replicas;
  };

  /// The parts of the fastest pipeline from a to b, in order.
  std::vector<LevelStage> parts(int a, int b) const;

 private:
  int count() const { return work_.cuts.count(); }
  double seconds(int a, int b) const;
  double parameters(int a, int b) const;
  bool fits(int a, int b, int machines, int replicas) const;
  bool allows(int replicas) const { return replicas <= most_ && options_.levels[level_].allows(replicas); }
  double alone(int a, int b, int machines) const;
  double edge(int cut, int replicas) const;
  double last_stage(int c, int b, int replicas) const;
  double best_split(const std::vector<double>& before, const std::vector<double>& last, int a, int b, int m,
                    int r) const;

  const Workload& work_;
  const PipeDreamOptions& options_;
  std::size_t level_;
  int machines_, most_, inside_;
  Rates rates_;
  std::vector<double> seconds_;
};

/// Adds the stages of a part of `level` that runs on the machines of that level which start at these devices.
void add_stages(const std::vector<LevelSearch>&, std::size_t level, int from, int to, const std::vector<int>& machines,
                std::vector<FoundStage>&);

}  // namespace stagecraft::msr
