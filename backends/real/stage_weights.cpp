// Draws the weights at the start, equal for every plan; cuts the part of a device out of the weights of a whole stage,
// and puts such parts together.

#include "backends/real/stage_weights.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/core/cores.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/threads.hpp"
#include "sim/training/random.hpp"

namespace stagecraft::real {

namespace {

/// Calls visit(offset in the undivided weights, offset in the weights of the part, count).
template <class Visit>
void for_each_slice(const StageNet& part, const StageNet& whole, Visit&& visit) {
  for (const Node& to : part.nodes) {
    if (!to.owns_weights) continue;
    const auto from = std::find_if(whole.nodes.begin(), whole.nodes.end(), [&](const Node& n) {
      return n.owns_weights && n.layer == to.layer && n.place == to.place;
    });
    STAGECRAFT_CHECK(from != whole.nodes.end());
    for (const WeightSlice& s : to.slices) visit(from->weights + s.whole, to.weights + s.part, s.count);
  }
}

}  // namespace

std::vector<double> part_of_weights(const StageNet& part, const StageNet& whole, const std::vector<double>& weights) {
  std::vector<double> numbers(part.weights, 0);
  for_each_slice(part, whole, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
    std::copy_n(weights.begin() + from, count, numbers.begin() + to);
  });
  return numbers;
}

void add_part(const StageNet& part, const StageNet& whole, const std::vector<double>& weights,
              std::vector<double>& whole_weights) {
  for_each_slice(part, whole, [&](std::int64_t to, std::int64_t from, std::int64_t count) {
    std::copy_n(weights.begin() + from, count, whole_weights.begin() + to);
  });
}

// Variance 1 / inputs (Glorot and Bengio, 2010), 2 / inputs before a ReLU (He et al., 2015); embeddings 0.02 as GPT-2.
namespace {

/// Writes the weights that the model has, zeros where they are added, or ones where they multiply. False: they are
/// drawn.
bool starts_as_given(const TensorOperation& op, double* numbers) {
  const TensorOperand& weights = *op.weights();
  if (!weights.values.empty()) {
    std::copy(weights.values.begin(), weights.values.end(), numbers);
    return true;
  }
  const bool multiplies = op.function == TensorFunction::Multiply || op.function == TensorFunction::Divide ||
                          op.function == TensorFunction::BatchNorm;
  if (multiplies) std::fill_n(numbers, numbers_of(weights.shape), 1.0);
  return multiplies || op.function == TensorFunction::Add || op.function == TensorFunction::Subtract;
}

/// Weights of one operation, drawn from a separate stream of numbers: any thread may draw them, at any time.
struct WeightDrawing {
  const StageNet& net;
  const Workload& workload;
  bool whole;
  std::int64_t distinct;
  std::vector<double>& weights;

  void draw(std::size_t n) const {
    const Node& node = net.nodes[n];
    if (!node.owns_weights) return;
    const Operation& op = *node.operation;
    double* const numbers = weights.data() + node.weights;
    const std::string& layer = workload.layers[LayerId{node.layer}].name;
    Rng rng(workload.training.seed, fmt::format("weights of {}.{}", layer, node.place));
    const auto inner = static_cast<std::int64_t>(op.inner), columns = static_cast<std::int64_t>(op.columns);
    if (op.kind == OperationKind::LayerNorm || op.kind == OperationKind::RmsNorm) {
      std::fill_n(numbers, columns, 1.0);
      return;
    }
    if (op.kind == OperationKind::HeadNorm) {
      for (const std::int64_t first : {std::int64_t{0}, second_block(op, net.width)})
        std::fill_n(numbers + first, head_shape(op).query, 1.0);
      return;
    }
    const bool is_tensor = op.kind == OperationKind::Tensor;
    if (is_tensor && starts_as_given(*op.tensor, numbers)) return;
    const bool relu = n + 1 < net.nodes.size() && net.nodes[n + 1].operation->kind == OperationKind::Relu;
    const bool multiplies = is_tensor && (op.tensor->function == TensorFunction::Product ||
                                          op.tensor->function == TensorFunction::Convolution);
    const bool words =
        op.kind == OperationKind::Embedding || op.kind == OperationKind::Prepend || (is_tensor && !multiplies);
    const double deviation = words ? 0.02 : std::sqrt((relu ? 2.0 : 1.0) / static_cast<double>(inner));
    const std::int64_t matrices = op.kind == OperationKind::GroupedLinear ? op.experts : 1;
    const std::int64_t drawn = words       ? node.count
                               : is_tensor ? blocks(op, net.width).first
                                           : matrices * inner * columns;
    const std::int64_t fresh = std::min(drawn, distinct);
    for (std::int64_t i = 0; i < fresh; ++i) numbers[i] = whole ? rng.integer(-1, 1) : deviation * normal(rng);
    for (std::int64_t i = fresh; i < drawn; ++i) numbers[i] = numbers[i - fresh];
  }
};

}  // namespace

std::vector<double> initial_weights(const StageNet& net, const Workload& workload, bool whole, std::int64_t distinct) {
  constexpr std::int64_t kWorthThreads = std::int64_t{1} << 22;  // About 0.1 s on one core.
  std::vector<double> weights(net.weights, 0);
  const WeightDrawing drawing{net, workload, whole, distinct, weights};
  const int threads = net.weights >= kWorthThreads ? usable_cores().count() : 1;
  run_tasks(static_cast<int>(net.nodes.size()), threads, [&](int n) { drawing.draw(static_cast<std::size_t>(n)); });
  return weights;
}

}  // namespace stagecraft::real
