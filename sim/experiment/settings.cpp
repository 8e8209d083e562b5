// The field tables of scenarios, models and clusters, and the maps `run`, `report` and others as typed settings.

#include "sim/experiment/settings.hpp"

#include <fmt/core.h>

#include "sim/cluster/change_fields.hpp"
#include "sim/cluster/generator.hpp"
#include "sim/cluster/host_memory.hpp"
#include "sim/config/fields.hpp"
#include "sim/core/number_format.hpp"
#include "sim/core/text.hpp"
#include "sim/cost/software.hpp"
#include "sim/experiment/curves.hpp"
#include "sim/experiment/packed_data.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/scenario_version.hpp"
#include "sim/experiment/software.hpp"
#include "sim/model/builder.hpp"
#include "sim/planners/shared/offload.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/schedule/builder.hpp"
#include "sim/training/training.hpp"
#include "sim/weights/policy.hpp"

namespace stagecraft {
namespace {

using namespace config;

template <class Def>
std::vector<Variant> variants_of(Catalog<Def> catalog) {
  std::vector<Variant> list;
  for (const Def* def : catalog) list.push_back({std::string(def->name), std::string(def->summary), def->fields});
  return list;
}

const MapSpec expect_fields{
    .title = "Published facts that the built model is checked against.",
    .fields = {real("parameters", 0, 1e15)
                   .optional()
                   .doc("Published number of parameters. The model is refused if it differs by more than 0.1 %."),
               real("active_parameters", 0, 1e15)
                   .optional()
                   .doc("Parameters that work on one token, as published; the build fails when it is off by more than "
                        "3 in a hundred."),
               boolean("active_embedding")
                   .optional()
                   .doc("Whether these count the embedding, of which a token reads one row; left out: no.")},
};

const MapSpec model_common{
    .title = "What is trained.",
    .fields = {text("schema").optional().doc("model/1 at the top of a model file."),
               text("name").fallback("model").doc("One word for results."),
               text("title").optional().doc("Title for people."),
               map("expect", expect_fields).optional().doc("Published facts to check.")},
};

const MapSpec plan_common{
    .title = "How the model is divided.",
    .fields =
        {integer("pipeline", 1, 1 << 20)
             .optional()
             .doc("Pipeline ranks (Megatron-LM's pipeline-model-parallel-size). With `chunks` in place of "
                  "`stages`: stages are pipeline x chunks."),
         integer("chunks", 1, 1024)
             .optional()
             .doc("Stages on each pipeline rank (num-virtual-stages-per-pipeline-rank), as in run.schedule.chunks, "
                  "which follows from it. Default: the fewest that the schedule has."),
         offload_field()},
};

MapSpec make_cluster_common() {
  MapSpec spec{.title = "What it runs on.",
               .fields = {text("schema").optional().doc("cluster/1 at the top of a cluster file."),
                          text("name").fallback("cluster").doc("One word for results."),
                          text("title").optional().doc("Title for people.")}};
  for (Field& field : curve_fields_of_cluster()) spec.fields.push_back(std::move(field));
  spec.fields.push_back(host_memory_field());
  for (Field& field : change_fields()) spec.fields.push_back(std::move(field));
  return spec;
}

const MapSpec cluster_common = make_cluster_common();

const MapSpec gpu_fields{
    .title = "Options of the backend cuda.",
    .fields =
        {choice("precision", {"exact", "tf32", "bf16"})
             .fallback("exact")
             .doc("Format to which cuBLASLt may round operands of 32-bit matrix products. exact: no rounding, no "
                  "tensor cores; bf16 permits TF32, too."),
         choice("messages", {"copy", "kernel", "nccl"})
             .fallback("copy")
             .doc("How messages are sent: copies by the driver, a kernel on the multiprocessors of the receiver, "
                  "or NCCL."),
         choice("sums", {"ordered", "collective"})
             .fallback("ordered")
             .doc("How gradients of replicas are summed: one after another, bit-identical to the backend cpu; or "
                  "by an NCCL all-reduce in its own order, which needs one GPU for each replica."),
         choice("timing", {"events", "off"})
             .fallback("events")
             .doc("What is timed: each instruction, by two CUDA events; or whole iterations only, which does not "
                  "disturb the run."),
         integer("nccl_ctas", 0, 64)
             .fallback("0")
             .doc("Most thread blocks of an NCCL kernel, a power of two. 0: 4 within a GPU; between GPUs up to 16, "
                  "while the kernels of all communicators of a GPU fit on it at the same time."),
         boolean("graph").fallback("false").doc(
             "Whether each repeated iteration is launched as one CUDA graph; requires timing: off. Results say "
             "why if none can be captured."),
         text("products")
             .optional()
             .doc("JSON file of the algorithms of matrix products that were chosen by their times: read where it "
                  "exists, and written after the run with the choices that it lacks. So later runs on such a GPU "
                  "have equal bits. Of several processes, process N has FILE.N.")},
};

const MapSpec run_fields{
    .title = "How the plan is run.",
    .fields =
        {
            variant("schedule", "name", [] { return variants_of(schedules::catalog()); })
                .doc("Order of forwards and backwards: the pipeline schedule. `stagecraft search` finds one."),
            integer("micro_batches", 1, 1 << 20)
                .optional()
                .doc("Micro-batches of one iteration. If stages use different sizes, micro-batches of the largest one "
                     "count. Either this or `global_batch` is needed."),
            integer("global_batch", 1, 1e9)
                .optional()
                .doc("Samples of one iteration, from which `micro_batches` follows."),
            loads_field(),
            integer("iterations", 1, 1e6).fallback("3").doc("Number of iterations, which run back to back."),
            boolean("overlap").fallback("true").doc("Whether a device communicates while it computes. false: it does "
                                                    "one at a time, and neighboring messages are one batch."),
            choice("transfers", {"rendezvous", "handshake", "eager"})
                .fallback("rendezvous")
                .doc("rendezvous: a send waits for its receive, as in NCCL. eager: it starts at once. With `overlap` "
                     "receives are posted early, so the choice matters only with one stream per device. handshake: "
                     "rendezvous, and the receiver's words that it is ready and that it has the data take the latency "
                     "of the route in simulations."),
            choice("streams", {"direction", "pair", "single", "none"})
                .fallback("direction")
                .doc("Communication streams of a device, each of which runs its messages in order: one for each peer "
                     "and direction, one for each peer, a single one, or none."),
            choice("sends", {"fifo", "shared"})
                .fallback("fifo")
                .doc("Whether a device sends one message at a time, or all messages that are ready at once, sharing "
                     "its link."),
            text("buffers").optional().doc(
                "Messages that a receiver holds for each edge of the plan and direction, each from the start of its "
                "transfer to the end of the op that reads it: a send waits until one is free. A sender holds as "
                "many, two at least, and an op waits until one of those is free. unlimited: no message waits for "
                "memory. Default: as many as the planner counts on, as edgepipe does; else unlimited."),
            choice("compute", {"real", "emulated"})
                .fallback("real")
                .doc("What real backends do: compute the model, or sleep for the time in the cost table, so that "
                     "pipelines larger than the machine can be tried."),
            real("time_dilation", 1, 1e9)
                .optional()
                .doc("How many times as long as the scenario says an emulated run sleeps, for a network that is as "
                     "much slower (Gupta et al., To Infinity and Beyond: Time-Warped Network "
                     "Emulation, NSDI 2006). Default: 1."),
            map("gpu", gpu_fields).optional().doc("Options of the backend cuda."),
            choice("precision", number_format_names())
                .optional()
                .doc(
                    "Number format of matrix products, with `software`. Default: bf16, or fp16 on devices without it."),
            choice("collectives", {"cost", "flows"})
                .optional()
                .doc("How collectives run. cost: for the time that the rules of `software` give, as far as nothing "
                     "hides them. flows: as messages on the links, which share them with others; emulated runs really "
                     "send them. Default: cost with `software`, else flows."),
            choice("detail", {"ops", "layers", "replicas", "devices"})
                .optional()
                .doc("What is unfolded. ops: the equal collectives of the layers of an op are one instruction, where "
                     "collectives are messages. layers: each is one. replicas: as ops, and `ideal` and `fluid` "
                     "simulate each "
                     "replica; otherwise one of those that cannot differ is simulated, and the others get its numbers. "
                     "devices: as replicas, and each device of a group has its instructions, messages and changes; "
                     "otherwise the first one stands for the others. Real backends give each device its instructions "
                     "anyway."),
            text("gradient_buckets")
                .fallback("none")
                .doc("Whether the gradients of replicas are summed in buckets next to the last backward, and the size "
                     "of one. none: they are summed at once after it. software: the size of the software stack. Or "
                     "bytes of gradients, such as 25 MiB."),
            integer("seed", 0, 9e15)
                .fallback("1")
                .doc("A number that results record. Random draws have their own seeds: training.seed, "
                     "cluster.jitter.seed, cluster.changes."),
        },
};

MapSpec make_report_fields() {
  MapSpec spec{
      .title = "Files that `run --out` writes, and what a training is to cost.",
      .fields = {boolean("trace").fallback("true").doc(
                     "trace.json, for ui.perfetto.dev; trace.json.gz of runs with more than 100000 instructions."),
                 boolean("svg").fallback("true").doc("timeline.svg, a picture of runs with up to 20000 instructions."),
                 boolean("spans").fallback("true").doc(
                     "spans.csv, one row for each instruction, and memory.csv, one row for each change of memory: "
                     "stagecraft schema spans.csv lists the columns."),
                 boolean("html").fallback("true").doc("report.html, a page about the run.")},
  };
  for (Field& field : budget_fields()) spec.fields.push_back(std::move(field));
  return spec;
}

const MapSpec report_fields = make_report_fields();

std::vector<Variant> policies() {
  std::vector<Variant> list = variants_of(weights::catalog());
  list.insert(list.begin(), {"auto", "The policy that belongs to the schedule", nullptr});
  return list;
}

MapSpec make_overlap_fields() {
  MapSpec spec{.title = "What runs next to computation. What is left out is as the stack usually has it.",
               .fields = {}};
  for (const Overlap f : overlap_features())
    spec.fields.push_back(boolean(std::string(name_of(f))).optional().doc(std::string(effect_of(f))));
  return spec;
}

const MapSpec overlap_fields = make_overlap_fields();

const MapSpec software_fields{
    .title = "The training framework.",
    .fields =
        {text("release").optional().doc(
             "Release of the framework, where facts of releases are known; a patch release has the facts of its "
             "release. Default: the newest."),
         choice("attention", attention_words)
             .optional()
             .doc("How attention runs: eager in several kernels, or the kernel of fused attention. Default: as the "
                  "stack has it."),
         quantity("launch", Dimension::Time)
             .optional()
             .doc("Time of the host for each kernel. Default: what the stack takes on the host of the devices."),
         boolean("graphs").optional().doc(
             "CUDA graphs launch whole passes, so that no kernel waits for the host. Default: false."),
         real("fsdp_overlap", 0, 1)
             .optional()
             .doc("Share of the gathers of divided weights, and of the sums of their gradients, that runs next to "
                  "the pass which needs them. Default: as the stack has it."),
         real("norm_traffic", 1, 100)
             .optional()
             .doc("Bytes of norms and rotations, as a multiple of what one fused kernel moves. Default: as the "
                  "stack has it."),
         boolean("fused_loss")
             .optional()
             .doc("Whether the loss is one kernel for each pass, as with Megatron-LM's cross-entropy-loss-fusion. "
                  "false: several kernels, which move more bytes of each logit. Default: as the stack has it."),
         choice("gathered_bytes", std::vector<std::string>{"1", "2"})
             .optional()
             .doc("Bytes of each weight that replicas gather; 1 with Megatron-LM's fp8-param-gather, where 2 bytes of "
                  "embeddings and scores count as 1 too. Default: 2."),
         map("overlap", overlap_fields).optional().doc("What runs next to computation, each true or false."),
         choice("gradient_bytes", std::vector<std::string>{"2", "4"})
             .optional()
             .doc("Bytes of each gradient that replicas keep and sum. Default: as the stack has it.")},
};

std::vector<Variant> software_words() {
  std::vector<Variant> words{{"none", "A share of the peak rate for every layer", nullptr}};
  for (const SoftwareStack& s : software_stacks()) words.push_back({std::string(s.name), std::string(s.summary)});
  return words;
}

Field model_field() {
  return variant(
             "model", "builder", [] { return variants_of(model_builders::catalog()); }, &model_common)
      .reference()
      .doc("What is trained: a name from models/, a file, or a builder with its parameters.");
}

Field cluster_field() {
  return variant(
             "cluster", "generator", [] { return variants_of(topology_generators::catalog()); }, &cluster_common)
      .reference()
      .doc("What it runs on: a name from topologies/, a file, or a generator with its parameters.");
}

}  // namespace

const MapSpec& scenario_fields() {
  static const MapSpec spec{
      .title = "One question: this model, on this cluster, with this pipeline.",
      .fields = {schema_field(), text("title").fallback("\"\"").doc("Title for people."), model_field(),
                 cluster_field(),
                 variant(
                     "plan", "planner", [] { return variants_of(planners::catalog()); }, &plan_common)
                     .doc("How the model is divided into stages, and which device runs which stage. `stagecraft "
                          "search` finds one."),
                 map("run", run_fields).doc("How the plan is run."),
                 map("data", data_fields())
                     .optional()
                     .doc("The sequences, where they differ in length. Default: each has the length of the model's."),
                 variant("software", "base", software_words, &software_fields)
                     .optional()
                     .doc("The training framework. With it, layers cost what the shapes of their operations say on the "
                          "figures of the device types, and groups of devices can divide them: stagecraft list "
                          "software. none: a share of the peak rate for every layer. Default: plain."),
                 variant("weights", "policy", policies, &weights_fields())
                     .fallback("auto")
                     .doc("Which version of the weights each op uses. auto: the policy that belongs to the schedule."),
                 any("profile").optional().doc("Measured costs that replace computed ones, for devices of the type "
                                               "that the profile names: a name from models/profiles/, or a file; a "
                                               "list of them for devices of several types."),
                 map("training", training_fields())
                     .optional()
                     .doc("The training task of real runs. Default: random numbers, which is enough to measure times."),
                 map("report", report_fields)
                     .optional()
                     .doc("Files that `run --out` writes, and what a training is to cost.")},
  };
  return spec;
}

// A model or cluster file is the same variant at the top of a file.
const MapSpec& model_fields() {
  static const MapSpec spec{.title = "A model file.", .fields = {model_field()}};
  return spec;
}

const MapSpec& cluster_fields() {
  static const MapSpec spec{.title = "A cluster file.", .fields = {cluster_field()}};
  return spec;
}

namespace {

using config::Value;

StreamModel stream_model(const std::string& word) {
  if (word == "single") return StreamModel::Single;
  if (word == "pair") return StreamModel::Pair;
  return word == "none" ? StreamModel::None : StreamModel::Direction;
}

GpuOptions gpu_options(const Value& gpu) {
  GpuOptions options;
  const std::string& precision = gpu.at("precision").text;
  if (precision == "tf32") options.precision = GpuPrecision::Tf32;
  if (precision == "bf16") options.precision = GpuPrecision::Bf16;
  if (gpu.at("messages").text == "nccl") options.messages = GpuMessages::Nccl;
  if (gpu.at("messages").text == "kernel") options.messages = GpuMessages::Kernel;
  if (gpu.at("sums").text == "collective") options.sums = GpuSums::Collective;
  if (gpu.at("timing").text == "off") options.timing = GpuTiming::Off;
  options.nccl_ctas = config::as_int(gpu.at("nccl_ctas"));
  if ((options.nccl_ctas & (options.nccl_ctas - 1)) != 0)
    throw InputError({{gpu.at("nccl_ctas").where, "run.gpu.nccl_ctas",
                       fmt::format("{} is no power of two, and NCCL would take another number", options.nccl_ctas),
                       "1, 2, 4, 8, 16, 32 or 64", "range"}});
  options.graph = config::as_bool(gpu.at("graph"));
  if (const Value* products = gpu.find("products")) options.products = products->text;
  if (options.graph && options.timing == GpuTiming::Events)
    throw InputError({{gpu.at("graph").where, "run.gpu.graph",
                       "a graph of a whole iteration has no events around its instructions, and run.gpu.timing asks "
                       "for them",
                       "run.gpu.timing: off", "graph"}});
  return options;
}

LoweringOptions lowering_options(const Value& run) {
  LoweringOptions options;
  options.iterations = config::as_int(run.at("iterations"));
  options.overlap = config::as_bool(run.at("overlap"));
  options.handshakes = run.at("transfers").text == "handshake";
  options.rendezvous = options.handshakes || run.at("transfers").text == "rendezvous";
  options.streams = stream_model(run.at("streams").text);
  options.fifo_sends = run.at("sends").text == "fifo";
  return options;
}

constexpr int kMostBuffers = 1 << 20;

/// "unlimited" or a number; nothing if the scenario does not say.
std::optional<MessageBuffers> buffers_of(const Value& run) {
  const Value* given = run.find("buffers");
  if (!given) return {};
  if (given->text == "unlimited") return MessageBuffers{};
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{given->where, "run.buffers", what, help, "buffers"}});
  };
  std::string_view rest = given->text;
  const std::optional<int> each = read_number(rest);
  if (!each || !rest.empty() || *each < 1 || *each > kMostBuffers)
    refuse(fmt::format("'{}' is no number of messages", given->text),
           fmt::format("a whole number from 1 to {}, or unlimited", kMostBuffers));
  if (run.at("transfers").text == "eager")
    refuse("with run.transfers: eager a sender starts a message without knowing whether its receiver has a buffer",
           "run.transfers: rendezvous, or run.buffers: unlimited");
  return message_buffers(*each);
}

