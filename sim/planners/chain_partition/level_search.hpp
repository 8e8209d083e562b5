#pragma once

#include <map>
#include <utility>

#include "sim/planners/chain_partition/pipedream.hpp"

namespace stagecraft::chain_partition {

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

/// seconds[cuts.pair(a, b)] of the layers from cut a to cut b on one machine; infinite where there are none.
std::vector<double> compute_seconds(const Workload&);

/// Numbers of replicas that a stage may have on some devices, in ascending order, with each divisor of one of them.
using ReplicaCounts = std::vector<int>;
ReplicaCounts replica_counts(const PipeDreamOptions&, int devices);
/// The numbers on the `devices` of one machine that belongs to a stage of `machines` machines: replicas of both levels
/// multiply.
ReplicaCounts counts_inside(const ReplicaCounts&, int machines, int devices);

/// The dynamic program on the equal machines of one level.
class LevelSearch {
 public:
  /// seconds[r] has the seconds on one machine of a stage with r machines, in the layout of compute_seconds(); it is
  /// null for an r that is not allowed.
  LevelSearch(const Workload&, const PipeDreamOptions&, std::size_t level,
              std::vector<const std::vector<double>*> seconds);

  int machines() const { return machines_; }

  /// rows[m][b] = A[a][b][m].
  std::vector<std::vector<double>> rows_from(int a) const;
  /// A[a][b][all] for all pairs, in the layout of compute_seconds().
  std::vector<double> on_all_machines() const;

  /// One stage of this level: layers between two cuts, on `replicas` machines from `first` on.
  struct LevelStage {
    int from, to, first, replicas;
  };

  /// The parts of the fastest pipeline from a to b, in order.
  std::vector<LevelStage> parts(int a, int b) const;

 private:
  int count() const { return work_.cuts.count(); }
  double seconds(int a, int b, int replicas) const { return (*seconds_[replicas])[work_.cuts.pair(a, b)]; }
  double parameters(int a, int b) const;
  bool fits(int a, int b, int machines, int replicas) const;
  bool allows(int replicas) const { return seconds_[replicas] != nullptr; }
  struct FirstStage {
    double seconds;
    int replicas;
  };
  /// The layers from a to b as one stage on the first `machines` machines; some may stand idle with options.fewer.
  FirstStage alone(int a, int b, int machines) const;
  double edge(int cut, int replicas) const;
  double last_stage(int c, int b, int replicas) const;
  double best_split(const std::vector<double>& before, const std::vector<double>& last, int a, int b, int m,
                    int r) const;

  const Workload& work_;
  const PipeDreamOptions& options_;
  int machines_, inside_;
  Rates rates_;
  std::vector<const std::vector<double>*> seconds_;
};

/// The dynamic programs of all levels. A machine of a stage with several machines may have fewer numbers of replicas
/// inside, so a level is searched once for each set of these numbers.
class HierarchySearch {
 public:
  /// Both must outlive the search.
  HierarchySearch(const Workload&, const PipeDreamOptions&);

  /// Devices of a machine that is made of this number of levels.
  int devices_inside(std::size_t levels) const;
  const LevelSearch& search(std::size_t level, const ReplicaCounts&);
  /// Seconds on a machine that is made of this number of levels, in the layout of compute_seconds().
  const std::vector<double>& seconds(std::size_t levels, const ReplicaCounts&);
  /// Adds the stages of a part of `level` that runs on the machines of that level which start at these devices.
  void add_stages(std::size_t level, const ReplicaCounts&, int from, int to, const std::vector<int>& machines,
                  std::vector<FoundStage>&);
  std::int64_t states() const { return states_; }

 private:
  struct SolvedLevel {
    LevelSearch search;
    std::vector<double> seconds;  ///< Empty until they are asked for.
  };
  SolvedLevel& solved(std::size_t level, const ReplicaCounts&);

  const Workload& work_;
  const PipeDreamOptions& options_;
  std::vector<double> compute_;
  std::vector<std::map<ReplicaCounts, SolvedLevel>> levels_;
  std::int64_t states_ = 0;
};

}  // namespace stagecraft::chain_partition
