#include "sim/published/simulated_predictions.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/device_presets.hpp"
#include "sim/experiment/scenario.hpp"

namespace stagecraft {
namespace {

constexpr double kMessageLatency = 20e-6;  // As in the closed form.

std::string model_text(const TrainingRun& run) {
  const TransformerShape& m = run.model;
  std::string text = fmt::format(
      "{{builder: transformer, kind: gpt, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, "
      "vocabulary: {}, tied: {}, flash_attention: {}, precision: mixed",
      m.layers, m.hidden, m.heads, m.width, m.sequence, m.vocabulary, m.tied, run.software.fused_attention);
  if (run.software.dropout && !run.software.fused_attention) text += ", attention_dropout: true";
  if (m.gated) text += ", gated: true, norm: rms, positions: rotary, bias: false";
  if (m.latent.key == 0 && m.key_value_heads != m.heads)
    text += fmt::format(", key_value_heads: {}", m.key_value_heads);
  if (m.head_width > 0) text += fmt::format(", head_width: {}", m.head_width);
  if (m.query_key_norm) text += ", query_key_norm: true";
  if (m.window > 0) text += fmt::format(", window: {}, full_every: 2", m.window);
  if (m.next_tokens > 0) text += fmt::format(", next_tokens: {}", m.next_tokens);
  if (const LatentRanks& l = m.latent; l.key > 0) {
    const std::string query = l.query > 0 ? fmt::format("query: {}, ", l.query) : "";
    text += fmt::format(", latent: {{{}key_value: {}, rope: {}, nope: {}, value: {}}}", query, l.key, l.rope, l.nope,
                        l.value);
  }
  if (const ExpertShape& e = m.experts; e.count > 0)
    text += fmt::format(", experts: {{count: {}, active: {}, width: {}, shared: {}, first_dense: {}}}", e.count,
                        e.active, e.width, e.shared / std::max(1, e.width), e.dense_layers);
  return text + "}";
}

/// Nodes of as many devices as the fast links of the type connect. Messages between nodes have the rate that the closed
/// form gives them.
std::string cluster_text(const MeasuredRun& measured, int domain, Bandwidth bus) {
  const int devices = measured.run.devices(), each = std::min(domain, devices);
  return fmt::format(
      "{{generator: nvlink_pods, types: {{gpu: {{preset: {}, memory: 1000000 GB}}}}, nodes: [{{name: n, count: {}, "
      "gpus: "
      "{}, type: gpu, inside: nvswitch, nics: each}}], links: {{nvlink: {{bandwidth: {:.9g} GB/s, latency: {:.9g} "
      "us}}, "
      "nic: {{bandwidth: {:.9g} GB/s, latency: {:.9g} us}}}}}}",
      measured.device, (devices + each - 1) / each, each, bus.value / 1e9, kMessageLatency / 2 * 1e6,
      kCardShare * measured.run.card.value / 1e9, kMessageLatency / 2 * 1e6);
}

/// Layers of each chunk in the order of the model, as even as the closed form has them: a stage has the layers of its
/// chunks.
std::vector<int> layers_of_chunks(const TrainingRun& run) {
  if (const std::vector<int> given = chunks_of_layout(run); !given.empty()) return given;
  const std::vector<double> stages = layers_per_stage(run);
  const int chunks = run.stages * run.chunks, units = run.model.layers + 2;
  if (run.ends_count && run.chunks > 1 && units % chunks == 0) {  // The ends take the place of a layer each.
    std::vector<int> counts(chunks, units / chunks);
    --counts.front(), --counts.back();
    return counts;
  }
  std::vector<int> counts;
  double sum = 0;
  int before = 0;
  for (int c = 0; c < chunks; ++c) {
    sum += stages[c % run.stages] / run.chunks;
    const int until = static_cast<int>(std::lround(sum));
    counts.push_back(until - before);
    before = until;
  }
  return counts;
}

std::string plan_text(const TrainingRun& run) {
  std::string layout = "E";
  const std::vector<int> counts = layers_of_chunks(run);
  for (std::size_t c = 0; c < counts.size(); ++c)
    layout += (c > 0 ? "|" : "") + (counts[c] > 0 ? fmt::format("t*{}", counts[c]) : std::string());
  const Degrees& d = run.degrees;
  const std::string modules(run.model.next_tokens, 'm');
  constexpr const char* kShards[] = {"none", "optimizer", "gradients", "weights"};
  const char* recompute = run.recompute == LayerRecomputation::Full   ? "layers"
                          : run.recompute == LayerRecomputation::Half ? "half"
                          : run.recompute == LayerRecomputation::Selective && !run.software.fused_attention
                              ? "selective"
                              : "none";
  return fmt::format(
      "{{planner: layout, layout: \"{}{}L\", replicas: {}, micro_batch_size: {}, group: {{tensor: {}, sequence: {}, "
      "context: {}, expert: {}{}}}, shard: {}, recompute: {}}}",
      layout, modules, d.replicas, run.micro_batch, d.tensor, run.sequence_parallel && d.tensor > 1, d.context,
      d.expert, run.dispatcher == ExpertDispatch::PerNode ? ", dispatcher: per_node" : "",
      kShards[static_cast<int>(run.sharding)], recompute);
}

}  // namespace

Experiment experiment_of(const MeasuredRun& measured, double share_factor) {
  const TrainingRun& run = measured.run;
  const Accelerator device = accelerator_named(measured.device);
  const std::string text = fmt::format(
      "schema: scenario/2\nmodel: {}\ncluster: {}\nsoftware: {}\nplan: {}\nrun: {{schedule: {}, "
      "micro_batches: {}, iterations: 1, precision: {}}}\n",
      model_text(run), cluster_text(measured, device.domain, device.collectives.bus), run.software.name, plan_text(run),
      run.chunks > 1 ? "interleaved" : "1f1b", run.micro_batches, name(run.format));
  config::Problems problems;
  config::Value tree = config::parse_yaml(text, "<" + measured.name + ">", problems);
  problems.throw_if_any();
  tree = checked_scenario(std::move(tree), {}, problems);
  problems.throw_if_any();
  Experiment e = read_experiment(settled_scenario(std::move(tree)));
  auto rules = std::make_shared<CostRules>(*e.rules);
  rules->software = run.software;  // A row may replace some of its members.
  for (Accelerator& a : rules->accelerators) {
    a.formats[run.format].share *= share_factor;
    if (run.whole_graphs) a.launch = {};
  }
  rules->node = {.devices = device.domain, .card = run.card};
  e.rules = std::move(rules);
  e.costs = std::make_shared<const CostTable>(e.model, e.cluster, e.profile, e.rules);
  return e;
}

std::optional<SimulatedRun> simulate(const MeasuredRun& measured, std::string& why_not, double share_factor) {
  try {
    const CompiledExperiment c = compile(experiment_of(measured, share_factor));
    const Report report = run(c, "ideal").report;
    SimulatedRun result{report.makespan, {}};
    for (const DeviceReport& d : report.devices) result.memory = std::max(result.memory, d.memory.total);
    return result;
  } catch (const InputError& e) {
    why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    why_not = e.problem().message;
  }
  return {};
}

}  // namespace stagecraft
