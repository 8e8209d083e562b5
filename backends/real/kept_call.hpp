#pragma once

#include <vector>

#include "backends/real/kernels.hpp"

namespace stagecraft::real {

/// A call that is made later: its list of inputs lives as long as it.
class KeptCall {
 public:
  explicit KeptCall(const Call& call) : call_(call), inputs_(call.inputs.begin(), call.inputs.end()) {}
  Call call() const {
    Call call = call_;
    call.inputs = inputs_;
    return call;
  }

 private:
  Call call_;
  std::vector<Tensor> inputs_;
};

}  // namespace stagecraft::real
