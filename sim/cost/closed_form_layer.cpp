#include "sim/cost/closed_form_layer.hpp"

#include <algorithm>
#include <cmath>

namespace stagecraft {
namespace {

/// Collectives of one pass.
struct PassCollectives {
  Seconds tensor{}, context{}, expert{}, weights{};
  int launches = 0;
};

TimeByClass pass_time(const TimeByClass& kernels, double kernel_count, const PassCollectives& c,
                      const Accelerator& device, const SoftwareStack& software) {
  const Hiding hiding = software.gathers_ahead ? Hiding::Pass : Hiding::Work;
  const Collectives list{{.axis = Axis::Tensor, .cost = c.tensor},
                         {.axis = Axis::Context, .cost = c.context},
                         {.axis = Axis::Expert, .cost = c.expert},
                         {.axis = Axis::Data, .hiding = hiding, .cost = c.weights}};
  return stagecraft::pass_time(kernels, kernel_count + c.launches, list, device, software);
}

TimeByClass pass_time(const std::vector<Kernel>& kernels, const PassCollectives& c, const Accelerator& device,
                      const SoftwareStack& software) {
  return pass_time(kernel_time(kernels, device), launch_count(kernels), c, device, software);
}

/// Kernels of one layer, and what they exchange.
struct LayerTerms {
  PassKernels kernels;
  double exchanged = 0;  ///< Bytes of one all-to-all, dispatch or combine.
};

/// The device and the format of a layer with terms switched off.
Accelerator without(const TrainingRun& run, const CostTerms& terms, Accelerator device) {
  if (!terms.launches || run.whole_graphs) device.launch = {};
  if (!terms.shapes) {
    device.multiprocessors = 0;
    device.attention_forward.fixed = device.attention_backward.fixed = {};
  }
  return device;
}

void drop_memory_bound(PassKernels& kernels) {
  for (std::vector<Kernel>* pass : {&kernels.forward, &kernels.input_gradient, &kernels.weight_gradient})
    for (Kernel& kernel : *pass) kernel.bytes = {};
}

/// The share of pairs of a query and a key that the causal mask, and the window of every second layer, leave.
double visible_pairs(const TransformerShape& model) {
  const double window = double(model.window) / model.sequence;
  return window > 0 && window < 1 ? (0.5 + window - window * window / 2) / 2 : 0.5;
}

/// Products of a group of `tensor` devices divide widths; a remainder is dropped, as frameworks refuse it.
class LayerBuilder {
 public:
  LayerBuilder(const TrainingRun& run, const Accelerator& device)
      : run_(run),
        model_(run.model),
        software_(run.software),
        tensor_(run.degrees.tensor),
        tokens_(tokens_of(run)),
        wide_(device.wide_format()) {}

  LayerTerms build(bool dense) {
    const double divided = run_.sequence_parallel ? tokens_ / double(tensor_) : tokens_;
    for (int i = 0; i < 2; ++i) {
      add(norm_kernels(divided * model_.hidden, software_));
      add(sum_kernels(divided * model_.hidden, software_));
    }
    if (model_.latent.key > 0)
      add_latent_attention();
    else
      add_attention();
    if (dense || model_.experts.count == 0)
      add_feed_forward(model_.width);
    else
      add_experts();
    return std::move(layer_);
  }

 private:
  static double whole(std::int64_t count) { return double(count); }
  void add(const PassKernels& kernels) { layer_.kernels.add(kernels); }
  void linear(double in, double out) { add(linear_kernels(tokens_, in, out, run_.format, software_)); }

  void add_core(double width) {
    const int context = run_.degrees.context;
    // The last rank of a plain division of the sequence has most of the pairs that no mask hides.
    const double skew = software_.balanced_context ? 1 : 2.0 * context / (context + 1);
    AttentionShape shape{.heads = run_.micro_batch * double(model_.heads) / double(tensor_),
                         .queries = double(model_.sequence),
                         .keys = double(model_.sequence),
                         .width = width};
    if (software_.fused_attention) {
      shape.heads *= skew;
      shape.queries /= context;
      shape.visible = visible_pairs(model_);
    }
    add(attention_kernels(shape, run_.format, wide_, software_));
  }

