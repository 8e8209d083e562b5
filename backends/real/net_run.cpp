// Runs the operations of a stage on some samples with the kernels of a device: forward, and the two halves of backward.

#include "backends/real/net_run.hpp"

#include <algorithm>

#include <fmt/core.h>

namespace stagecraft::real {
namespace {

/// Times one part of one operation, if there is a stopwatch.
class Lap {
 public:
  Lap(Stopwatch* watch, LayerPass part, std::size_t node) : watch_(watch) {
    if (watch_) watch_->start(part, node);
  }
  Lap(const Lap&) = delete;
  Lap& operator=(const Lap&) = delete;
  ~Lap() {
    if (watch_) watch_->stop();
  }

 private:
  Stopwatch* watch_;
};

}  // namespace

std::int64_t Samples::rows(std::int64_t of_sample) const {
  if (sequences.empty()) return count * of_sample;
  std::int64_t tokens = 0;
  for (const Sequence& s : sequences) tokens += s.length;
  return tokens * of_sample / tokens_of_sample;
}

/// What the data set gives.
Array NetRun::data_array(DeviceMemory& memory, const Node& node, const Samples& s) const {
  return {memory, s.count, s.rows(data_numbers(node)) / s.count, Use::Activations, NumberWidth::Wide};
}

const Operation& NetRun::of_length(const Operation& op, const Samples& s, int length) const {
  const auto [at, is_new] = of_length_.try_emplace({&op, length}, op);
  if (is_new) at->second.rows = static_cast<int>(std::int64_t{op.rows} * length / s.tokens_of_sample);
  return at->second;
}

template <class Visit>
void NetRun::each_length(std::size_t n, const Call& pack, const Samples& s, Visit&& visit) const {
  if (s.sequences.empty()) {
    Call whole = pack;
    return visit(
        whole, [](const Tensor& t) { return t; }, std::size_t{0});
  }
  Kernels& kernels = memory_->kernels();
  const Operation& op = *net_->nodes[n].operation;
  const std::vector<Tensor> inputs(pack.inputs.begin(), pack.inputs.end());
  const std::int64_t tokens = s.rows(s.tokens_of_sample);
  std::int64_t before = 0, saved_before = 0;
  const auto at = [&](const Tensor& t, std::int64_t number) {
    return t.data ? static_cast<char*>(t.data) + number * static_cast<std::int64_t>(width_of(kernels, t)) : nullptr;
  };
  for (std::size_t q = 0; q < s.sequences.size(); ++q) {
    const int length = s.sequences[q].length;
    const auto slice = [&](const Tensor& t) -> Tensor {
      return {at(t, t.rows * before / tokens * t.columns), t.rows * length / tokens, t.columns, t.is_wide};
    };
    std::vector<Tensor> own_inputs;
    for (const Tensor& input : inputs) own_inputs.push_back(slice(input));
    Call one = pack;
    one.operation = &of_length(op, s, length);
    one.samples = 1;
    one.inputs = own_inputs;
    one.output = op.is_loss() ? Tensor{} : slice(pack.output);
    const std::int64_t saved = pack.saved ? kernels.saved_numbers(*one.operation, 1) : 0;
    one.saved = {at(pack.saved, saved_before), 1, saved, pack.saved.is_wide};
    if (op.kind != OperationKind::SumSquare) one.scale = length / s.tokens_of_iteration;
    visit(one, slice, q);
    before += length, saved_before += saved;
  }
}

/// The kernels take the mean over the rows that are here; where devices divide rows, that is a part of the mean.
double NetRun::scale(const Node& node, const Samples& s) const {
  if (node.operation->kind == OperationKind::SumSquare) return 1;
  const double parts = node.all_rows > 0 ? node.all_rows / node.rows : 1;
  return 1.0 / static_cast<double>(s.mini_batch) / parts;
}

/// Inputs that are not kept any more have their shape, but no data.
Call NetRun::call(std::size_t n, const Samples& s, const void* node_weights, const Activations& a) const {
  const Node& node = net_->nodes[n];
  inputs_.clear();
  for (const int v : node.inputs) {
    const Value& value = net_->values[v];
    inputs_.push_back({a.values[v].data(), rows_of(value, s, a), value.columns, value.is_wide});
  }
  Call c;
  c.operation = node.operation;
  c.samples = s.count;
  c.inputs = inputs_;
  c.weights = node_weights;
  if (node.output >= 0) {
    const Value& out = net_->values[node.output];
    c.output = {a.values[node.output].data(), rows_of(out, s, a), out.columns, out.is_wide};
  }
  c.saved = a.saved[n].tensor();
  c.scale = scale(node, s);
  c.first_row = node.first_row;
  c.first_word = node.first_word, c.words = node.words;
  if (node.routing >= 0) c.expert_rows = a.routings.at(node.routing).expert_rows;
  return c;
}

/// Numbers that the data set gives for one sample: inputs, or what a loss compares with; of other operations none.
std::int64_t NetRun::data_numbers(const Node& node) const {
  const Operation& op = *node.operation;
  if (op.kind == OperationKind::Input) return net_->values[node.output].numbers();
  if (!op.is_loss()) return 0;
  return op.kind == OperationKind::CrossEntropy ? op.rows : static_cast<std::int64_t>(op.rows) * op.columns;
}

/// A sequence has the first rows of the sample of its number.
void NetRun::make_sequence_data(const Node& node, const Samples& s, Array& into) const {
  const std::int64_t numbers = data_numbers(node);
  const int iteration = static_cast<int>(s.first / s.mini_batch);
  std::vector<double> host, whole(numbers);
  for (const Sequence& sequence : s.sequences) {
    if (node.operation->kind == OperationKind::Input)
      data_->input(node.input_number, iteration, sequence.number, whole);
    else
      data_->target(iteration, sequence.number, whole);
    host.insert(host.end(), whole.begin(), whole.begin() + numbers * sequence.length / s.tokens_of_sample);
  }
  memory_->kernels().upload(host, into.data());
}

void NetRun::make_data(const Node& node, const Samples& s, Array& into) const {
  if (!s.sequences.empty()) return make_sequence_data(node, s, into);
  const std::size_t numbers = data_numbers(node), rows = node.operation->rows;
  std::vector<double> host(numbers * static_cast<std::size_t>(s.count));
  std::vector<double> all_rows(node.all_rows > node.operation->rows ? numbers / rows * node.all_rows : 0);
  for (std::int64_t i = 0; i < s.count; ++i) {
    const std::int64_t at = s.first + i, sample = s.evaluation ? at : at % s.mini_batch;
    const int iteration = s.evaluation ? -1 : static_cast<int>(at / s.mini_batch);
    const std::span<double> part{host.data() + i * numbers, numbers};
    const std::span<double> row = all_rows.empty() ? part : std::span(all_rows);
    if (node.operation->kind == OperationKind::Input)
      data_->input(node.input_number, iteration, sample, row);
    else
      data_->target(iteration, sample, row);
    if (all_rows.empty()) continue;
    const auto first = all_rows.begin() + static_cast<std::ptrdiff_t>(numbers / rows * node.first_row);
    std::copy_n(first, numbers, part.begin());
  }
  memory_->kernels().upload(host, into.data());
}

Array NetRun::saved_array(const Node& node, std::int64_t samples, std::int64_t numbers) const {
  const bool is_wide = saves_wide(*node.operation) || node.exchange == Exchange::RingKeys;
  return {*memory_, samples, numbers, Use::Activations, is_wide ? NumberWidth::Wide : NumberWidth::Narrow};
}

bool NetRun::is_made(std::size_t n, const Samples& s) const {
  return !s.evaluation && (staged_.contains({n, s.first % s.mini_batch}) || prepared_.contains({n, s.first}));
}

std::size_t NetRun::prepare(const Samples& s, DeviceMemory& apart) {
  std::size_t bytes = 0;
  for (std::size_t n = 0; n < net_->nodes.size(); ++n) {
    const std::int64_t numbers = data_numbers(net_->nodes[n]);
    if (numbers == 0) continue;
    Array& array = prepared_[{n, s.first}] = data_array(apart, net_->nodes[n], s);
    make_data(net_->nodes[n], s, array);
    bytes += bytes_of(memory_->kernels(), array.tensor());
  }
  return bytes;
}

void NetRun::load(std::size_t n, const Samples& s, Array& into) const {
  Kernels& kernels = memory_->kernels();
  const auto copy = [&](const Array& from) {
    if (width_of(kernels, from.tensor()) != width_of(kernels, into.tensor()))
      return kernels.narrow(from.tensor(), into.tensor());
    kernels.copy(from.data(), into.data(), bytes_of(kernels, from.tensor()));
  };
  if (kernels.width() == kMixedWidth && !into.tensor().is_wide && !is_made(n, s)) {
    Array wide = data_array(*memory_, net_->nodes[n], s);
    make_data(net_->nodes[n], s, wide);
    return copy(wide);
  }
  if (s.evaluation) return make_data(net_->nodes[n], s, into);
  if (const auto it = staged_.find({n, s.first % s.mini_batch}); it != staged_.end()) return copy(it->second);
  if (const auto it = prepared_.find({n, s.first}); it != prepared_.end()) return copy(it->second);
  make_data(net_->nodes[n], s, into);
}

void NetRun::stage(const Samples& s, DeviceMemory& apart) {
  for (std::size_t n = 0; n < net_->nodes.size(); ++n) {
    const std::int64_t numbers = data_numbers(net_->nodes[n]);
    if (numbers == 0) continue;
    const std::pair key{n, s.first % s.mini_batch};
    const auto old = staged_.extract(key);  // Or it would be loaded from itself.
    Array array = old.empty() ? data_array(apart, net_->nodes[n], s) : old.mapped();
    load(n, s, array);
    staged_[key] = array;
  }
}

Array NetRun::targets(std::size_t n, const Samples& s) const {
  const Operation& op = *net_->nodes[n].operation;
  Array array(*memory_, s.rows(op.rows), op.kind == OperationKind::CrossEntropy ? 1 : op.columns, Use::Activations,
              NumberWidth::Wide);
  load(n, s, array);
  return array;
}

/// Probabilities of attention are for the keys of all rows, of which a context group has divided the queries.
std::int64_t NetRun::saved_numbers(const Node& node, const Samples& s) const {
  if (node.exchange == Exchange::RingKeys) return std::int64_t{2} * node.operation->heads * node.rows;
  if (node.operation->kind == OperationKind::Attention && node.all_rows > node.rows)
    return keeps(*node.operation).numbers / node.rows * node.all_rows;
  if (s.sequences.empty()) return memory_->kernels().saved_numbers(*node.operation, s.count);
  std::int64_t sum = 0;
  for (const Sequence& q : s.sequences)
    sum += memory_->kernels().saved_numbers(of_length(*node.operation, s, q.length), 1);
  return sum;
}

void NetRun::forward_each_length(std::size_t n, const Call& c, const Samples& s) const {
  each_length(n, c, s, [&](const Call& one, auto&&, std::size_t) { memory_->kernels().forward(one); });
}

void NetRun::weight_gradient_each_length(std::size_t n, const Call& c, const Samples& s, const Tensor& d_output,
                                         void* d_weights) const {
  each_length(n, c, s, [&](const Call& one, auto&& slice, std::size_t) {
    memory_->kernels().weight_gradient(one, slice(d_output), d_weights);
  });
}

void NetRun::make_output(const Node& node, const Samples& s, Activations& a) const {
  const Value& out = net_->values[node.output];
  a.values[node.output] = Array(*memory_, rows_of(out, s, a), out.columns, Use::Activations, out.number_width());
}

void NetRun::run_node(const Node& node, std::size_t n, const Samples& s, const void* weights, Activations& a) const {
  const Operation& op = *node.operation;
  if (only_exchanges(node)) return exchange(node, s, a);
  if (is_fused_forward(n)) return;
  if (const std::int64_t saved = saved_numbers(node, s); saved > 0) a.saved[n] = saved_array(node, s.count, saved);
  if (node.output >= 0) make_output(node, s, a);
  if (op.kind == OperationKind::Input) return load(n, s, a.values[node.output]);
  Array gathered;
  Call c = call(n, s, weights_of(node, weights, gathered), a);
  if (node.exchange == Exchange::RingKeys) return ring_attention(node, c);
  if (node.feeds_gelu && fuses()) {
    const KeptCall product(c);  // The other call takes its list.
    make_output(net_->nodes[n + 1], s, a);
    return memory_->kernels().forward_with_gelu(product.call(), call(n + 1, s, nullptr, a));
  }
  if (!op.is_loss()) return forward_each_length(n, c, s);
  const Array target = targets(n, s);
  inputs_.push_back(target.tensor());
  c.inputs = inputs_;
  each_length(n, c, s, [&](Call& one, auto&&, std::size_t) {
    one.output = a.losses.emplace_back(*memory_, 1, 1, Use::Activations, NumberWidth::Wide).tensor();
    if (node.exchange == Exchange::DividedLoss) return divided_loss(one);
    memory_->kernels().forward(one);
  });
}

double NetRun::loss(const std::vector<Array>& losses) const {
  double sum = 0;
  for (const Array& number : losses) {
    double loss = 0;
    memory_->kernels().download(number.data(), {&loss, 1});
    sum += loss;
  }
  return sum;
}

void NetRun::forward(const Samples& s, const void* weights, bool keep, Activations& a) const {
  a.values.resize(net_->values.size());
  a.saved.resize(net_->nodes.size());
  a.losses.clear();
  std::vector<int> users(net_->values.size());
  for (std::size_t v = 0; v < users.size(); ++v) users[v] = net_->values[v].users;
  for (const Crossing& c : net_->outputs)
    for (const int v : c.values) ++users[v];
  if (net_->scored >= 0) ++users[net_->scored];
  for (std::size_t n = 0; n < net_->pass_nodes; ++n) {
    const Node& node = net_->nodes[n];
    const Lap lap(watch_, LayerPass::Forward, n);
    run_node(node, n, s, weights, a);
    if (!keep || remakes(node)) a.saved[n] = {};
    for (const int v : node.inputs) {
      const std::size_t i = v;
      if (--users[i] == 0 && !(keep && net_->values[i].is_saved)) a.values[i] = {};
    }
  }
}

/// The output once more as well, which its readers may still have.
void NetRun::remake(std::size_t n, const Samples& s, const void* weights, Activations& a) const {
  const Node& node = net_->nodes[n];
  const Value& out = net_->values[node.output];
  a.saved[n] = saved_array(node, s.count, saved_numbers(node, s));
  const Array output(*memory_, rows_of(out, s, a), out.columns, Use::Activations);
  Array gathered;
  Call c = call(n, s, weights_of(node, weights, gathered), a);
  c.output = output.tensor();
  forward_each_length(n, c, s);
}

/// Where the gradient of a value goes; makes the array if it is the first one.
Gradient NetRun::gradient_of(int v, const Samples& s, Activations& a) const {
  const Value& value = net_->values[v];
  if (!value.needs_gradient) return {};
  Array& gradient = a.gradients[v];
  const bool add = static_cast<bool>(gradient);
  if (!add) gradient = Array(*memory_, rows_of(value, s, a), value.columns, Use::Activations);
  return {gradient.tensor(), add};
}

void NetRun::input_side_of(std::size_t n, const Samples& s, const Call& c, Activations& a) const {
  const Node& node = net_->nodes[n];
  std::vector<Gradient> gradients;
  bool wanted = false;
  for (const int v : node.inputs) {
    gradients.push_back(gradient_of(v, s, a));
    wanted = wanted || gradients.back().tensor;
  }
  if (!wanted) return;
  const Tensor from = node.output >= 0 ? a.gradients[node.output].tensor() : Tensor{};
  if (node.exchange == Exchange::RingKeys) return ring_attention_gradient(node, c, from, gradients.front());
  if (!node.reads_gelu || !fuses())
    return each_length(n, c, s, [&](const Call& one, auto&& slice, std::size_t) {
      std::vector<Gradient> parts = gradients;
      for (Gradient& part : parts) part.tensor = slice(part.tensor);
      memory_->kernels().input_gradient(one, slice(from), parts);
    });
  const KeptCall product(c);  // The other call takes its list.
  const Gradient d_input = gradient_of(net_->nodes[n - 1].inputs.front(), s, a);
  memory_->kernels().input_gradient_with_gelu(product.call(), from, gradients.front(), call(n - 1, s, nullptr, a),
                                              d_input);
}

/// Adds the gradient of the weights of a node, over all samples, to `sum`.
void NetRun::add_weight_gradients(std::size_t n, const Call& c, const Samples& s, const Tensor& d_output,
                                  void* sum) const {
  each_length(n, c, s, [&](const Call& one, auto&& slice, std::size_t) {
    add_weight_gradient(net_->nodes[n], one, slice(d_output), sum);
  });
}

void NetRun::backward_node(std::size_t n, const Samples& s, const void* weights, bool input_side, void* sum,
                           Activations& a) const {
  const Node& node = net_->nodes[n];
  if (node.operation->kind == OperationKind::Input) return;
  const bool flows = node.output < 0 || a.gradients[node.output];
  if (!flows) return;
  if (only_exchanges(node)) {
    if (input_side) {
      const Lap lap(watch_, LayerPass::InputGradient, n);
      exchange_back(node, s, a);
    }
    a.gradients[node.output] = {};
    return;
  }
  const bool again = input_side && remakes(node);
  if (again) remake(n, s, weights, a);
  Array gathered;
  Call c = call(n, s, nullptr, a);
  if (input_side) {
    const Lap lap(watch_, LayerPass::InputGradient, n);
    c.weights = weights_of(node, weights, gathered);
    if (!is_fused_backward(n)) input_side_of(n, s, c, a);
  }
  if (again) a.saved[n] = {};
  if (sum != nullptr && node.count > 0) {
    const Lap lap(watch_, LayerPass::WeightGradient, n);
    add_weight_gradients(n, c, s, a.gradients[node.output].tensor(), sum);
  }
  // The weights of the node may still wait for it.
  if (node.output >= 0 && (sum != nullptr || node.count == 0)) a.gradients[node.output] = {};
}

void NetRun::backward(const Samples& s, const void* weights, bool input_side, void* sum, Activations& a,
                      const std::function<void(std::size_t node)>& after_node) const {
  a.gradients.resize(net_->values.size());
  for (std::size_t n = net_->pass_nodes; n-- > 0;) {
    backward_node(n, s, weights, input_side, sum, a);
    if (after_node) after_node(n);
  }
}

std::string NetRun::not_finite(const Activations& a, const Workload& workload) const {
  for (const Node& node : net_->nodes) {
    if (node.output < 0) continue;
    const Array& value = a.values[node.output];
    if (!value || memory_->kernels().finite(value.tensor())) continue;
    const WorkloadLayer& layer = workload.layers[LayerId{node.layer}];
    return fmt::format("the output of the layer '{}' ({}) has numbers that are not finite", layer.name,
                       to_text(node.operation->kind));
  }
  return {};
}

}  // namespace stagecraft::real
