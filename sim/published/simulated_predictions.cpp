// Turns a measured run, of scenarios/predictions or from a user's CSV, into an experiment and simulates it on `ideal`.

#include "sim/published/simulated_predictions.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "sim/cluster/collective_cost.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/device_figures.hpp"
#include "sim/experiment/fold_replicas.hpp"
#include "sim/experiment/scenario.hpp"

namespace stagecraft {
namespace {

using config::Value;

constexpr double kMessageLatency = 20e-6;  // Assumed.

bool is_true(const MeasuredRun& m, const char* field) { return config::as_bool(m.row.at(field)); }
const std::string& word(const MeasuredRun& m, const char* field) { return m.row.at(field).text; }

}  // namespace

SoftwareStack software_of(const MeasuredRun& m) {
  SoftwareStack stack = software_stack(word(m, "software"));
  if (const Value* release = m.row.find("release")) stack = at_release(std::move(stack), release->text);
  if (const Value* attention = m.row.find("attention")) set_attention(stack, attention->text);
  if (const Value* launch = m.row.find("launch")) stack.launch.fill(Seconds{config::as_real(*launch)});
  const auto replace = [&](const char* field, double& member) {
    if (const Value* value = m.row.find(field)) member = config::as_real(*value);
  };
  const auto replace_share = [&](const char* field, std::initializer_list<Overlap> features) {
    if (const Value* value = m.row.find(field))
      for (const Overlap f : features) stack.overlap[f] = (stack.overlap_share[f] = config::as_real(*value)) > 0;
  };
  replace_share("tensor_overlap", {Overlap::Tensor});
  replace_share("expert_overlap", {Overlap::Experts});
  replace_share("data_overlap", {Overlap::Gradients, Overlap::Weights});
  replace("fsdp_overlap", stack.pass_overlap);
  replace("norm_traffic", stack.norm_traffic);
  replace("gradient_bytes", stack.gradient_bytes);
  replace("gradient_copy_bytes", stack.gradient_copy_bytes);
  if (const Value* fused = m.row.find("fused_loss")) set_fused_loss(stack, config::as_bool(*fused));
  stack.graphs = is_true(m, "whole_graphs");
  return stack;
}

namespace {

/// `, latent: {...}` and `, experts: {...}` of the model, where it has them.
std::string special_layers(const MeasuredRun& m) {
  std::string text;
  if (const Value* l = m.row.find("latent")) {
    const auto count = [&](const char* field) { return config::as_int(l->at(field)); };
    const std::string query = count("query") > 0 ? fmt::format("query: {}, ", count("query")) : "";
    text += fmt::format(", latent: {{{}key_value: {}, rope: {}, nope: {}, value: {}}}", query, count("key"),
                        count("rope"), count("nope"), count("value"));
  }
  if (const Value* e = m.row.find("experts")) {
    const auto count = [&](const char* field) { return config::as_int(e->at(field)); };
    text += fmt::format(", experts: {{count: {}, active: {}, width: {}, shared: {}, first_dense: {}}}", count("count"),
                        count("active"), count("width"), count("shared") / count("width"), count("dense_layers"));
  }
  return text;
}

std::string model_text(const MeasuredRun& m, const SoftwareStack& software) {
  const int hidden = m.count("hidden"), heads = m.count("heads"), width = m.count("width");
  std::string text = fmt::format(
      "{{builder: transformer, kind: gpt, layers: {}, hidden: {}, heads: {}, feed_forward: {}, sequence: {}, "
      "vocabulary: {}, tied: {}, flash_attention: {}, precision: mixed",
      m.count("layers"), hidden, heads, width > 0 ? width : 4 * hidden, m.count("sequence"), m.count("vocabulary"),
      is_true(m, "tied"), software.fused_attention);
  if (software.dropout && !software.fused_attention) text += ", attention_dropout: true";
  if (is_true(m, "gated"))
    text += fmt::format(", gated: true, norm: rms, positions: rotary, bias: {}", is_true(m, "bias"));
  const int keys = m.count("key_value_heads");
  if (!m.row.has("latent") && keys > 0 && keys != heads) text += fmt::format(", key_value_heads: {}", keys);
  if (const int head = m.count("head_width"); head > 0) text += fmt::format(", head_width: {}", head);
  if (is_true(m, "query_key_norm")) text += ", query_key_norm: true";
  if (const int window = m.count("window"); window > 0) text += fmt::format(", window: {}, full_every: 2", window);
  if (const int next = m.count("next_tokens"); next > 0) text += fmt::format(", next_tokens: {}", next);
  return text + special_layers(m) + "}";
}

/// Nodes of as many devices as the fast links of the type connect.
std::string cluster_text(const MeasuredRun& m, const Accelerator& device, Bandwidth card) {
  const int devices = m.devices(), each = std::min(device.domain, devices);
  return fmt::format(
      "{{generator: nvlink_pods, types: {{gpu: {{preset: {}, memory: 1000000 GB}}}}, nodes: [{{name: n, count: {}, "
      "gpus: {}, type: gpu, inside: nvswitch, nics: each}}], links: {{nvlink: {{bandwidth: {:.9g} GB/s, latency: "
      "{:.9g} us}}, nic: {{bandwidth: {:.9g} GB/s, latency: {:.9g} us}}}}}}",
      m.device, (devices + each - 1) / each, each, device.collectives.bus.value / 1e9, kMessageLatency / 2 * 1e6,
      kCardShare * card.value / 1e9, kMessageLatency / 2 * 1e6);
}

/// Layers of each chunk, where a layout gives how many the first and the last chunk have; else nothing.
std::vector<int> chunks_of_layout(const MeasuredRun& m) {
  const int chunks = m.count("stages") * m.count("chunks"), first = m.count("first_chunk"),
            last = m.count("last_chunk");
  if (first < 0 || last < 0 || chunks < 2) return {};
  std::vector<int> counts(chunks, chunks > 2 ? (m.count("layers") - first - last) / (chunks - 2) : 0);
  counts.front() = first;
  counts.back() = last;
  return counts;
}

/// Layers of each stage that has one chunk: as many as go on every stage but the last, which has the rest; or as even
/// as embedding and head allow that count as a layer each, with more on later stages.
std::vector<int> layers_of_stages(const MeasuredRun& m) {
  const int stages = m.count("stages"), layers = m.count("layers");
  std::vector<int> counts(stages, layers);
  if (stages == 1) return counts;
  if (is_true(m, "ends_count")) {
    const int units = layers + 2;
    for (int i = 0; i < stages; ++i) counts[i] = units / stages + (i >= stages - units % stages ? 1 : 0);
    --counts.front(), --counts.back();
    return counts;
  }
  const int limit = (layers + stages - 1) / stages;
  int left = layers;
  for (int& count : counts) left -= count = std::min(limit, left);
  return counts;
}

/// Layers of each chunk in the order of the model.
std::vector<int> layers_of_chunks(const MeasuredRun& m) {
  if (std::vector<int> given = chunks_of_layout(m); !given.empty()) return given;
  const int chunks = m.count("stages") * m.count("chunks"), layers = m.count("layers"), units = layers + 2;
  if (m.count("chunks") == 1) return layers_of_stages(m);
  if (is_true(m, "ends_count") && units % chunks == 0) {
    std::vector<int> counts(chunks, units / chunks);  // The ends take the place of a layer each.
    --counts.front(), --counts.back();
    return counts;
  }
  std::vector<int> counts;
  double sum = 0;
  int before = 0;
  for (int c = 0; c < chunks; ++c) {
    sum += double(layers) / m.count("stages") / m.count("chunks");
    const int until = static_cast<int>(std::lround(sum));
    counts.push_back(until - before);
    before = until;
  }
  return counts;
}

/// `recompute` of a plan: Megatron-LM's full recomputation is that of each layer.
std::string recompute_text(const MeasuredRun& m, const SoftwareStack& software) {
  const Value& recompute = m.row.at("recompute");
  if (recompute.is_list()) {
    std::vector<std::string> modules;
    for (const Value& module : recompute.items) modules.push_back(module.text);
    return "[" + join(modules) + "]";
  }
  const bool nothing_to_drop = recompute.text == "selective" && software.fused_attention;
  return nothing_to_drop ? "none" : recompute.text == "full" ? "layers" : recompute.text;
}

/// Devices that divide each expert of a run. By default Megatron-Core divides experts as everything else
/// (initialize_model_parallel: expert_tensor_parallel_size is tp_size by default); recipes of Megatron-Bridge say 1.
int expert_tensor(const MeasuredRun& m, const SoftwareStack& software) {
  if (const int given = m.count("expert_tensor"); given > 0) return given;
  const std::string_view stack = software.base.empty() ? software.name : software.base;
  const bool divides = stack == "nemo" || stack == "megatron-core";
  return divides && m.row.has("experts") ? m.count("tensor") : 1;
}

std::string plan_text(const MeasuredRun& m, const SoftwareStack& software) {
  std::string layout = "E";
  const std::vector<int> counts = layers_of_chunks(m);
  for (std::size_t c = 0; c < counts.size(); ++c)
    layout += (c > 0 ? "|" : "") + (counts[c] > 0 ? fmt::format("t*{}", counts[c]) : std::string());
  const std::string modules(m.count("next_tokens"), 'm');
  const int within = m.count("shard_within");
  const std::string &state = word(m, "shard"),
                    shard = within > 0 ? fmt::format("{{state: {}, within: {}}}", state, within) : state;
  return fmt::format(
      "{{planner: layout, layout: \"{}{}L\", replicas: {}, micro_batch_size: {}, group: {{tensor: {}, sequence: {}, "
      "context: {}, expert: {}, expert_tensor: {}, dispatcher: {}}}, shard: {}, recompute: {}}}",
      layout, modules, m.count("replicas"), m.count("micro_batch"), m.count("tensor"),
      is_true(m, "sequence_parallel") && m.count("tensor") > 1, m.count("context"), m.count("expert"),
      expert_tensor(m, software), word(m, "dispatcher"), shard, recompute_text(m, software));
}

/// The experiment of a run on this device.
Experiment with_figures(const Experiment& of_run, const Accelerator& device, std::optional<double> pass_overlap = {}) {
  Experiment e = of_run;
  auto rules = std::make_shared<CostRules>(*e.rules);
  if (pass_overlap) rules->software.pass_overlap = *pass_overlap;
  for (Accelerator& a : rules->accelerators) a = figures_for(device, rules->software);
  e.rules = std::move(rules);
  e.costs = std::make_shared<const CostTable>(e.model, e.cluster, e.profiles, e.rules);
  return e;
}

}  // namespace

Experiment experiment_of(const MeasuredRun& m, const Accelerator& device, double card_factor) {
  const SoftwareStack software = software_of(m);
  const Bandwidth card = card_factor * config::as_bandwidth(m.row.at("card"));
  const std::string text = fmt::format(
      "schema: scenario/2\nmodel: {}\ncluster: {}\nsoftware: {}\nplan: {}\nrun: {{schedule: {}, "
      "micro_batches: {}, iterations: 1, precision: {}}}\n",
      model_text(m, software), cluster_text(m, device, card), software.name, plan_text(m, software),
      m.count("chunks") > 1 ? "interleaved" : "1f1b", m.count("micro_batches"), name(m.format));
  config::Problems problems;
  Value tree = config::parse_yaml(text, "<" + m.name + ">", problems);
  problems.throw_if_any();
  tree = checked_scenario(std::move(tree), {}, problems);
  problems.throw_if_any();
  Experiment e = read_experiment(settled_scenario(std::move(tree)));
  auto rules = std::make_shared<CostRules>(*e.rules);
  rules->software = software;
  rules->node = {.devices = device.domain, .card = card};
  e.rules = std::move(rules);
  return with_figures(e, device);
}

namespace {

constexpr double kMostOps = 2e6;  // Their program takes some 1 GB of memory.
constexpr double kMostSimulatedDevices = 2e5, kMostLayers = 1e4;

/// A product of integers could overflow.
double product_of(const MeasuredRun& m, std::initializer_list<const char*> fields) {
  double product = 1;
  for (const char* field : fields) product *= m.count(field);
  return product;
}

double ops_of(const MeasuredRun& m) { return 2 * product_of(m, {"stages", "chunks", "replicas", "micro_batches"}); }
double devices_of(const MeasuredRun& m) { return product_of(m, {"stages", "replicas", "tensor", "context"}); }
double layers_of(const MeasuredRun& m) {
  return std::max<double>(m.count("layers"), product_of(m, {"stages", "chunks"}));
}

/// Why a run is too large to be simulated for a prediction; empty where it is not.
std::string too_large(const MeasuredRun& m) {
  const double ops = ops_of(m), devices = devices_of(m), layers = layers_of(m);
  const auto over = [](double limit, const char* things) {
    return fmt::format("it has more than {} {}, which are not simulated for a prediction", limit, things);
  };
  if (ops > kMostOps) return over(kMostOps, "ops");
  if (devices > kMostSimulatedDevices) return over(kMostSimulatedDevices, "devices");
  return layers > kMostLayers ? over(kMostLayers, "layers") : std::string();
}

}  // namespace

double simulation_steps(const MeasuredRun& m) { return 1000 + ops_of(m) + 6 * layers_of(m) + 4 * devices_of(m); }

std::optional<SimulatedRun> RepeatedRun::simulate(const Accelerator& device, double card_factor,
                                                  std::optional<double> pass_overlap, std::string& why_not) {
  if (why_not = too_large(run_); !why_not.empty()) return {};
  try {
    if (!experiment_ || card_factor_ != card_factor) experiment_ = experiment_of(run_, device, card_factor);
    card_factor_ = card_factor;
    const PlannedExperiment planned = plan_experiment(with_figures(*experiment_, device, pass_overlap));
    const CompiledExperiment c = compile_for_report(planned, "ideal");
    const Report report = run(c, "ideal").report;
    SimulatedRun result{.time = report.makespan,
                        .memory = {},
                        .spent = report.time.spent,
                        .idle = report.time.bubble + report.time.unexplained,
                        .work = {},
                        .parameters = c.model().parameters()};
    for (const DeviceReport& d : report.devices) result.memory = std::max(result.memory, d.memory.total);
    if (const auto& rates = report.rates; rates && rates->of_peak > 0)
      result.work = rates->hardware_of_peak / rates->of_peak * Flops{rates->model.value * report.period.value};
    return result;
  } catch (const InputError& e) {
    why_not = e.problems().front().message;
  } catch (const Infeasible& e) {
    why_not = full_message(e.problem());
  }
  return {};
}

std::optional<SimulatedRun> simulate(const MeasuredRun& m, const Accelerator& device, std::string& why_not) {
  return RepeatedRun(m).simulate(device, 1, {}, why_not);
}

}  // namespace stagecraft