std::shared_ptr<const Profile> profile_of(const Value& given, const Training& training) {
  auto profile = std::make_shared<const Profile>(read_profile(given));
  if (const auto kind = to_text(training.optimizer.kind); profile->optimizer != kind)
    throw InputError({{given.where, "profile",
                       fmt::format("the profile was measured with the optimizer {}, and the training asks for {}",
                                   profile->optimizer, kind),
                       "measure another one, or change training.optimizer", "profile"}});
  return profile;
}

Profiles profiles_of(const Value& tree, const Training& training) {
  const Value* given = tree.find("profile");
  if (!given) return {};
  if (given->is_map()) return {profile_of(*given, training)};
  Profiles profiles;
  for (const Value& item : given->items) {
    profiles.push_back(profile_of(item, training));
    const auto same = [&](const auto& other) { return other->device == profiles.back()->device; };
    if (std::count_if(profiles.begin(), profiles.end(), same) > 1)
      throw InputError(
          {{item.where, "profile", fmt::format("two profiles are of devices of the type '{}'", profiles.back()->device),
            "leave one out", "profile"}});
  }
  return profiles;
}

/// "none", "software" or a size.
std::optional<BucketRule> bucket_rule(const Value& tree) {
  const Value& run = tree.at("run");
  const Value& buckets = run.at("gradient_buckets");
  const auto refuse = [&](const std::string& what, const std::string& help) {
    throw InputError({{buckets.where, "run.gradient_buckets", what, help, "buckets"}});
  };
  if (buckets.text == "none") return {};
  if (!config::as_bool(run.at("overlap")))
    refuse("with run.overlap: false nothing runs next to a backward", "run.overlap: true");
  if (buckets.text == "software") {
    const SoftwareStack software = software_of(tree);
    if (!software.prices) refuse("there is no software stack that has a size of buckets", "a size, such as 25 MiB");
    if (!software.buckets.cuts())
      refuse(fmt::format("'{}' sums gradients after the last backward", software.name), "a size, such as 25 MiB");
    return software.buckets;
  }
  std::string why;
  const std::optional<double> bytes = config::parse_quantity(config::Dimension::Size, buckets.text, why);
  if (!bytes || *bytes < 1)
    refuse(fmt::format("'{}' is no size", buckets.text), "none, software or a size, such as 25 MiB");
  return BucketRule{.gradients = Bytes{*bytes}};
}

}  // namespace

