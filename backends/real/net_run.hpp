#pragma once

#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "backends/real/array.hpp"
#include "backends/real/expert_routing.hpp"
#include "backends/real/weight_section.hpp"
#include "sim/training/task.hpp"

// Runs the operations of a StageNet on some samples: forward, and the two halves of backward.

namespace stagecraft::real {

/// Which samples a run is about: `count` from `first`, counted through the iterations of `mini_batch` samples each.
/// Iteration -1 is the evaluation set.
struct Samples {
  std::int64_t first = 0, count = 1, mini_batch = 1;
  bool evaluation = false;
  std::span<const Sequence> sequences = {};  ///< In place of whole samples; empty: samples are whole.
  std::int64_t tokens_of_sample = 1;
  double tokens_of_iteration = 0;  ///< A loss is a mean over the tokens of all sequences.

  /// Rows of a tensor that has these in a whole sample.
  std::int64_t rows(std::int64_t of_sample) const;
};

/// What lives from the forward of a micro-batch to its backward.
struct Activations {
  std::vector<Array> values;              ///< By value; values from other stages are put there before the forward.
  std::vector<Array> saved;               ///< By node.
  std::vector<Array> gradients;           ///< By value.
  std::vector<Array> losses;              ///< One number of each loss operation.
  std::map<int, ExpertRouting> routings;  ///< By the node that sends rows to experts.
};

enum class LayerPass : std::uint8_t { Forward, InputGradient, WeightGradient };

/// Measures the time that the operations of a net take.
class Stopwatch {
 public:
  virtual ~Stopwatch() = default;
  virtual void start(LayerPass, std::size_t node) = 0;
  virtual void stop() = 0;
};

/// Weights or gradients of a stage that devices with equal weights divide: each has its part of each section, and the
/// operations gather or scatter what they need, one after the other.
struct ShardedArrays {
  bool weights = false, gradients = false;
  std::vector<WeightSection> sections = {};
};

/// The operations of a stage on some samples, in one device's memory. Where groups of devices divide the stage, every
/// member runs the same operations in the same order and meets the others in them.
class NetRun {
 public:
  /// `remakes`: what attentions keep is dropped after a forward, and a backward recomputes it.
  NetRun(const StageNet& net, DeviceMemory& memory, const Dataset& data, Stopwatch* watch = nullptr,
         bool remakes = false, const MemberGroups& groups = {}, ShardedArrays sharded = {},
         const ExpertPlace& place = {})
      : net_(&net),
        memory_(&memory),
        data_(&data),
        watch_(watch),
        remakes_(remakes),
        groups_(groups),
        sharded_(std::move(sharded)),
        expert_place_(place) {}

  /// Makes now what the data set gives for these samples, in other memory of the device, so that a forward copies it;
  /// gives the bytes.
  std::size_t prepare(const Samples&, DeviceMemory& apart);
  /// Puts what the data set gives for these samples where the forwards of every iteration find it from then on.
  void stage(const Samples&, DeviceMemory& apart);
  /// Runs all operations. Values without readers left are dropped, unless `keep` and the backward needs them, or they
  /// leave the stage.
  void forward(const Samples&, const void* weights, bool keep, Activations&) const;
  /// The halves of a backward; `gradients` holds what came from later stages. Weight gradients are added to `sum`.
  /// `after_node`, if it is not empty, is called after each operation, the last one first.
  void backward(const Samples&, const void* weights, bool input_side, void* sum, Activations&,
                const std::function<void(std::size_t node)>& after_node = {}) const;
  /// The sum of what the loss operations gave; waits for them.
  double loss(const std::vector<Array>& losses) const;
  /// The part of a vocabulary that all ranks of a pipeline divide. look_up() gives what the words that are here make of
  /// an embedding, and zeros for others. `words` and `sum` are the weights of the embedding and their gradient.
  Array look_up(const Samples&, const void* words) const;
  void look_up_gradient(const Samples&, const Array& d_embedding, void* sum) const;
  /// The records of scores over the words that are here, with or without the gradient of their input.
  Array record_scores(const Samples&, const void* weights, const Array& input, bool with_gradient, Activations&) const;
  /// The records over the words of the tensor group, for the rows that this device exchanges with other ranks.
  Array join_in_group(const Samples&, const Array& here, std::int64_t width) const;
  /// After record_scores(): adds the gradient of the weights and gives the loss over all words, one number. Gives the
  /// part of the gradient of the input that the words of the tensor group have, in wide numbers, unless records have
  /// it.
  Array scores_gradient(const Samples&, const void* weights, ScoreRecords, void* sum, Activations&,
                        Array* d_input) const;
  /// The gradient of the input of the scores, from joint records.
  Array recorded_gradient(const Samples&, const ScoreRecords&) const;
  /// A value that is not finite, as a sentence; empty: there is none.
  std::string not_finite(const Activations&, const Workload&) const;

