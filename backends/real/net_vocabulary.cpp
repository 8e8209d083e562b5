// The part of NetRun that computes with words that the ranks of a pipeline divide: embeddings, records of scores, and
// their gradients.

#include "backends/real/net_run.hpp"

namespace stagecraft::real {
namespace {

/// Copies the first `count` columns, of wide numbers, to an array from its column `first` on.
void copy_wide_columns(Kernels& kernels, const Tensor& from, const Tensor& to, std::int64_t first, std::int64_t count) {
  const auto units = static_cast<std::int64_t>(wide_width(kernels.width()) / kernels.width());
  kernels.copy_rows(from.data, from.columns * units,
                    static_cast<char*>(to.data) + first * static_cast<std::int64_t>(wide_width(kernels.width())),
                    to.columns * units, from.rows, count * units);
}

}  // namespace

Activations NetRun::no_activations() const {
  Activations a;
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  return a;
}

Array NetRun::look_up(const Samples& s, const void* words) const {
  Activations a = no_activations();
  const std::size_t tokens = net_->pass_nodes + StageNet::Tokens, n = net_->pass_nodes + StageNet::Embedding;
  run_node(net_->nodes[tokens], tokens, s, nullptr, a);
  make_output(net_->nodes[n], s, a);
  forward_each_length(n, call(n, s, words, a), s);
  return a.values[net_->nodes[n].output];
}

void NetRun::look_up_gradient(const Samples& s, const Array& d_embedding, void* sum) const {
  Activations a = no_activations();
  const std::size_t tokens = net_->pass_nodes + StageNet::Tokens, n = net_->pass_nodes + StageNet::Embedding;
  run_node(net_->nodes[tokens], tokens, s, nullptr, a);
  weight_gradient_each_length(n, call(n, s, nullptr, a), s, d_embedding.tensor(), sum);
}

/// The loss of all rows at once: each has the same weight, whatever its sequence.
Call NetRun::loss_call(const Samples& s, const void* weights, const Tensor& target, const Activations& a) const {
  const std::size_t n = net_->pass_nodes + StageNet::Loss;
  Call c = call(n, s, weights, a);
  inputs_.push_back(target);
  c.inputs = inputs_;
  if (!s.sequences.empty()) c.scale = static_cast<double>(s.tokens_of_sample) / s.tokens_of_iteration;
  return c;
}

Array NetRun::record_scores(const Samples& s, const void* weights, const Array& input, bool with_gradient,
                            Activations& a) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t n = net_->pass_nodes + StageNet::Scores, loss = net_->pass_nodes + StageNet::Loss;
  const Node &enter = net_->word_node(StageNet::ScoresInput), &scores = net_->nodes[n];
  a = no_activations();
  a.values[enter.inputs.front()] = input;
  run_node(enter, net_->pass_nodes + StageNet::ScoresInput, s, weights, a);
  a.values[enter.inputs.front()] = {};
  run_node(scores, n, s, weights, a);
  Array& scored = a.values[scores.output];
  const std::int64_t rows = scored.tensor().rows, words = scored.tensor().columns, inner = scores.operation->inner;
  a.saved[loss] = saved_array(net_->nodes[loss], rows, words);
  ScoreRecords records{{}, {}, with_gradient ? inner : 0};
  const Array here(*memory_, rows, ScoreRecords::columns(records.width), Use::Activations, NumberWidth::Wide);
  records.here = here.tensor();
  Array gathered;
  const void* const numbers = with_gradient ? weights_of(scores, weights, gathered) : nullptr;
  const Array target = targets(loss, s);
  kernels.divided_scores(ScoreStep::Record, loss_call(s, numbers, target.tensor(), a), records);
  scored = {};
  if (!with_gradient) return here;
  const Array exponentials = rounded(*memory_, a.saved[loss], Use::Activations);
  const Array weighted(*memory_, rows, inner, Use::Activations, NumberWidth::Wide);
  const Gradient to{weighted.tensor(), false};
  kernels.input_gradient(call(n, s, numbers, a), exponentials.tensor(), {&to, 1});
  copy_wide_columns(kernels, weighted.tensor(), here.tensor(), ScoreRecords::kStatistics, inner);
  return here;
}

