#pragma once

#include <array>
#include <vector>

#include "sim/schedule/v_rows.hpp"
#include "sim/schedule/zero_bubble.hpp"

namespace stagecraft {

/// All that a search for rows knows of the work. Every message takes `hop` seconds.
struct VWork {
  std::vector<std::vector<RankCost>> costs;  ///< [rank][chunk]
  double hop = 0;
  int micro_batches = 1;
  int ranks() const { return static_cast<int>(costs.size()); }
};

/// The longest time from the start of a rank's first pass to the end of its last, every pass as early as it can.
double span_of(const VRows&, const VWork&);

/// What no order takes less than that keeps at most some activations on a rank. Behind the first forward of chunk 1,
/// and the first gradient of each chunk, stands all that micro-batch 0 has to come round for; before it a rank can only
/// run what needs no such pass and fits.
class VFloor {
 public:
  explicit VFloor(const VWork&);
  double operator()(int activations) const;

 private:
  double of(int rank, int activations) const;

  VWork work_;
  std::vector<std::array<double, 3>> ways_;  ///< Forward and forward, forward and gradient, gradient and gradient.
};

}  // namespace stagecraft
