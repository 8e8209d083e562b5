// Attention as graphs of cuDNN's operations, forward and backward, with one execution plan for each shape in the
// process.

#include "backends/cuda/attention_plan.hpp"

#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include <fmt/core.h>

namespace stagecraft::cuda {
namespace {

using cudnn::Array;
using cudnn::DataType;
using cudnn::Descriptor;
using cudnn::Pointwise;
using cudnn::Reduce;

enum Id : std::int64_t { Q = 1, K, V, O, Statistics, Scale, Masked, One, DO, DQ, DK, DV, RowSums };

/// The arrays of an attention of one shape.
struct Arrays {
  Array queries, keys_transposed, output, scores, scores_transposed, rows, plain;

  explicit Arrays(const AttentionShape& s) {
    const std::int64_t b = s.samples, h = s.heads, n = s.rows, d = s.width, in = 3 * h * d, out = h * d;
    queries = {{b, h, n, d}, {n * in, d, in, 1}, DataType::Bfloat16};
    keys_transposed = {{b, h, d, n}, {n * in, d, 1, in}, DataType::Bfloat16};
    output = {{b, h, n, d}, {n * out, d, out, 1}, DataType::Bfloat16};
    plain = {{b, h, n, d}, {h * n * d, n * d, d, 1}};
    scores = {{b, h, n, n}, {h * n * n, n * n, n, 1}};
    scores_transposed = {{b, h, n, n}, {h * n * n, n * n, 1, n}, DataType::Bfloat16};
    rows = {{b, h, n, 1}, {h * n, n, 1, 1}};
  }
  Array rounded_scores() const { return {scores.sizes, scores.strides, DataType::Bfloat16}; }
};

/// Minus infinity where a row does not see a key.
Descriptor masked(cudnn::OperationGraph& graph, const AttentionShape& shape, const Arrays& a, Descriptor x) {
  if (!shape.causal) return x;
  const Descriptor row = graph.index(2, a.scores, x), key = graph.index(3, a.scores, x);
  const Descriptor sees =
      graph.pointwise(Pointwise::GreaterOrEqual, {a.scores.sizes, a.scores.strides, DataType::Boolean}, row, key,
                      nullptr, DataType::Boolean);
  return graph.pointwise(Pointwise::Select, a.scores, x, graph.number(Masked), sees);
}

}  // namespace

cudnn::OperationGraph AttentionPlan::forward_graph(const AttentionShape& shape) {
  const Arrays a(shape);
  cudnn::OperationGraph graph;
  const Descriptor products = graph.between(a.scores);
  graph.matmul(graph.tensor(a.queries, Q), graph.tensor(a.keys_transposed, K), products);
  Descriptor s = graph.pointwise(Pointwise::Multiply, a.scores, products, graph.number(Scale));
  s = masked(graph, shape, a, s);
  const Descriptor largest = graph.reduce(Reduce::Maximum, a.rows, s);
  s = graph.pointwise(Pointwise::Subtract, a.scores, s, largest);
  s = graph.pointwise(Pointwise::Exp, a.scores, s);
  const Descriptor sum = graph.reduce(Reduce::Sum, a.rows, s);
  graph.pointwise_into(Pointwise::Add, graph.tensor(a.rows, Statistics), largest,
                       graph.pointwise(Pointwise::Log, a.rows, sum));
  const Descriptor p = graph.pointwise(Pointwise::Divide, a.rounded_scores(), s, sum);
  graph.matmul(p, graph.tensor(a.queries, V), graph.tensor(a.output, O));
  return graph;
}

// d_scores = scale * p * (dO V^T - rowsum(dO * O)), as Dao et al. (FlashAttention, NeurIPS 2022) have it.
cudnn::OperationGraph AttentionPlan::backward_graph(const AttentionShape& shape) {
  const Arrays a(shape);
  cudnn::OperationGraph graph;
  const Descriptor q = graph.tensor(a.queries, Q), k = graph.tensor(a.keys_transposed, K);
  const Descriptor d_output = graph.tensor(a.output, DO), scale = graph.number(Scale);
  const Descriptor along = graph.pointwise(Pointwise::Multiply, a.plain, d_output, graph.tensor(a.output, O));
  const Descriptor row_sums = graph.tensor(a.rows, RowSums);  // The engines want it in memory, and a factor before it.
  graph.pointwise_into(Pointwise::Multiply, row_sums, graph.reduce(Reduce::Sum, a.rows, along), graph.number(One));

  const Descriptor products = graph.between(a.scores);
  graph.matmul(q, k, products);
  Descriptor s = graph.pointwise(Pointwise::Multiply, a.scores, products, scale);
  s = graph.pointwise(Pointwise::Subtract, a.scores, s, graph.tensor(a.rows, Statistics));
  const Descriptor p = graph.pointwise(Pointwise::Exp, a.scores, masked(graph, shape, a, s));
  graph.matmul(graph.reshape(a.scores_transposed, p), d_output, graph.tensor(a.queries, DV));

  const Descriptor d_products = graph.between(a.scores);
  graph.matmul(d_output, graph.tensor(a.keys_transposed, V), d_products);
  Descriptor d = graph.pointwise(Pointwise::Subtract, a.scores, d_products, row_sums);
  d = graph.pointwise(Pointwise::Multiply, a.scores, d, p);
  d = graph.pointwise(Pointwise::Multiply, a.rounded_scores(), d, scale);
  graph.matmul(graph.reshape(a.scores_transposed, d), q, graph.tensor(a.queries, DK));
  graph.matmul(d, graph.reshape({a.queries.sizes, a.queries.strides, DataType::Bfloat16}, k),
               graph.tensor(a.queries, DQ));
  return graph;
}

namespace {

/// Versions whose results are wrong, as the support checks of NVIDIA's cudnn-frontend 1.x say: 9.10.0 and 9.10.1, and
/// before 9.16 a backward without a mask for padding whose keys are not a multiple of 128.
const AttentionShape& computed_right(const AttentionShape& shape) {
  constexpr std::size_t kBad = 91000, kAlsoBad = 91001, kAnyRows = 91600;
  const std::size_t version = cudnn::library().cudnnGetVersion();
  if (version == kBad || version == kAlsoBad || (version < kAnyRows && shape.rows % 128 != 0))
    throw cudnn::Refusal("cuDNN " + cudnn::version() + " has errors in attention of this many rows");
  return shape;
}

}  // namespace

AttentionPlan::AttentionPlan(const AttentionShape& shape, const cudnn::OwnedDescriptor& device)
    : shape_(computed_right(shape)),
      forward_(forward_graph(shape).plan(device)),
      scale_(static_cast<float>(1 / std::sqrt(static_cast<double>(shape.width)))),
      hidden_(-std::numeric_limits<float>::infinity()) {
  try {
    backward_.emplace(backward_graph(shape).plan(device));
  } catch (const cudnn::Refusal& e) {
    why_no_backward_ = e.what();
  }
}

void AttentionPlan::execute(const cudnn::ExecutionPlan& plan, cudnn::Handle handle, const AttentionArrays& arrays,
                            bool is_backward) {
  const cudnn::OwnedDescriptor& pack = pack_of(arrays, is_backward);
  cudnn::require(cudnn::library().cudnnBackendExecute(handle, plan.plan.raw(), pack.raw()), "an attention by cuDNN");
}

/// Making a pack takes twenty calls, so packs are kept. Iterations repeat their addresses; where they do not, there
/// are never many.
const cudnn::OwnedDescriptor& AttentionPlan::pack_of(const AttentionArrays& arrays, bool is_backward) {
  constexpr std::int64_t kBytes = 2;
  constexpr std::size_t kMostPacks = 256;
  const auto part = [&](const void* first, std::int64_t number) {  // Q, K or V.
    return static_cast<char*>(const_cast<void*>(first)) + number * shape_.heads * shape_.width * kBytes;
  };
  std::vector<std::int64_t> ids{Q, K, V, O, Statistics, Scale};
  std::vector<void*> data{part(arrays.input, 0), part(arrays.input, 1), part(arrays.input, 2),
                          arrays.output,         arrays.statistics,     &scale_};
  const auto add = [&](Id id, void* place) {
    ids.push_back(id);
    data.push_back(place);
  };
  if (shape_.causal) add(Masked, &hidden_);
  if (is_backward) {
    add(One, &one_);
    add(DO, const_cast<void*>(arrays.d_output));
    add(DQ, part(arrays.gradient, 0));
    add(DK, part(arrays.gradient, 1));
    add(DV, part(arrays.gradient, 2));
    add(RowSums, arrays.row_sums);
  }
  std::vector<void*> addresses = data;  // A backward has more of them than a forward.
  addresses.push_back(arrays.workspace);
  if (const auto it = packs_.find(addresses); it != packs_.end()) return it->second;
  if (packs_.size() == kMostPacks) packs_.clear();
  cudnn::OwnedDescriptor pack(cudnn::VariantPack);
  pack.set(cudnn::PackIds, cudnn::OfInt64, std::span<const std::int64_t>(ids));
  pack.set(cudnn::PackPointers, cudnn::OfPointer, std::span<void* const>(data));
  pack.set(cudnn::PackWorkspace, cudnn::OfPointer, arrays.workspace).finish();
  return packs_.emplace(std::move(addresses), std::move(pack)).first->second;
}

struct AttentionPlans::State {
  struct Choice {
    std::unique_ptr<AttentionPlan> plan;
    std::string why_not;  ///< Where there is no plan.
  };
  struct Gpu {
    cudnn::Handle handle = nullptr;
    std::map<AttentionShape, Choice> choices;
  };
  std::mutex mutex;
  std::map<int, Gpu> gpus;