Settings read_settings(const Value& tree) {
  Settings s;
  const Value& run = tree.at("run");
  s.run.micro_batches = config::as_int(run.at("micro_batches"));
  s.run.seed = static_cast<std::uint64_t>(config::as_real(run.at("seed")));
  s.run.lowering = lowering_options(run);
  s.run.buffers = buffers_of(run);
  if (const Value* detail = run.find("detail")) {
    s.run.each_device = detail->text == "devices";
    s.run.each_replica = s.run.each_device || detail->text == "replicas";
  }
  if (const Value* collectives = run.find("collectives")) s.run.collectives_flow = collectives->text == "flows";
  s.run.buckets = bucket_rule(tree);
  s.run.emulated = run.at("compute").text == "emulated";
  if (const Value* dilation = run.find("time_dilation")) s.run.time_dilation = config::as_real(*dilation);
  if (const Value* gpu = run.find("gpu")) s.run.gpu = gpu_options(*gpu);
  const Value* training = tree.find("training");
  s.has_training = training != nullptr;
  if (training)
    s.training = read_training(*training);
  else
    s.training.task = "random";
  s.run.lowering.gradient_slots = s.training.slots;
  s.run.lowering.optimizer_states = s.training.optimizer.state_tensors();
  s.profiles = profiles_of(tree, s.training);
  if (const Value* report = tree.find("report")) s.budget = read_budget(*report);
  return s;
}

}  // namespace stagecraft