 private:
  void backward_node(std::size_t n, const Samples&, const void* weights, bool input_side, void* sum,
                     Activations&) const;
  void run_node(const Node&, std::size_t n, const Samples&, const void* weights, Activations&) const;
  // In net_vocabulary.cpp.
  Activations no_activations() const;
  Call loss_call(const Samples&, const void* weights, const Tensor& target, const Activations&) const;
  bool divides_rows_of_scores() const;
  Array gather_statistics(const Samples&, const Tensor& joint) const;
  Array add_in_group(const Samples&, const Array& d_input) const;

  std::int64_t data_numbers(const Node&) const;
  void make_data(const Node&, const Samples&, Array& into) const;
  void make_sequence_data(const Node&, const Samples&, Array& into) const;
  /// Calls visit(call, slice) for the samples at once, or for each sequence: the kernels know samples of equal length
  /// alone, and no sequence may attend to another. `slice` cuts other tensors of the same rows.
  template <class Visit>
  void each_length(std::size_t n, const Call&, const Samples&, Visit&& visit) const;
  void forward_each_length(std::size_t n, const Call&, const Samples&) const;
  void weight_gradient_each_length(std::size_t n, const Call&, const Samples&, const Tensor& d_output,
                                   void* d_weights) const;
  const Operation& of_length(const Operation&, const Samples&, int length) const;
  Array data_array(DeviceMemory&, const Node&, const Samples&) const;
  void load(std::size_t n, const Samples&, Array& into) const;
  Array targets(std::size_t n, const Samples&) const;
  Array saved_array(const Node&, std::int64_t samples, std::int64_t numbers) const;
  bool is_made(std::size_t n, const Samples&) const;  ///< By prepare() or stage().
  Call call(std::size_t n, const Samples&, const void* node_weights, const Activations&) const;
  Tensor part_of(const WeightSection&, void* parts, NumberWidth) const;
  const void* weights_of(const Node&, const void* weights, Array& gathered) const;
  void add_weight_gradient(const Node&, const Call&, const Tensor& d_output, void* sum) const;
  void add_weight_gradients(std::size_t n, const Call&, const Samples&, const Tensor& d_output, void* sum) const;
  std::int64_t saved_numbers(const Node&, const Samples&) const;
  static bool only_exchanges(const Node& n) {
    return n.exchange != Exchange::None && n.exchange != Exchange::DividedLoss && n.exchange != Exchange::RingKeys;
  }
  /// Rows of a value in all samples.
  std::int64_t rows_of(const Value& value, const Samples& s, const Activations& a) const {
    return value.routing >= 0 ? std::ssize(a.routings.at(value.routing).rows) : s.rows(value.rows);
  }
  ExpertRouting route(const Node&, const Activations&) const;
  void send_rows(const Node&, const Activations&, const Tensor& in, const Tensor& out) const;
  void return_rows(const Node&, const Activations&, const Tensor& in, const Tensor& out) const;
  void exchange(const Node&, const Samples&, Activations&) const;
  void gather_keys(const Samples&, const Tensor& in, const Tensor& keys) const;
  void return_keys(const Samples&, const Tensor& d_keys, const Tensor& d_in) const;
  void exchange_back(const Node&, const Samples&, Activations&) const;
  void divided_loss(Call&) const;
  void ring_attention(const Node&, const Call&) const;
  void ring_attention_gradient(const Node&, const Call&, const Tensor& d_output, const Gradient&) const;
  KeyPart key_part(const Node&, const Tensor& keys, int step) const;
  void pass_on(Array& part) const;
  bool remakes(const Node& node) const {
    return remakes_ && node.operation->kind == OperationKind::Attention && node.exchange != Exchange::RingKeys;
  }
  void remake(std::size_t n, const Samples&, const void* weights, Activations&) const;
  /// Whether the GELU at `n` is computed with the product before it, and its gradient with the one behind it.
  bool is_fused_forward(std::size_t n) const { return n > 0 && net_->nodes[n - 1].feeds_gelu && fuses(); }
  bool is_fused_backward(std::size_t n) const {
    return n + 1 < net_->nodes.size() && net_->nodes[n + 1].reads_gelu && fuses();
  }
  bool fuses() const { return memory_->kernels().fuses_gelu(); }
  void make_output(const Node&, const Samples&, Activations&) const;
  Gradient gradient_of(int value, const Samples&, Activations&) const;
  void input_side_of(std::size_t n, const Samples&, const Call&, Activations&) const;
  double scale(const Node&, const Samples&) const;

  const StageNet* net_;
  DeviceMemory* memory_;
  const Dataset* data_;
  Stopwatch* watch_;
  bool remakes_;
  MemberGroups groups_;
  ShardedArrays sharded_;
  ExpertPlace expert_place_;
  std::map<std::pair<std::size_t, std::int64_t>, Array> prepared_;  ///< By node and first sample.
  std::map<std::pair<std::size_t, std::int64_t>, Array> staged_;    ///< By node and first sample of the iteration.
  mutable std::vector<Tensor> inputs_;                              ///< Inputs of the call being made.
  mutable std::map<std::pair<const Operation*, int>, Operation> of_length_;  ///< Operations on shorter sequences.
};

}  // namespace stagecraft::real
