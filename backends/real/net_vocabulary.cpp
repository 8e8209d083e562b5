// The part of NetRun that computes with words that the ranks of a pipeline divide: embeddings, records of scores, and
// their gradients.

#include "backends/real/net_run.hpp"

namespace stagecraft::real {
namespace {

/// Places after the nodes of forwards and backwards.
enum : std::size_t { kTokens, kEmbedding, kScores, kLoss };

std::int64_t offset_of(const Kernels& kernels, const Node& node) {
  return node.weights * static_cast<std::int64_t>(wide_width(kernels.width()));
}

}  // namespace

Array NetRun::look_up(const Samples& s, const void* weights) const {
  Activations a;
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  for (const std::size_t n : {net_->pass_nodes + kTokens, net_->pass_nodes + kEmbedding})
    run_node(net_->nodes[n], n, s, weights, a);
  return a.values[net_->nodes[net_->pass_nodes + kEmbedding].output];
}

void NetRun::look_up_gradient(const Samples& s, const Array& d_embedding, void* sum) const {
  const std::size_t tokens = net_->pass_nodes + kTokens, n = net_->pass_nodes + kEmbedding;
  Activations a;
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  run_node(net_->nodes[tokens], tokens, s, nullptr, a);
  add_weight_gradients(n, call(n, s, nullptr, a), s, d_embedding.tensor(), sum);
}

/// The loss of all rows at once: each has the same weight, whatever its sequence.
Call NetRun::loss_call(const Samples& s, const void* weights, const Tensor& target, const Activations& a) const {
  const std::size_t n = net_->pass_nodes + kLoss;
  Call c = call(n, s, weights, a);
  inputs_.push_back(target);
  c.inputs = inputs_;
  if (!s.sequences.empty()) c.scale = static_cast<double>(s.tokens_of_sample) / s.tokens_of_iteration;
  return c;
}

Array NetRun::record_scores(const Samples& s, const void* weights, const Array& input, bool with_gradient,
                            Activations& a) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t n = net_->pass_nodes + kScores, loss = net_->pass_nodes + kLoss;
  const Node& scores = net_->nodes[n];
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  a.values[scores.inputs.front()] = input;
  run_node(scores, n, s, weights, a);
  Array& scored = a.values[scores.output];
  const std::int64_t rows = scored.tensor().rows, words = scored.tensor().columns, inner = scores.operation->inner;
  a.saved[loss] = saved_array(net_->nodes[loss], rows, words);
  ScoreRecords records{{}, {}, with_gradient ? inner : 0};
  const Array here(*memory_, rows, ScoreRecords::columns(records.width), Use::Activations);
  records.here = here.tensor();
  Array gathered;
  const void* const numbers = weights_of(scores, weights, gathered);
  const Array target = targets(loss, s);
  kernels.divided_scores(ScoreStep::Record, loss_call(s, numbers, target.tensor(), a), records);
  scored = {};
  if (!with_gradient) return here;
  const Array weighted(*memory_, rows, inner, Use::Activations);
  const Gradient to{weighted.tensor(), false};
  kernels.input_gradient(call(n, s, numbers, a), a.saved[loss].tensor(), {&to, 1});
  kernels.copy_rows(weighted.data(), inner,
                    static_cast<char*>(here.data()) + ScoreRecords::kStatistics * kernels.width(),
                    here.tensor().columns, rows, inner);
  return here;
}

double NetRun::scores_gradient(const Samples& s, const void* weights, const ScoreRecords& records, void* sum,
                               Activations& a, Array* d_input) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t n = net_->pass_nodes + kScores, loss = net_->pass_nodes + kLoss;
  const Node& scores = net_->nodes[n];
  const Array number(*memory_, 1, 1, Use::Activations, NumberWidth::Wide), target = targets(loss, s);
  Call c = loss_call(s, nullptr, target.tensor(), a);
  c.output = number.tensor();
  kernels.divided_scores(ScoreStep::Gradient, c, records);
  Array gathered;
  const Call product = call(n, s, weights_of(scores, weights, gathered), a);
  const Tensor gradient = a.saved[loss].tensor();
  kernels.weight_gradient(product, gradient, static_cast<char*>(sum) + offset_of(kernels, scores));
  if (d_input) {
    *d_input = Array(*memory_, gradient.rows, scores.operation->inner, Use::Activations);
    const Gradient to{d_input->tensor(), false};
    kernels.input_gradient(product, gradient, {&to, 1});
  }
  return this->loss({number});
}

Array NetRun::recorded_gradient(const Samples& s, const ScoreRecords& records) const {
  Activations a;
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  const Array d_input(*memory_, records.joint.rows, records.width, Use::Activations);
  Call c = loss_call(s, nullptr, {}, a);
  c.output = d_input.tensor();
  memory_->kernels().divided_scores(ScoreStep::InputGradient, c, records);
  return d_input;
}

}  // namespace stagecraft::real
