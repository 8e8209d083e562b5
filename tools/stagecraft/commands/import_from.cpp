// `stagecraft import`: picks the reader for a KIND, prints its notes, and writes the model, scenario, cluster, schedule
// or table that it gives; import_traces.cpp, import_pipeedge.cpp and simgrid_files.cpp have further kinds.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string>

#include <fmt/core.h>

#include "models/dnn_partitioning.hpp"
#include "models/onnx/import.hpp"
#include "models/onnx/mapped_file.hpp"
#include "models/pipedream_graph.hpp"
#include "sim/core/activity.hpp"
#include "sim/core/file.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge.hpp"
#include "sim/interchange/imports/huggingface.hpp"
#include "sim/interchange/imports/training_setup.hpp"
#include "sim/planners/chain_partition/piper_file.hpp"
#include "sim/schedule_file/check_file.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/foreign_files.hpp"
#include "tools/stagecraft/schedule_file.hpp"

namespace stagecraft {
namespace {

constexpr int kLargestSize = 1 << 30;

std::map<std::string, std::int64_t> read_sizes(const std::vector<std::string>& words) {
  std::map<std::string, std::int64_t> sizes;
  for (const std::string& word : words) {
    const std::size_t equals = word.rfind('=');
    if (equals == std::string::npos)
      throw InputError(fmt::format("--set: '{}' gives no size to a dimension", word), "write NAME=512");
    const std::string number = word.substr(equals + 1);
    std::int64_t size = 0;
    const auto [end, error] = from_chars(number.data(), number.data() + number.size(), size);
    if (error != std::errc{} || end != number.data() + number.size() || size < 1 || size > kLargestSize)
      throw InputError(fmt::format("--set {}: '{}' is not a whole number from 1 to {}", word.substr(0, equals), number,
                                   kLargestSize));
    if (!sizes.emplace(word.substr(0, equals), size).second)
      throw InputError(fmt::format("--set: '{}' has a size already", word.substr(0, equals)));
  }
  return sizes;
}

/// A model file from an ONNX file: --batch samples, --set NAME=SIZE for open dimensions, --unknown error or zero,
/// --keep-all. Doubts go to stderr.
std::string import_onnx(const Arguments& a) {
  onnx::ImportOptions options;
  if (a.has("batch")) options.batch = a.count("batch", 1, kLargestSize);
  options.sizes = read_sizes(a.list("set"));
  if (a.has("unknown") && a.text("unknown") != "error" && a.text("unknown") != "zero")
    throw InputError(fmt::format("--unknown: there is no '{}'", a.text("unknown")), "write error or zero");
  options.unknown_is_zero = a.text("unknown") == "zero";
  options.keep_all = a.flag("keep-all");
  const std::string file = a.text("FILE");
  const onnx::MappedFile mapped(file);
  const onnx::ImportedModel imported =
      with_file_context(file, [&] { return onnx::import_model(mapped.bytes(), file, options); });
  for (const std::string& warning : imported.warnings) print_error("{}: warning: {}\n", file, warning);
  return onnx::to_yaml(imported);
}

/// Piper gives forward and backward as one time; as in matrix products each gradient has as much as the forward. A
/// tensor that costs different readers different amounts is sent at its largest.
ModelGraph model_of(const chain_partition::PiperInput& input) {
  constexpr double kParameterBytes = 4;
  const auto order = topological_order(input.graph);
  STAGECRAFT_CHECK(order.has_value());
  ModelGraph model;
  std::vector<LayerId> ids(input.layers.size());
  for (const int n : *order) {
    const std::size_t i = n;
    const auto it = input.layers[i].by_degree.find(1);
    if (it == input.layers[i].by_degree.end() || it->second.empty())
      throw InputError(fmt::format("node {} runs on several devices only", n),
                       "a model file has whole layers: give it a variant for the degree 1");
    const chain_partition::PiperVariant& variant = it->second.front();
    const Seconds third = Seconds{variant.seconds} / 3;
    ids[i] = LayerId{model.layers.size()};
    Layer layer;
    layer.name = fmt::format("{}{}", input.layers[i].name, n);
    for (const int from : input.graph.previous[i]) layer.inputs.push_back(ids[from]);
    layer.times = variant.parameters > 0 ? LayerTimes{third, third, third} : LayerTimes{third, third * 2, {}};
    layer.parameters = variant.parameters / kParameterBytes;
    for (const double bytes : variant.out) layer.output = std::max(layer.output, Bytes{bytes});
    layer.stash = variant.memory.stash;
    model.layers.push_back(std::move(layer));
  }
  return model;
}

/// A model file from what other planners read: KIND pipedream-graph (graph.txt of PipeDream's profiler, a mini-batch of
/// --samples) or piper (JSON of Piper, what it calls a sample). Doubts about the figures go to stderr.
std::string import_model(const Arguments& a) {
  const std::string file = a.text("FILE"), text = read_file(file);
  if (a.text("KIND") == "pipedream-graph")
    return timed_model_yaml(read_pipedream_graph(text, file, a.has("samples") ? a.count("samples", 1, 1 << 20) : 1),
                            "From a PipeDream profile");
  const chain_partition::PiperFile read = chain_partition::read_piper(text, file);
  for (const std::string& warning : read.warnings) print_error("{}: warning: {}\n", file, warning);
  return timed_model_yaml(with_file_context(file, [&] { return model_of(read.input); }), "From an input of Piper");
}

/// A scenario from an input of dnn-partitioning. Doubts about the numbers go to stderr.
std::string import_dnn_partitioning(const Arguments& a) {
  const std::string file = a.text("FILE");
  const DnnPartitioning read = read_dnn_partitioning(read_file(file), file);
  for (const std::string& warning : read.warnings) print_error("{}: warning: {}\n", file, warning);
  return dnn_partitioning_scenario(read);
}

/// Whether the arguments of Megatron-LM stand on the command line, after "--", or a recipe of Megatron-Bridge does.
bool are_inline(const Arguments& a) {
  const std::string kind = a.text("KIND"), first = a.list("FILE").front();
  return (kind == "megatron" && first.starts_with("--")) ||
         (kind == "bridge" && (first.starts_with("-") || first.ends_with("_config") ||
                               (first.find_first_of("./") == std::string::npos && !std::filesystem::exists(first))));
}

/// The words as a shell would read them again.
std::string quoted_words(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) {
    text += text.empty() ? "'" : " '";
    for (const char c : word) text += c == '\'' ? "'\\''" : std::string(1, c);
    text += "'";
  }
  return text;
}

/// A note on lines of at most this width, which break after a comma or between words.
void print_note(const std::string& note) {
  constexpr std::size_t kWidth = 120;
  std::string line = "note: ";
  bool is_first = true;
  for (const std::string& word : split(note, ' ')) {
    if (!is_first && line.size() + 1 + word.size() > kWidth) print_error("{}\n", line), line = "     ";
    line += (is_first ? "" : " ") + word;
    is_first = false;
  }
  print_error("{}\n", line);
}

/// A scenario from the configuration of a training framework. What matched and what did not goes to stderr.
std::string import_setup(const Arguments& a) {
  const std::string kind = a.text("KIND"), file = are_inline(a) ? "arguments" : a.text("FILE"),
                    text = !are_inline(a)     ? read_file(file)
                           : kind == "bridge" ? join(a.list("FILE"), " ")
                                              : quoted_words(a.list("FILE"));
  const SetupOptions options{.model = a.text("model-name"),
                             .cluster = a.text("cluster"),
                             .devices = a.has("devices") ? a.count("devices", 1, 1'000'000) : 0,
                             .vocabulary = a.has("vocabulary") ? a.count("vocabulary", 1, 1'000'000) : 0,
                             .out = a.has("out") ? a.text("out") : "",
                             .config = a.text("config"),
                             .release = a.text("release")};
  const TrainingSetup setup = kind == "megatron"     ? read_megatron(text, file, options)
                              : kind == "bridge"     ? read_bridge(text, file, options)
                              : kind == "torchtitan" ? read_torchtitan(text, file, options)
                                                     : read_deepspeed(text, file, options);
  for (const std::string& note : notes_of(setup, a.flag("details"))) print_note(note);
  return scenario_yaml(setup, options, file);
}

/// A model file from a config.json of Hugging Face. What was taken and what was not goes to stderr.
std::string import_huggingface(const Arguments& a) {
  const std::string file = a.text("FILE");
  const HuggingFaceModel model = read_huggingface(
      read_file(file), file, a.has("sequence") ? a.count("sequence", 1, 100'000'000) : 0, a.flag("details"));
  for (const std::string& note : model.notes) print_note(note);
  return model.yaml;
}

}  // namespace

}  // namespace stagecraft

