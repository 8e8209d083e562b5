#pragma once

#include <string>
#include <vector>

#include "tests/support/emulated_gpu/nccl_ranks.hpp"

namespace stagecraft::emulated_gpu {

/// A rank's part of an all-reduce: gives its numbers to all others and adds up the numbers of all. The order is a tree
/// that depends on the number of ranks alone: each half of them, then the two halves. For three or more ranks that is
/// not the order of the ranks.
class Sum {
 public:
  /// `name` is equal on all ranks and belongs to no other sum.
  Sum(ncclComm& communicator, const Half& sent_half, std::string name)
      : communicator_(&communicator), half_(sent_half), name_(std::move(name)) {}

  void start(bool silent);
  bool over();

 private:
  std::string file(int from, int to) const { return name_ + "." + std::to_string(from) + "." + std::to_string(to); }

  ncclComm* communicator_;
  Half half_;
  std::string name_;
  std::vector<std::string> parts_;  ///< Numbers of each rank; empty: not here yet.
  bool over_ = false;
};

}  // namespace stagecraft::emulated_gpu
