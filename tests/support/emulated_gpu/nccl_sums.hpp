#pragma once

#include <string>
#include <vector>

#include "tests/support/emulated_gpu/nccl_ranks.hpp"

namespace stagecraft::emulated_gpu {

/// What a rank does of an all-reduce: gives its numbers to all others and adds up those of all. The order is a tree
/// that depends on the number of ranks alone: halves of them, then the two halves. Of three ranks it is not one after
/// another.
class Sum {
 public:
  /// `name`: the same on all ranks, and of no other sum.
  Sum(ncclComm& communicator, const Half& own, std::string name)
      : communicator_(&communicator), half_(own), name_(std::move(name)) {}

  void start(bool silent);
  bool over();

 private:
  std::string file(int from, int to) const { return name_ + "." + std::to_string(from) + "." + std::to_string(to); }

  ncclComm* communicator_;
  Half half_;
  std::string name_;
  std::vector<std::string> parts_;  ///< Of each rank; empty: has not come.
  bool over_ = false;
};

}  // namespace stagecraft::emulated_gpu