namespace stagecraft::commands {
namespace {

int deliver(const Arguments& a, const std::string& text) {
  if (!a.has("out")) return print(text), 0;
  write_output_of(a, "out", text, a.text("KIND") == "pytorch-csv" ? CommentStyle::None : CommentStyle::Hash);
  return print("wrote " + a.text("out") + "\n"), 0;
}

constexpr const char* kImportKinds[] = {"pytorch-csv",      "onnx",       "pipedream-graph", "piper",
                                        "dnn-partitioning", "pipeedge",   "simgrid-xml",     "megatron",
                                        "bridge",           "torchtitan", "deepspeed",       "huggingface",
                                        "kineto",           "nsight",     "megatron-timing", "trace"};

std::string import_kinds_text() {
  std::string text;
  for (const char* kind : kImportKinds) text += (text.empty() ? "" : ", ") + std::string(kind);
  return text;
}

bool is_training_setup(const std::string& kind) {
  return kind == "megatron" || kind == "bridge" || kind == "torchtitan" || kind == "deepspeed";
}

[[noreturn]] void refuse(const std::string& option, const std::string& kinds, const std::string& kind) {
  throw InputError(fmt::format("--{} is for {}, not for {}", option, kinds, kind), "leave it out");
}

/// No option of some kinds has a fallback, so that it shows when one was given.
void check_kind(const Arguments& a, const std::vector<Argument>& arguments) {
  const std::string kind = a.text("KIND");
  if (std::find(std::begin(kImportKinds), std::end(kImportKinds), kind) == std::end(kImportKinds))
    throw InputError("there is no kind '" + kind + "' to import",
                     kind.starts_with("nccl") ? "stagecraft calibrate reads the output of nccl-tests"
                                              : fmt::format("write one of: {}", import_kinds_text()));
  if (a.has("set") && kind != "onnx" && kind != "simgrid-xml") refuse("set", "onnx and simgrid-xml", kind);
  if (a.has("batch") && kind != "onnx" && kind != "pipeedge") refuse("batch", "onnx and pipeedge", kind);
  for (const char* option : {"model-name", "cluster", "devices"})
    if (a.has(option) && !is_training_setup(kind)) refuse(option, "megatron, bridge, torchtitan and deepspeed", kind);
  const bool is_profile = kind == "kineto" || kind == "nsight";
  if (a.has("samples") && kind != "pipedream-graph" && kind != "megatron-timing" && !is_profile)
    refuse("samples", "pipedream-graph, kineto, nsight and megatron-timing", kind);
  if (a.flag("details") && !is_training_setup(kind) && kind != "huggingface")
    refuse("details", "megatron, bridge, torchtitan, deepspeed and huggingface", kind);
  for (const char* option : {"layer", "overlap"})
    if (a.has(option) && !is_profile) refuse(option, "kineto and nsight", kind);
  for (const Argument& option : arguments)
    if (const std::string name = option.flags.substr(2); !option.only.empty() && option.only != kind && a.has(name))
      refuse(name, option.only, kind);
}

Argument only(std::string kind, std::string flags, Argument::Kind type, std::string doc) {
  return {std::move(flags), type, std::move(doc), {}, false, std::move(kind)};
}

int execute_import_from(const Arguments& a) {
  check_kind(a, find_in(commands::catalog(), "import")->arguments);
  const Activity activity("importing " + a.text("KIND"));
  if (a.text("KIND") == "pipeedge") return import_pipeedge(a);
  if (a.list("FILE").size() > 1 && !are_inline(a)) throw InputError("one FILE is enough", "only pipeedge reads three");
  if (a.text("KIND") == "simgrid-xml") return deliver(a, import_simgrid(a));
  if (a.text("KIND") == "pipedream-graph" || a.text("KIND") == "piper") return deliver(a, import_model(a));
  if (a.text("KIND") == "dnn-partitioning") return deliver(a, import_dnn_partitioning(a));
  if (a.text("KIND") == "onnx") return deliver(a, import_onnx(a));
  if (is_training_setup(a.text("KIND"))) return deliver(a, import_setup(a));
  if (a.text("KIND") == "huggingface") return deliver(a, import_huggingface(a));
  if (a.text("KIND") == "kineto") return deliver(a, import_kineto(a));
  if (a.text("KIND") == "nsight") return deliver(a, import_nsight(a));
  if (a.text("KIND") == "megatron-timing") return deliver(a, import_megatron_timing(a));
  if (a.text("KIND") == "trace") return deliver(a, import_trace(a));
  FileCheckOptions options;
  if (a.has("torch")) options.torch = torch_version(a.text("torch"));
  const CheckedFile file = check_file(read_file(a.text("FILE")), a.text("FILE"), options);
  throw_if_bad(file, a.text("FILE"));
  return deliver(a, to_csv(file.compute.schedule));
}

}  // namespace

extern const Command import_from{
    .name = "import",
    .summary =
        "Import schedules and traces of PyTorch, models of ONNX, Hugging Face, PipeDream, Piper and dnn-partitioning, "
        "runs of "
        "Megatron-LM, Megatron-Bridge, torchtitan and DeepSpeed, files of PipeEdge and SimGrid",
    .group = "Files",
    .example = "stagecraft import onnx bert.onnx --set sequence=512 --out bert.yaml",
    .arguments =
        {{"KIND",
          Argument::Kind::Text,
          "pytorch-csv, onnx, pipedream-graph, piper, dnn-partitioning, pipeedge, simgrid-xml, megatron, bridge, "
          "torchtitan, deepspeed, "
          "huggingface, kineto, nsight, megatron-timing or trace",
          {},
          true},
         {"FILE",
          Argument::Kind::List,
          "CSV text, compute_only or compute_comms; ONNX model; graph.txt; JSON; models.yml device_types.yml "
          "devices.yml; a script with arguments of Megatron-LM, or these after --; the name of a recipe of "
          "Megatron-Bridge with overrides, or a file with them; TOML, or Python of torchtitan; config.json; a trace; "
          "task_durations.json",
          {},
          true},
         {"--set", Argument::Kind::List,
          "onnx: NAME=SIZE of a dimension that the file leaves open; simgrid-xml: FIELD=VALUE, as memory=\"16 GiB\""},
         {"--batch", Argument::Kind::Count,
          "onnx: samples that the graph is for; pipeedge: samples of a micro-batch (default: 8)"},
         {"-o,--out", Argument::Kind::Text, "File to write (default: print it); pipeedge: folder"},
         force_argument(),
         quiet_argument(),
         {"--details", Argument::Kind::Flag,
          "megatron, bridge, torchtitan, deepspeed, huggingface: notes that name every option, not one line each"},
         only("pytorch-csv", "--torch", Argument::Kind::Text, "Version that wrote it, 2.8 or 2.11"),
         {"--samples", Argument::Kind::Count,
          "pipedream-graph, kineto, nsight: samples of the profiled batch; megatron-timing: of a micro-batch (default: "
          "1)"},
         {"--cluster", Argument::Kind::Text,
          "megatron, bridge, torchtitan, deepspeed: the cluster, which no such file names"},
         {"--model-name", Argument::Kind::Text,
          "megatron, bridge, torchtitan, deepspeed: a model in place of the file's"},
         {"--devices", Argument::Kind::Count,
          "megatron, bridge, torchtitan, deepspeed: number of GPUs, which gives the replicas"},
         only("huggingface", "--sequence", Argument::Kind::Count,
              "Tokens of a sample (default: the most that the model takes, but at most 4096)"),
         only("torchtitan", "--config", Argument::Kind::Text,
              "Function of a Python file that makes the configuration (default: its only one)"),
         only("megatron", "--release", Argument::Kind::Text,
              "Release of Megatron-LM that runs the script, 0.11 to 0.20 (default: 0.20)"),
         only("megatron", "--vocabulary", Argument::Kind::Count, "Size of the vocabulary, where a tokenizer has it"),
         {"--layer", Argument::Kind::List,
          "kineto, nsight: class of torch.nn.Module whose instances are layers, as TransformerBlock, or name of NVTX "
          "ranges that have a number after it; may be repeated"},
         {"--overlap", Argument::Kind::Flag,
          "kineto, nsight: busy time of computation, communication and both as CSV, in place of a model"},
         only("onnx", "--unknown", Argument::Kind::Text,
              "What an unknown operator is: error, or zero for no work (default: error)"),
         only("onnx", "--keep-all", Argument::Kind::Flag, "Make layers for reshapes and the like too"),
         only("pipeedge", "--model", Argument::Kind::Text, "Name of the model in models.yml"),
         only("pipeedge", "--dtype", Argument::Kind::Text, "Number type (default: torch.float32)"),
         only("pipeedge", "--buffers-in", Argument::Kind::Number, "Items buffered before a stage (default: 2)"),
         only("pipeedge", "--buffers-out", Argument::Kind::Number, "Items buffered after a stage (default: 2)"),
         only("pipeedge", "--units", Argument::Kind::Text,
              "compat: MB and Mbps are 2^20, as in PipeEdge's scheduler; si: 10^6 (default: compat)"),
         only("pipeedge", "--medium", Argument::Kind::Text,
              "Network of the hosts: switch, or shared for one shared medium (default: switch)"),
         only("pipeedge", "--data-host", Argument::Kind::Text,
              "Name of the host that has the data; it runs the first stage or none")},
    .run = execute_import_from,
};

}  // namespace stagecraft::commands