  static State& of_process() {
    static State& state = *std::make_unique<State>().release();  // Never destroyed: CUDA libraries do not like to go.
    return state;
  }

  std::pair<Gpu&, const Choice&> choice(const AttentionShape& shape) {
    int number = 0;
    check(cudaGetDevice(&number), "cudaGetDevice");
    Gpu& gpu = gpus[number];
    const auto [it, is_new] = gpu.choices.try_emplace(shape);
    if (is_new) try {
        if (!gpu.handle) cudnn::require(cudnn::library().cudnnCreate(&gpu.handle), "a handle of cuDNN");
        it->second.plan = std::make_unique<AttentionPlan>(shape, cudnn::device_properties(number));
      } catch (const CudaError& e) {
        it->second.why_not = e.what();
      }
    return {gpu, it->second};
  }
};

bool AttentionPlans::has(const AttentionShape& shape) {
  State& state = State::of_process();
  const std::lock_guard lock(state.mutex);
  return state.choice(shape).second.plan != nullptr;
}

bool AttentionPlans::has_backward(const AttentionShape& shape) {
  State& state = State::of_process();
  const std::lock_guard lock(state.mutex);
  const auto& plan = state.choice(shape).second.plan;
  return plan && plan->why_no_backward().empty();
}

void AttentionPlans::use(const AttentionShape& shape, cudaStream_t stream,
                         const std::function<void(AttentionPlan&, cudnn::Handle)>& execute) {
  State& state = State::of_process();
  const std::lock_guard lock(state.mutex);
  const auto [gpu, choice] = state.choice(shape);
  if (!choice.plan) throw CudaError(choice.why_not);
  cudnn::require(cudnn::library().cudnnSetStream(gpu.handle, stream), "cudnnSetStream");
  execute(*choice.plan, gpu.handle);
}

namespace {

std::string choice_text(const AttentionPlan* plan, const std::string& why_not) {
  if (!plan) return "not by cuDNN: " + why_not;
  const std::string text = "cuDNN " + cudnn::version();
  return plan->why_no_backward().empty() ? text : text + ", but not its backward: " + plan->why_no_backward();
}

}  // namespace

std::vector<std::string> AttentionPlans::choices() {
  State& state = State::of_process();
  const std::lock_guard lock(state.mutex);
  std::vector<std::string> lines;
  for (const auto& [number, gpu] : state.gpus)
    for (const auto& [shape, choice] : gpu.choices)
      lines.push_back(fmt::format("{} x {} rows, {} heads of width {}{}, GPU {}: {}", shape.samples, shape.rows,
                                  shape.heads, shape.width, shape.causal ? ", causal" : "", number,
                                  choice_text(choice.plan.get(), choice.why_not)));
  return lines;
}

}  // namespace stagecraft::cuda