  void add_attention() {
    const std::int64_t head = model_.head(), keys = model_.key_value_heads * head, queries = model_.heads * head;
    linear(model_.hidden, whole((queries + 2 * keys) / tensor_));
    if (model_.query_key_norm) {
      add(norm_kernels(tokens_ * double(queries) / double(tensor_), software_));
      add(norm_kernels(tokens_ * double(keys) / double(tensor_), software_));
    }
    add_core(double(head));
    if (software_.fused_attention) add(rotary_kernels(tokens_ * double(queries + keys) / double(tensor_), software_));
    linear(whole(queries / tensor_), model_.hidden);
  }

  void add_latent_attention() {
    const LatentRanks& l = model_.latent;
    const std::int64_t heads = model_.heads, turned = heads * (l.nope + l.rope);
    const auto traffic = [&](double forward, double backward, double forward_count, double backward_count) {
      const auto kernel = [&](double numbers, double count) {
        Kernel k;
        k.bytes = Bytes{tokens_ * numbers};
        k.count = count;
        return k;
      };
      add({{kernel(forward, forward_count)}, {kernel(backward, backward_count)}, {}});
    };
    if (l.query > 0) {
      linear(model_.hidden, l.query);
      linear(l.query, whole(turned / tensor_));
      traffic(4.0 * l.query, 8.0 * l.query, 1, 1);  // Norm of the compressed queries.
    } else {
      linear(model_.hidden, whole(turned / tensor_));
    }
    linear(model_.hidden, l.key + l.rope);
    linear(l.key, whole(heads * (l.nope + l.value) / tensor_));
    // Norm of the compressed keys, rotations, and the copies that join rotated and plain parts.
    traffic(4.0 * l.key + whole(8 * turned / tensor_), 8.0 * l.key + whole(16 * turned / tensor_), 6, 8);
    add_core((l.nope + l.rope + l.value) / 2.0);
    linear(whole(heads * l.value / tensor_), model_.hidden);
  }

  void add_feed_forward(int width) {
    const int wide = model_.gated ? 2 * width : width;
    const double divisor = double(tensor_);
    linear(model_.hidden, whole(wide / tensor_));
    add(activation_kernels(tokens_ * wide / divisor, tokens_ * width / divisor, software_));
    linear(whole(width / tensor_), model_.hidden);
  }

  void add_experts() {
    const ExpertShape& e = model_.experts;
    const double tokens = tokens_ / double(tensor_);  // The experts have attention's shard of the tokens.
    const double moved = tokens * e.active, experts = double(e.count) / run_.degrees.expert;
    const int wide = model_.gated ? 2 * e.width : e.width;
    add(router_kernels(tokens, model_.hidden, e.count, wide_, software_));
    for (int i = 0; i < 2; ++i) add(permutation_kernels(moved * model_.hidden));
    add(grouped_kernels(experts, moved / experts, model_.hidden, wide, run_.format));
    add(grouped_kernels(experts, moved / experts, e.width, model_.hidden, run_.format));
    SoftwareStack fused = software_;
    fused.norm_traffic = 1;
    add(activation_kernels(moved * wide, moved * e.width, fused));
    layer_.exchanged = 2 * moved * model_.hidden;
    if (e.shared > 0) add_feed_forward(e.shared);
  }