bool NetRun::divides_rows_of_scores() const {
  return net_->word_node(StageNet::ScoresInput).exchange == Exchange::GatherRows;
}

Array NetRun::join_in_group(const Samples& s, const Array& here, std::int64_t width) const {
  if (!groups_.tensor) return here;
  Kernels& kernels = memory_->kernels();
  const Tensor& t = here.tensor();
  const Array joint(*memory_, t.rows, t.columns, Use::Activations, NumberWidth::Wide);
  groups_.tensor.exchange(t, width_of(kernels, t), [&](std::span<const Tensor> members) {
    kernels.copy(members.front().data, joint.data(), bytes_of(kernels, t));
    for (const Tensor& next : members.subspan(1))
      kernels.divided_scores(ScoreStep::Join, {}, {{next.data, t.rows, t.columns, true}, joint.tensor(), width});
  });
  if (!divides_rows_of_scores()) return joint;
  const Array part(*memory_, t.rows / groups_.tensor.size(), t.columns, Use::Activations, NumberWidth::Wide);
  take_rows(groups_.tensor, *memory_, s.count, joint.tensor(), part.tensor());
  return part;
}

/// The joint statistics of all rows, where the devices of a tensor group exchange a part of them each.
Array NetRun::gather_statistics(const Samples& s, const Tensor& joint) const {
  const Array part(*memory_, joint.rows, ScoreRecords::kStatistics, Use::Activations, NumberWidth::Wide);
  copy_wide_columns(memory_->kernels(), joint, part.tensor(), 0, ScoreRecords::kStatistics);
  const Array whole(*memory_, joint.rows * groups_.tensor.size(), ScoreRecords::kStatistics, Use::Activations,
                    NumberWidth::Wide);
  gather_rows(groups_.tensor, *memory_, s.count, part.tensor(), whole.tensor());
  return whole;
}

/// The gradient over the words of the tensor group, for the rows that this device exchanges.
Array NetRun::add_in_group(const Samples& s, const Array& d_input) const {
  if (!groups_.tensor) return d_input;
  const Tensor& t = d_input.tensor();
  const bool divides = divides_rows_of_scores();
  const Array sum(*memory_, t.rows / (divides ? groups_.tensor.size() : 1), t.columns, Use::Activations,
                  NumberWidth::Wide);
  divides ? scatter_rows(groups_.tensor, *memory_, s.count, t, sum.tensor())
          : sum_over(groups_.tensor, *memory_, t, sum.tensor());
  return sum;
}

Array NetRun::scores_gradient(const Samples& s, const void* weights, ScoreRecords records, void* sum, Activations& a,
                              Array* d_input) const {
  Kernels& kernels = memory_->kernels();
  const std::size_t n = net_->pass_nodes + StageNet::Scores, loss = net_->pass_nodes + StageNet::Loss;
  const Node& scores = net_->nodes[n];
  Array statistics;
  if (divides_rows_of_scores()) statistics = gather_statistics(s, records.joint), records.joint = statistics.tensor();
  Array number(*memory_, 1, 1, Use::Activations, NumberWidth::Wide);
  const Array target = targets(loss, s);
  Call c = loss_call(s, nullptr, target.tensor(), a);
  c.output = number.tensor();
  kernels.divided_scores(ScoreStep::Gradient, c, records);
  const Array gradient = rounded(*memory_, a.saved[loss], Use::Activations);
  Array gathered;
  const Call product = call(n, s, weights_of(scores, weights, gathered), a);
  add_weight_gradient(scores, product, gradient.tensor(), sum);
  if (d_input) {
    const Array part(*memory_, gradient.tensor().rows, scores.operation->inner, Use::Activations, NumberWidth::Wide);
    const Gradient to{part.tensor(), false};
    kernels.input_gradient(product, gradient.tensor(), {&to, 1});
    *d_input = add_in_group(s, part);
  }
  return number;
}

Array NetRun::recorded_gradient(const Samples& s, const ScoreRecords& records) const {
  const Array d_input(*memory_, records.joint.rows, records.width, Use::Activations);
  Call c = loss_call(s, nullptr, {}, no_activations());
  c.output = d_input.tensor();
  memory_->kernels().divided_scores(ScoreStep::InputGradient, c, records);
  return d_input;
}

}  // namespace stagecraft::real
