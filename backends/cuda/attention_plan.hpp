#pragma once

#include <compare>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "backends/cuda/cudnn_graph.hpp"

namespace stagecraft::cuda {

/// Attention whose queries, keys and values lie next to each other in rows of 3 x heads x width numbers of 16 bits, and
/// whose results lie in rows of heads x width.
struct AttentionShape {
  std::int64_t samples = 1, heads = 1, rows = 1, width = 1;
  bool causal = false;
  auto operator<=>(const AttentionShape&) const = default;

  std::int64_t statistics() const { return samples * heads * rows; }  ///< Floats that a forward keeps.
};

/// Arrays of one attention. Gradients only in a backward; `gradient` has the layout of `input`.
struct AttentionArrays {
  const void* input = nullptr;
  void* output = nullptr;
  float* statistics = nullptr;  ///< Logarithm of the sum of exponentials of each row of scores.
  const void* d_output = nullptr;
  void* gradient = nullptr;
  float* row_sums = nullptr;  ///< Backward: as many floats as there are statistics, for its own use.
  void* workspace = nullptr;
};

/// What cuDNN executes for an attention and its backward, which computes the scores again from the statistics. The
/// operations are the ones that cuDNN's engines for attention recognize in cuDNN 9.0 to 9.20: products, scale, causal
/// mask, softmax. The backward multiplies its gradients of scores in one pass over all keys, without atomic additions.
class AttentionPlan {
 public:
  /// Throws cudnn::Refusal where there is no plan of the forward.
  AttentionPlan(const AttentionShape&, const cudnn::OwnedDescriptor& device);

  /// Empty where it has a backward; else why it has none. The statistics are enough for any other backward.
  const std::string& why_no_backward() const { return why_no_backward_; }
  const AttentionShape& shape() const { return shape_; }
  std::int64_t forward_workspace() const { return forward_.workspace; }  ///< Bytes.
  std::int64_t backward_workspace() const { return backward_->workspace; }
  void forward(cudnn::Handle handle, const AttentionArrays& arrays) { execute(forward_, handle, arrays, false); }
  void backward(cudnn::Handle handle, const AttentionArrays& arrays) { execute(*backward_, handle, arrays, true); }

  static cudnn::OperationGraph forward_graph(const AttentionShape&);
  static cudnn::OperationGraph backward_graph(const AttentionShape&);

 private:
  void execute(const cudnn::ExecutionPlan&, cudnn::Handle, const AttentionArrays&, bool is_backward);
  const cudnn::OwnedDescriptor& pack_of(const AttentionArrays&, bool is_backward);

  AttentionShape shape_;
  cudnn::ExecutionPlan forward_;
  std::optional<cudnn::ExecutionPlan> backward_;
  std::string why_no_backward_;
  float scale_, hidden_, one_ = 1;  ///< Numbers of the graphs, which packs point to.
  std::map<std::vector<void*>, cudnn::OwnedDescriptor>
      packs_;  ///< By workspace and arrays, which come again and again.
};

/// The plans of this process, one for each shape on a GPU. All plans of a GPU share a handle of cuDNN.
class AttentionPlans {
 public:
  /// Whether cuDNN has a plan for the current GPU; makes it on the first call of a shape.
  static bool has(const AttentionShape&);
  static bool has_backward(const AttentionShape&);
  /// Calls `execute` with the plan and a handle for the stream. No other plan is used meanwhile.
  static void use(const AttentionShape&, cudaStream_t,
                  const std::function<void(AttentionPlan&, cudnn::Handle)>& execute);
  /// A line for each shape that was asked for: "cuDNN 9.19.0", or why the kernels of this project compute it, or its
  /// backward.
  static std::vector<std::string> choices();

 private:
  struct State;
};

}  // namespace stagecraft::cuda