  const TrainingRun& run_;
  const TransformerShape& model_;
  const SoftwareStack& software_;
  std::int64_t tensor_;
  double tokens_;
  NumberFormat wide_;
  LayerTerms layer_;
};

struct Exposed {
  Seconds forward, backward;
};

/// Two pairs a pass: all-reduces, or with sequence parallelism all-gathers and reduce-scatters.
Exposed tensor_time(const TrainingRun& run, const Accelerator& device) {
  const auto one = [&](CollectiveKind kind) {
    return (1 - run.software.tensor_overlap) *
           collective_time(kind, tensor_group(run, device), Bytes{boundary_bytes(run)}, device.collectives, run.card);
  };
  if (!run.sequence_parallel) {
    const Seconds sums = 2 * one(CollectiveKind::AllReduce);
    return {sums, sums};
  }
  const Seconds gathers = 2 * one(CollectiveKind::AllGather);
  const Seconds pairs = gathers + 2 * one(CollectiveKind::ReduceScatter);
  return {pairs, pairs + (run.software.hides_regather ? Seconds{} : gathers)};
}

/// What the ring of keys and values takes beyond the attention core next to which it runs.
Exposed context_time(const TrainingRun& run, const Accelerator& device, Seconds core) {
  const int context = run.degrees.context;
  if (context == 1) return {};
  const TransformerShape& model = run.model;
  const double keys = 2.0 * tokens_of(run) * model.key_value_heads * model.head() / run.degrees.tensor * 2;
  const GroupShape group{context, std::min(context, std::max(1, device.domain / run.degrees.tensor))};
  const auto ring = [&](double bytes) {
    return collective_time(CollectiveKind::AllGather, group, Bytes{context * bytes}, device.collectives, run.card);
  };
  const Seconds hidden = (context - 1.0) / context * core;
  return {std::max(Seconds{}, ring(keys) - hidden), std::max(Seconds{}, ring(2 * keys) - 2.5 * hidden)};
}

/// With one copy of a row for each node, a row that goes to k experts on N nodes leaves its own for an expected
/// (N - 1)(1 - (1 - 1/N)^k) others, while all its copies move inside the nodes.
Seconds one_exchange(const TrainingRun& run, const Accelerator& device, double bytes) {
  const GroupShape group{run.degrees.expert, std::min(run.degrees.expert, device.domain)};
  const auto over = [&](const GroupShape& members) {
    return collective_time(CollectiveKind::AllToAll, members, Bytes{bytes}, device.collectives, run.card);
  };
  const double nodes = group.nodes(), active = run.model.experts.active;
  if (run.dispatcher == ExpertDispatch::AllToAll || nodes <= 1) return over(group);
  const double leaving = bytes / active * (nodes - 1) * (1 - std::pow(1 - 1 / nodes, active));
  const Seconds across = Bytes{leaving} / (kCardShare * run.card) + 2 * kNodeLatency;
  return std::max(over({group.local(), group.local()}), across);
}

Seconds exchange_time(const TrainingRun& run, const Accelerator& device, double bytes) {
  return 2 * (1 - run.software.expert_overlap) * one_exchange(run, device, bytes);
}

/// The all-gather of a layer's weights, and the reduce-scatter of their gradients.
struct WeightCollectives {
  Seconds gather, scatter;
};

WeightCollectives weight_collectives(const TrainingRun& run, const Accelerator& device, bool dense) {
  if (run.sharding != StateSharding::Weights || run.stages > 1) return {};
  const LayerParameters layer = layer_parameters(run.model, dense);
  const double parameters = (layer.divided + layer.experts) / run.degrees.tensor;
  const int ranks = run.degrees.replicas * run.degrees.context;
  const GroupShape group{ranks, std::max(1, std::min(ranks, device.domain / run.degrees.tensor))};
  const auto wire = [&](CollectiveKind kind, double bytes) {
    return collective_time(kind, group, Bytes{bytes}, device.collectives, run.card);
  };
  return {wire(CollectiveKind::AllGather, 2 * parameters),
          wire(CollectiveKind::ReduceScatter, run.software.gradient_bytes * parameters)};
}

TimeByClass recompute_time(const TrainingRun& run, const Accelerator& device, const std::vector<Kernel>& forward,
                           PassCollectives collectives) {
  const PassCollectives no_time{.launches = collectives.launches};
  collectives.weights = {};  // The backward gathers the weights anyway.
  switch (run.recompute) {
    case LayerRecomputation::None:
      return {};
    case LayerRecomputation::Selective:
      return pass_time(core_of(forward), no_time, device, run.software);
    case LayerRecomputation::Half:
      return pass_time(0.5 * kernel_time(forward, device), launch_count(forward), no_time, device, run.software);
    case LayerRecomputation::Full:
      return pass_time(forward, collectives, device, run.software);
  }
  return {};
}

double sum_of_flops(const std::vector<Kernel>& kernels) {
  double sum = 0;
  for (const Kernel& kernel : kernels) sum += flops_of(kernel).value;
  return sum;
}

/// The head works in 16 bits also where the layers have fewer.
PassKernels head_kernels(const TrainingRun& run, NumberFormat wide) {
  const TransformerShape& model = run.model;
  const int words = model.vocabulary / run.degrees.tensor;
  PassKernels head = linear_kernels(tokens_of(run), model.hidden, words, wide, run.software);
  head.add(loss_kernels(tokens_of(run) * words, run.software));
  return head;
}

PassKernels module_kernels(const TrainingRun& run) {
  const double tokens = tokens_of(run), hidden = run.model.hidden;
  PassKernels module = linear_kernels(tokens, 2 * hidden, hidden / run.degrees.tensor, run.format, run.software);
  for (int i = 0; i < 2; ++i) module.add(norm_kernels(tokens * hidden, run.software));
  return module;
}

}  // namespace

double tokens_of(const TrainingRun& run) {
  return std::floor(double(run.micro_batch) * run.model.sequence / run.degrees.context);
}

double boundary_bytes(const TrainingRun& run) { return 2.0 * tokens_of(run) * run.model.hidden; }

GroupShape tensor_group(const TrainingRun& run, const Accelerator& device) {
  return {run.degrees.tensor, std::min(run.degrees.tensor, device.domain)};
}

LayerTime layer_time(const TrainingRun& run, const Accelerator& full, bool dense, const CostTerms& terms) {
  const Accelerator device = without(run, terms, full);
  LayerTerms layer = LayerBuilder(run, device).build(dense);
  if (!terms.memory_bound) drop_memory_bound(layer.kernels);
  const std::vector<Kernel>& forward = layer.kernels.forward;
  const std::vector<Kernel> backward = layer.kernels.backward();

  const Exposed tensor = terms.tensor ? tensor_time(run, device) : Exposed{};
  const Exposed context = context_time(run, device, kernel_time(core_of(forward), device).attention);
  const Seconds expert = exchange_time(run, device, layer.exchanged);
  const WeightCollectives weights = terms.data ? weight_collectives(run, device, dense) : WeightCollectives{};
  const int launches = run.degrees.tensor == 1 ? 0 : 2;
  const bool recomputes = run.recompute != LayerRecomputation::None;

  const PassCollectives in_forward{tensor.forward, context.forward, expert, weights.gather, launches};
  PassCollectives in_backward{tensor.backward, context.backward, expert, weights.gather + weights.scatter, launches};
  if (recomputes && run.software.gathers_ahead)  // The recomputation hides them too.
    in_backward.weights = std::max(Seconds{}, in_backward.weights - kernel_time(forward, device).total());
  return {.forward = pass_time(forward, in_forward, device, run.software),
          .backward = pass_time(backward, in_backward, device, run.software),
          .recompute = recompute_time(run, device, forward, in_forward),
          .flops = sum_of_flops(forward) + sum_of_flops(backward)};
}

EndTimes end_times(const TrainingRun& run, const Accelerator& full, const CostTerms& terms) {
  const Accelerator device = without(run, terms, full);
  PassKernels head = head_kernels(run, device.wide_format());
  PassKernels embedding = embedding_kernels(tokens_of(run) * run.model.hidden, run.software);
  if (!terms.memory_bound) drop_memory_bound(head), drop_memory_bound(embedding);
  EndTimes times{kernel_time(embedding.forward, device),
                 kernel_time(embedding.backward(), device),
                 kernel_time(head.forward, device),
                 kernel_time(head.backward(), device),
                 {},
                 {}};
  if (run.model.next_tokens > 0) {
    PassKernels module = module_kernels(run);
    if (!terms.memory_bound) drop_memory_bound(module);
    times.module_forward = kernel_time(module.forward, device);
    times.module_backward = kernel_time(module.backward(), device);
  }
  if (terms.tensor)
    times.embedding_forward.tensor = times.head_backward.tensor = collective_time(
        CollectiveKind::AllReduce, tensor_group(run, device), Bytes{boundary_bytes(run)}, device.collectives, run.card);
  return times;
}

double layer_flops(const TrainingRun& run, const Accelerator& device, bool dense) {
  const LayerTerms layer = LayerBuilder(run, device).build(dense);
  const double forward = sum_of_flops(layer.kernels.forward);
  double again = 0;
  if (run.recompute == LayerRecomputation::Full) again = forward;
  if (run.recompute == LayerRecomputation::Half) again = forward / 2;
  if (run.recompute == LayerRecomputation::Selective) again = sum_of_flops(core_of(layer.kernels.forward));
  return forward + sum_of_flops(layer.kernels.backward()) + again;
}

double head_flops(const TrainingRun& run) {
  const PassKernels head = head_kernels(run, NumberFormat::Bf16);
  return sum_of_flops(head.forward) + sum_of_flops(head.backward());
}

}  // namespace stagecraft
