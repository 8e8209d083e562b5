#pragma once

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/core.h>

#include "models/decoder.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/program/unfold.hpp"
#include "tests/backends/real/oracle.hpp"
#include "tests/backends/real/run_case.hpp"

namespace stagecraft::test {

/// How a model is divided and run.
struct GroupCase {
  std::string schedule = "1f1b";
  int stages = 1;
  Degrees degrees = {};
  StateSharding sharding = StateSharding::None;
  bool reshard = false;
  ContextExchange exchange = ContextExchange::AllGather;
  Recomputation recomputation = Recomputation::None;
  int micro_batches = 4, micro_batch_size = 4;
  int loops = 1;  ///< Stages that each group of devices runs.
  LoweringOptions lowering = {};
  std::vector<int> places =
      {};  ///< The devices of a stage, counted from its first, by place in its groups; empty: in order.
};

inline std::string to_text(const GroupCase& c) {
  return fmt::format(
      "{}, {} stages, replicas {}, tensor {}{}, context {}, expert {} x {}, shard {}{}, exchange {}, recomputation {}, "
      "loops {}",
      c.schedule, c.stages, c.degrees.replicas, c.degrees.tensor, c.degrees.sequence ? " with sequence" : "",
      c.degrees.context, c.degrees.expert, c.degrees.expert_tensor, static_cast<int>(c.sharding),
      c.reshard ? " with reshard" : "", static_cast<int>(c.exchange), static_cast<int>(c.recomputation), c.loops);
}

/// The layers in order, as equally over the stages as whole numbers allow, the input with the first and the loss with
/// the last; each stage on devices of its own unless it loops.
inline Plan plan_of(const ModelGraph& model, const GroupCase& c) {
  Plan plan;
  plan.mini_batch = c.micro_batches * c.micro_batch_size;
  const int layers = static_cast<int>(model.layers.size());
  const int each = c.degrees.devices(), ranks = c.stages / c.loops;
  for (int s = 0; s < c.stages; ++s) {
    Stage& stage = plan.stages.emplace_back();
    stage.name = "s" + std::to_string(s);
    const int first = s == 0 ? 0 : 1 + (layers - 2) * s / c.stages;
    const int end = s + 1 == c.stages ? layers : 1 + (layers - 2) * (s + 1) / c.stages;
    for (int l = first; l < end; ++l) stage.shape.layers.emplace_back(l);
    stage.shape.degrees = c.degrees;
    stage.shape.sharding = c.sharding;
    stage.shape.reshard = c.reshard;
    stage.shape.exchange = c.exchange;
    stage.shape.recomputation = c.recomputation;
    stage.micro_batch_size = c.micro_batch_size;
    std::vector<DeviceId> devices;
    for (int d = 0; d < each; ++d) devices.emplace_back(s % ranks * each + (c.places.empty() ? d : c.places[d]));
    stage.place_on(devices);
  }
  connect(plan, model);
  return plan;
}

/// The model with numbers of `width` bytes; 2 stands for mixed precision.
inline ModelGraph in_precision(ModelGraph model, double width) {
  for (Layer& layer : model.layers) layer.output.value *= width / model.precision.weight;
  model.precision = {width, width, width == 2 ? 16 : 2 * width, width};
  return model;
}

/// Two products a layer, the first divided by columns, the second by rows, for each of `rows` rows; then a replicated
/// one. With whole numbers, no order of sums makes a difference.
inline ModelGraph divided_net(int layers, int rows, int width, int inner, OperationKind bend = OperationKind::Relu,
                              OperationKind loss = OperationKind::SumSquare) {
  ModelGraph model;
  model.name = "divided";
  model.precision = {8, 8, 16, 8};
  const auto product = [&](int from, int inputs, int outputs, Division division) {
    return divided_linear(rows, inputs, outputs, from, division);
  };
  model.layers.push_back(layer_of("input", {}, {source_of(rows, width)}, 8));
  for (int l = 0; l < layers; ++l) {
    Operation bent{.kind = bend, .inputs = {0}, .rows = rows, .columns = inner};
    bent.division = Division::Column;
    model.layers.push_back(layer_of(fmt::format("d{}", l), {LayerId{l}},
                                    {product(-1, width, inner, Division::Column),
                                     bent,
                                     product(1, inner, width, Division::Row),
                                     product(2, width, width, Division::Replicated),
                                     {.kind = OperationKind::Add, .inputs = {-1, 3}, .rows = rows, .columns = width}},
                                    8));
  }
  model.layers.push_back(layer_of("loss", {LayerId{layers}}, {loss_of(loss, rows, width)}, 8));
  return model;
}

/// Eight experts a layer, one for each row: its weight is one, so whole numbers stay whole. A column of the input is a
/// number from the data, so rows go to different experts in each sample.
inline ModelGraph experts_net(int layers, int rows, int width, int inner) {
  ModelGraph model;
  model.name = "experts";
  model.precision = {8, 8, 16, 8};
  model.layers.push_back(layer_of("input", {}, {source_of(rows, width)}, 8));
  const auto expert_op = [&](OperationKind kind, std::vector<int> inputs, int columns, int inner_columns) {
    Operation op{.kind = kind, .inputs = std::move(inputs), .rows = rows, .columns = columns, .inner = inner_columns};
    op.experts = 8, op.active = 1, op.division = Division::Experts;
    return op;
  };
  for (int l = 0; l < layers; ++l) {
    Operation router = expert_op(OperationKind::Router, {-1}, 8, width);
    router.division = Division::Replicated;
    Operation up = expert_op(OperationKind::GroupedLinear, {1}, inner, width), down = up;
    up.within_expert = Division::Column;
    down.inputs = {3}, down.columns = width, down.inner = inner, down.within_expert = Division::Row;
    model.layers.push_back(layer_of(fmt::format("e{}", l), {LayerId{l}},
                                    {router,
                                     expert_op(OperationKind::Dispatch, {-1, 0}, width, 0),
                                     up,
                                     expert_op(OperationKind::Relu, {2}, inner, 0),
                                     down,
                                     expert_op(OperationKind::Combine, {4, 0}, width, 0),
                                     {.kind = OperationKind::Add, .inputs = {-1, 5}, .rows = rows, .columns = width}},
                                    8));
  }
  model.layers.push_back(layer_of("loss", {LayerId{layers}}, {loss_of(OperationKind::SumSquare, rows, width)}, 8));
  return model;
}

/// The shape of a small decoder: GPT with learned positions, or Llama with rotations, gates and keys that heads share.
inline DecoderShape decoder_shape(int layers, bool llama, int vocabulary = 37) {
  DecoderShape n;
  n.layers = layers, n.hidden = 16, n.heads = 8, n.feed_forward = 24, n.sequence = 8, n.vocabulary = vocabulary;
  n.key_value_heads = llama ? 4 : 8, n.head_width = 2;
  if (llama) {
    n.positions = PositionKind::Rotary, n.rms_norm = n.gated = true;
    n.bias = n.attention_bias = n.query_key_value_bias = false;
  }
  return n;
}

inline ModelGraph decoder_of(const DecoderShape& n, std::string model_name, bool tied = false) {
  ModelGraph model;
  model.name = std::move(model_name);
  model.precision = {8, 8, 16, 8};
  model.layers.push_back(layer_of("tok", {}, {source_of(n.sequence, 1)}, 8));
  const auto add = [&](const std::string& name, Operations operations) -> Layer& {
    const LayerId last{std::ssize(model.layers) - 1};
    model.layers.push_back(layer_of(name, {last}, std::move(operations), 8));
    return model.layers.back();
  };
  if (Layer& embedding = add("embed", {embedding_operation(n)}); tied) embedding.tie = "words";
  for (int l = 0; l < n.layers; ++l) add(fmt::format("l{}", l), decoder_operations(n, l));
  add("lnf", final_norm_operations(n));
  if (Layer& scores = add("lm_head", {logits_operation(n)}); tied) scores.tie = "words";
  Operation loss = loss_of(OperationKind::CrossEntropy, n.sequence, n.vocabulary);
  loss.division = Division::Vocabulary;
  add("loss", {loss});
  return model;
}

inline ModelGraph decoder_net(int layers, bool llama, bool tied = false, int vocabulary = 37) {
  return decoder_of(decoder_shape(layers, llama, vocabulary), llama ? "llama" : "gpt", tied);
}

/// A decoder whose layers have eight experts, two for each token, and one that works on all; with biases for GPT.
inline ModelGraph mixture_net(int layers, bool llama) {
  DecoderShape n = decoder_shape(layers, llama);
  n.has_experts = true;
  n.experts = {.count = 8, .active = 2, .width = 12, .shared = 1};
  return decoder_of(n, llama ? "mixtral" : "gpt with experts");
}

struct GroupRun {
  Program program;
  Timeline timeline;
  const Learnt& learnt() const { return *timeline.learnt; }
};

inline GroupRun run_group(const ModelGraph& model, const GroupCase& c, const Training& training, int iterations,
                          real::ExecutorOptions options = {}) {
  const Plan plan = plan_of(model, c);
  const WeightsRule& rule = policy("flush");
  GroupRun run{unfold(with_workload(real_program(c.schedule, plan, rule, iterations, nullptr, c.lowering), model, plan,
                                    rule, training),
                      plan)
                   .program,
               {}};
  check_program(run.program);
  run.timeline = real::execute(run.program, cpu::make_kernels, options);
  return run;
}

inline std::vector<double> all_weights(const IdVector<StageId, std::vector<double>>& stages) {
  std::vector<double> joined;
  for (const auto& stage : stages) joined.insert(joined.end(), stage.begin(), stage.end());
  return joined;
}

/// The largest difference over the largest number.
inline double relative_difference(const std::vector<double>& ours, const std::vector<double>& theirs) {
  STAGECRAFT_CHECK(ours.size() == theirs.size());
  double worst = 0, largest = 0;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    worst = std::max(worst, std::abs(ours[i] - theirs[i]));
    largest = std::max(largest, std::abs(theirs[i]));
  }
  return worst / std::max(largest, 1e-300);
}

}  // namespace stagecraft::test
