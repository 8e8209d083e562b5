// Recipes of Megatron-Bridge with overrides, both ways, by way of the arguments of Megatron-LM that they stand for: an
// override takes the place of an argument of the recipe, and a plan is written as the arguments in which it differs
// from a recipe. Names of sections and keys: Megatron-Bridge 0.7 (067f987, 2026-08-22).

#include "sim/interchange/bridge.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge_command.hpp"
#include "sim/interchange/imports/megatron_options.hpp"
#include "sim/plan/layout_letters.hpp"

namespace stagecraft {
namespace {

/// "[a,b]" and "'a'" as words.
std::string plain_value(const std::string& value) {
  std::string text;
  for (const char c : value)
    if (c == ',')
      text += ' ';
    else if (c != '[' && c != ']' && c != '"' && c != '\'')
      text += c;
  return text;
}

/// Arguments by their names without dashes, in their order.
class ArgumentList {
 public:
  explicit ArgumentList(const std::string& text) {
    for (const std::string& word : split(text, ' ')) {
      if (word.starts_with("--"))
        arguments_.emplace_back(word.substr(2), "");
      else if (!word.empty() && !arguments_.empty())
        arguments_.back().second += (arguments_.back().second.empty() ? "" : " ") + word;
    }
  }

  void remove(const std::string& name) {
    erase_if(arguments_, [&](const auto& argument) { return argument.first == name; });
  }
  void set(const std::string& name, const std::string& values) {
    remove(name);
    arguments_.emplace_back(name, values);
  }
  /// The words after an option, without quotes; nothing where it is not given.
  std::optional<std::string> find(const std::string& name) const {
    for (const auto& [given, values] : arguments_)
      if (given == name) return plain_value(values);
    return {};
  }
  std::string text() const {
    std::string text;
    for (const auto& [name, values] : arguments_)
      text += fmt::format("{}--{}{}{}", text.empty() ? "" : " ", name, values.empty() ? "" : " ", values);
    return text;
  }

 private:
  std::vector<std::pair<std::string, std::string>> arguments_;  ///< Name, and the words after it.
};

std::string file_of_models() {
  for (const std::string& folder : folders(FileKind::Scenario))
    if (std::string file = folder + "/recipes/models.txt"; std::filesystem::is_regular_file(file)) return file;
  throw InputError("the library has no recipes/models.txt", "install the folder scenarios/recipes");
}

/// The shape of a model of recipes.csv.
std::string arguments_of_model(const std::string& model) {
  const std::string file = file_of_models();
  for (const std::string& line : split(read_file(file), '\n'))
    if (const std::size_t bar = line.find(" | "); bar != std::string::npos && line.substr(0, bar) == model)
      return line.substr(bar + 3);
  throw InputError(fmt::format("{} has no model '{}'", file, model), "a line with its arguments");
}

/// How the layers of a recipe are divided, in the shortest words of Megatron-LM.
std::string division_of(const Recipe& r) {
  if (r.pipeline * r.chunks == 1) return "";
  std::vector<std::ptrdiff_t> counts;
  for (const std::string& stage :
       stages_of_layout(r.layout, [&](std::size_t, const std::string& why) { throw InputError(r.name + ": " + why); }))
    counts.push_back(std::count(stage.begin(), stage.end(), 't'));
  const bool alike = std::all_of(counts.begin() + 1, counts.end() - 1, [&](auto n) { return n == counts[1]; });
  const std::string chunks = r.chunks > 1 ? fmt::format(" --num-virtual-stages-per-pipeline-rank {}", r.chunks) : "";
  const bool has_module = r.layout.find('m') != std::string::npos;
  if (!has_module && alike && counts.front() == counts[1] && counts.back() == counts[1]) return chunks;
  if (!has_module && alike && counts.size() > 2 && counts.front() == counts[1] - 1 && counts.back() == counts[1] - 1)
    return " --account-for-embedding-in-pipeline-split --account-for-loss-in-pipeline-split" + chunks;
  return fmt::format(" --pipeline-model-parallel-layout '{}'", r.layout);
}

std::string recomputation_words(const Recipe& r) {
  const std::vector<std::string> words = split(r.recompute, ' ');
  if (words.front() == "full")
    return fmt::format(" --recompute-granularity full --recompute-method {} --recompute-num-layers {}", words[1],
                       words[2]);
  if (words.front() != "selective") return "";
  return " --recompute-granularity selective --recompute-modules " + r.recompute.substr(10);
}

std::string expert_words(const Recipe& r) {
  if (r.experts == 0) return "";
  std::string text =
      fmt::format(" --expert-model-parallel-size {} --expert-tensor-parallel-size {}", r.expert, r.expert_tensor);
  const std::vector<std::string> words = split(r.dispatcher, ' ');
  text += " --moe-token-dispatcher-type " + words.front();
  if (words.size() > 1) text += " --moe-flex-dispatcher-backend " + words[1];
  return text;
}

/// A number format of recipes.csv, its name in Megatron-Bridge, and its options.
constexpr std::array<const char*, 3> kFormats[] = {
    {{"bf16", "bf16_mixed", "--bf16"}},
    {{"fp16", "fp16_mixed", "--fp16"}},
    {{"fp8", "bf16_with_fp8_current_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe tensorwise"}},
    {{"", "bf16_with_fp8_delayed_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe delayed"}},
    {{"", "bf16_with_fp8_subchannel_scaling_mixed", "--bf16 --fp8-format hybrid --fp8-recipe blockwise"}},
    {{"mxfp8", "bf16_with_mxfp8_mixed", "--bf16 --fp8-format e4m3 --fp8-recipe mxfp8"}},
    {{"nvfp4", "bf16_with_nvfp4_mixed", "--bf16 --fp4-format e2m1 --fp4-recipe nvfp4"}}};

/// Options of the sections `model`, `train` and so on have Megatron-LM's names with "_" for "-", but for these.
struct Renamed {
  const char *key, *option;
  bool inverted = false;  ///< The option is there where the key is false.
};
constexpr Renamed kRenamed[] = {
    {"model.seq_length", "seq-length"},
    {"dataset.sequence_length", "seq-length"},
    {"dataset.seq_length", "seq-length"},
    {"model.virtual_pipeline_model_parallel_size", "num-virtual-stages-per-pipeline-rank"},
    {"model.microbatch_group_size_per_vp_stage", "microbatch-group-size-per-virtual-pipeline-stage"},
    {"comm_overlap.overlap_p2p_comm", "no-overlap-p2p-communication", true},
    {"ddp.grad_reduce_in_fp32", "grad-reduce-in-bf16", true},
    {"model.add_bias_linear", "disable-bias-linear", true},
    {"model.share_embeddings_and_output_weights", "untie-embeddings-and-output-weights", true},
};
/// Arguments that a plan decides, by the sections of their overrides. The rest is the model of the recipe.
constexpr std::pair<const char*, const char*> kPlanned[] = {
    {"model",
     "tensor-model-parallel-size sequence-parallel pipeline-model-parallel-size num-virtual-stages-per-pipeline-rank "
     "pipeline-model-parallel-layout account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split "
     "microbatch-group-size-per-virtual-pipeline-stage context-parallel-size cp-comm-type expert-model-parallel-size "
     "expert-tensor-parallel-size moe-token-dispatcher-type moe-flex-dispatcher-backend moe-shared-expert-overlap "
     "recompute-granularity recompute-method recompute-num-layers recompute-modules seq-length"},
    {"dataset", "seq-length"},
    {"train", "micro-batch-size global-batch-size"},
    {"ddp",
     "use-distributed-optimizer use-megatron-fsdp data-parallel-sharding-strategy num-distributed-optimizer-instances "
     "grad-reduce-in-bf16"},
    {"optimizer",
     "use-distributed-optimizer optimizer-cpu-offload optimizer-offload-fraction overlap-cpu-optimizer-d2h-h2d "
     "use-precision-aware-optimizer"},
    {"comm_overlap",
     "tp-comm-overlap overlap-grad-reduce overlap-param-gather overlap-moe-expert-parallel-comm delay-wgrad-compute "
     "no-overlap-p2p-communication"}};
/// Options that the section ddp has too. With a distributed optimizer Megatron-Bridge overlaps both unless comm_overlap
/// says otherwise, whatever ddp says.
constexpr std::string_view kOverruled[] = {"overlap-grad-reduce", "overlap-param-gather"};

/// Keys that rules of Megatron-Bridge look at, and nothing here.
constexpr std::string_view kRuledKeys[] = {"dataset.enable_in_batch_packing", "dataset.enable_offline_packing",
                                           "mixed_precision.fp8_param_gather",
                                           "mixed_precision.reuse_grad_buf_for_mxfp8_param_ag"};

/// Sections that change neither the time nor the memory of an iteration.
constexpr std::string_view kSectionsWithoutUse[] = {
    "logger", "checkpoint", "scheduler",  "rng",       "tokenizer",
    "dist",   "profiling",  "validation", "straggler", "inprocess_restart"};

bool is_of_bridge(const Recipe& r) { return r.source.ends_with("_config"); }
std::string name_of(const Recipe& r) { return split(r.source, ' ').back(); }

class BridgeReader {
 public:
  BridgeReader(const std::string& text, const std::string& file)
      : file_(file), command_(read_bridge_command(text, file)) {}

  /// Throws what is wrong with overrides together with what Megatron-LM refuses of the rest.
  TrainingSetup read(const SetupOptions& options) {
    std::vector<Diagnostic>& problems = command_.problems;
    const bool is_command_read = problems.empty();
    const Recipe* const recipe = named_recipe();
    ArgumentList arguments(recipe ? megatron_words(*recipe) : "");
    for (BridgeOverride& given : command_.overrides) apply(given, arguments);
    for (const BridgeOverride* given : ddp_overlap_) overrule(*given, arguments);
    if (!recipe || !is_command_read) throw InputError(std::move(problems));
    try {
      TrainingSetup setup = setup_of(*recipe, std::move(arguments), options);
      if (problems.empty()) return setup;
    } catch (const InputError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
    throw InputError(std::move(problems));
  }

 private:
  TrainingSetup setup_of(const Recipe& recipe, ArgumentList arguments, const SetupOptions& options) const {
    const bool is_divided = arguments.find("tensor-model-parallel-size") != "1" && arguments.find("sequence-parallel");
    const bool is_switched_off = arguments.find("tp-comm-overlap") && !is_divided;
    if (is_switched_off) arguments.remove("tp-comm-overlap");
    // Megatron-Bridge asks for the format of checkpoints only where it saves or loads one.
    if (arguments.find("use-megatron-fsdp")) arguments.set("ckpt-format", "fsdp_dtensor");
    const int devices = device_count(options, recipe);
    const std::string scaled = scale_batch(recipe, devices, arguments);
    // Megatron-Bridge does not ask for an overlap of gradients with that of weights.
    const bool weights_alone = arguments.find("overlap-param-gather") && !arguments.find("overlap-grad-reduce");
    if (weights_alone) arguments.remove("overlap-param-gather");
    SetupOptions with_devices = options;
    with_devices.devices = devices;
    TrainingSetup setup = read_as_megatron(arguments.text(), with_devices);
    if (options.devices == 0) setup.replicas = devices / (setup.ranks * setup.tensor * setup.context);
    if (weights_alone) erase_if(setup.overlap, [](const auto& s) { return s.first == Overlap::Weights; });
    if (!scaled.empty()) setup.assumed.push_back(scaled);
    setup.assumed.insert(setup.assumed.end(), overruled_.begin(), overruled_.end());
    for (std::vector<std::string>* notes :
         {&setup.matched, &setup.unmodeled, &setup.unmodeled_time, &setup.unmodeled_memory, &setup.without_use})
      for (std::string& note : *notes) name_as_given(note);
    setup.unmodeled.insert(setup.unmodeled.end(), unmodeled_.begin(), unmodeled_.end());
    setup.without_use.insert(setup.without_use.end(), command_.without_use.begin(), command_.without_use.end());
    if (is_switched_off)
      setup.assumed.emplace_back(
          "Megatron-Bridge switches comm_overlap.tp_comm_overlap off without sequence parallelism in a tensor group");
    setup.assumed.push_back(fmt::format("the recipe is '{}' of Megatron-Bridge 0.7 on {}, in options of Megatron-LM{}",
                                        command_.recipe, pluralize(devices, "GPU"),
                                        recipe.remarks.empty() ? "" : "; " + recipe.remarks));
    return setup;
  }

  /// GPUs, as the launcher is told, or as the recipe has them.
  int device_count(const SetupOptions& options, const Recipe& recipe) const {
    const int nodes = command_.nodes, each = command_.each, gpus = command_.gpus;
    const std::int64_t launched = each > 0 ? std::int64_t{each} * std::max(nodes, 1) : gpus;
    const bool is_unequal = (each > 0 && gpus > 0 && launched != gpus) ||
                            (options.devices > 0 && launched > 0 && launched != options.devices);
    std::string problem;
    if (nodes > 0 && each == 0)
      problem = "the GPUs of a node are not given";
    else if (launched > BridgeCommand::kMostDevices)
      problem = fmt::format("{} are more than {}", pluralize(launched, "GPU"), BridgeCommand::kMostDevices);
    else if (is_unequal)
      problem = pluralize(launched, "GPU") + " here are not those given elsewhere";
    if (!problem.empty())
      throw InputError({{{file_, 1, 1}, "--nodes", problem, "--nodes NUMBER --gpus-per-node NUMBER, once", "import"}});
    return launched > 0 ? static_cast<int>(launched) : options.devices > 0 ? options.devices : recipe.devices;
  }

  /// Megatron-Bridge keeps the samples of each replica unless the global batch is given. What it did, or nothing.
  std::string scale_batch(const Recipe& recipe, int devices, ArgumentList& arguments) const {
    const auto degree = [&](const char* option) {
      const std::string word = arguments.find(option).value_or("1");
      std::string_view rest = word;
      return std::max(1, read_number(rest).value_or(1));
    };
    const std::int64_t each = std::int64_t{degree("tensor-model-parallel-size")} *
                              degree("pipeline-model-parallel-size") * degree("context-parallel-size");
    const bool is_given = std::any_of(command_.overrides.begin(), command_.overrides.end(),
                                      [](const BridgeOverride& o) { return o.key == "train.global_batch_size"; });
    if (is_given || devices % each != 0 || devices / each == recipe.replicas()) return "";
    const std::int64_t samples = recipe.global_batch * (devices / each);
    if (samples % recipe.replicas() != 0)
      throw InputError({{{file_, 1, 1},
                         "train.global_batch_size",
                         fmt::format("{} of {} cannot be scaled to {}", pluralize(recipe.global_batch, "sample"),
                                     pluralize(recipe.replicas(), "replica"), devices / each),
                         "train.global_batch_size=NUMBER",
                         "import"}});
    arguments.set("global-batch-size", std::to_string(samples / recipe.replicas()));
    return fmt::format("Megatron-Bridge keeps the samples of each replica: {} for {} in place of {} for {}",
                       samples / recipe.replicas(), pluralize(devices / each, "replica"), recipe.global_batch,
                       recipe.replicas());
  }

  /// Errors name overrides as they were given, too.
  TrainingSetup read_as_megatron(const std::string& text, const SetupOptions& options) const {
    try {
      return read_megatron(text, file_, options);
    } catch (const InputError& error) {
      std::vector<Diagnostic> problems = error.problems();
      for (Diagnostic& problem : problems) name_as_given(problem.path), name_as_given(problem.message);
      throw InputError(std::move(problems));
    }
  }

  /// Nothing, and a problem, where no such recipe is published.
  const Recipe* named_recipe() {
    std::vector<std::string> names;
    for (const Recipe& r : published_recipes()) {
      if (!is_of_bridge(r)) continue;
      names.push_back(name_of(r));
      if (names.back() == command_.recipe) return &r;
    }
    constexpr const char* kHelp =
        "the recipes of scenarios/recipes/recipes.csv are known; for another, `import megatron` reads its options";
    if (command_.recipe.empty()) return add_problem("no recipe is named", kHelp), nullptr;
    const std::string nearest = suggest(command_.recipe, names);
    add_problem(fmt::format("there is no recipe '{}' here", command_.recipe),
                nearest.starts_with("did you mean") ? nearest : kHelp);
    command_.problems.back().code = kUnknownRecipe;
    return nullptr;
  }

  void add_problem(std::string message, std::string help) {
    command_.problems.push_back({{file_, 1, 1}, "", std::move(message), std::move(help), "import"});
  }
  void refuse(const std::string& word, std::string help) {
    add_problem(fmt::format("'{}' is not known here", word), std::move(help));
  }
  void refuse(const BridgeOverride& given, std::string help) {
    refuse(fmt::format("{}={}", given.key, given.value), std::move(help));
  }

  void apply_format(const BridgeOverride& given, ArgumentList& arguments) {
    for (const auto& [precision, bridge, options] : kFormats)
      if (given.value == bridge) {
        for (const char* option : {"bf16", "fp16", "fp8-format", "fp8-recipe", "fp4-format", "fp4-recipe"})
          arguments.remove(option);
        std::string name;
        for (const std::string& word : split(options, ' '))
          word.starts_with("--") ? arguments.set(name = word.substr(2), "") : arguments.set(name, word);
        return;
      }
    std::vector<std::string> names;
    for (const auto& [precision, bridge, options] : kFormats) names.emplace_back(bridge);
    refuse(given, suggest(given.value, names));
  }

  void apply(BridgeOverride& given, ArgumentList& arguments) {
    const std::string section = given.key.substr(0, given.key.find('.'));
    if (std::find(std::begin(kSectionsWithoutUse), std::end(kSectionsWithoutUse), section) !=
        std::end(kSectionsWithoutUse))
      return command_.without_use.push_back(given.key);
    if (std::find(std::begin(kRuledKeys), std::end(kRuledKeys), given.key) != std::end(kRuledKeys))
      return unmodeled_.push_back(fmt::format("{}={}", given.key, given.value));
    if (section == "mixed_precision") return apply_format(given, arguments);
    if (section == "peft") return refuse(given, "train all weights: adapters are not modeled");
    given.option = given.key.substr(std::min(section.size() + 1, given.key.size()));
    if (given.option.empty()) given.option = given.key;  // Without a section.
    std::replace(given.option.begin(), given.option.end(), '_', '-');
    bool is_inverted = false;
    for (const Renamed& renamed : kRenamed)
      if (given.key == renamed.key) given.option = renamed.option, is_inverted = renamed.inverted;
    const MegatronOption* option = find_megatron_option(given.option);
    if (option && section == given.key)
      return refuse(given, fmt::format("the section before it, such as {}.{}", section_of(given.option), given.key));
    if (!option) return refuse(given, suggestion_for(given, section));
    const bool is_overruled = section == "ddp" && std::find(std::begin(kOverruled), std::end(kOverruled),
                                                            given.option) != std::end(kOverruled);
    if (const std::string wanted = section_for(given.option, section); !is_overruled && wanted != section)
      return refuse(given, fmt::format("did you mean '{}{}'?", wanted, given.key.substr(section.size())));
    const std::string value = lower_case(given.value);
    if (option->max_words == 0 && value != "true" && value != "false" && value != "null" && value != "none")
      return refuse(given, "true or false");
    if (is_overruled) return ddp_overlap_.push_back(&given);
    set_option(given, *option, is_inverted, arguments);
    // A layout is for the pipeline of its recipe.
    if (given.option == "pipeline-model-parallel-size" || given.option == "num-virtual-stages-per-pipeline-rank")
      arguments.remove("pipeline-model-parallel-layout");
    if (given.option == "pipeline-model-parallel-layout") arguments.remove("num-virtual-stages-per-pipeline-rank");
  }

  /// Comes after all other overrides, of which any may say whether optimizer states are divided.
  void overrule(const BridgeOverride& given, ArgumentList& arguments) {
    const bool is_on = lower_case(given.value) == "true";
    const bool divides = arguments.find("use-distributed-optimizer") || arguments.find("use-megatron-fsdp");
    if (is_on == arguments.find(given.option).has_value()) return;
    if (divides)
      overruled_.push_back(
          fmt::format("Megatron-Bridge overrules {}={} where optimizer states are divided; "
                      "comm_overlap.{} decides",
                      given.key, given.value, given.key.substr(given.key.find('.') + 1)));
    else if (is_on)
      arguments.set(given.option, "");
    else
      arguments.remove(given.option);
  }

  /// The section of an argument of a plan.
  static std::string section_of(const std::string& option) {
    for (const auto& [section, options] : kPlanned)
      for (const std::string& one : split(options, ' '))
        if (one == option) return section;
    return "model";
  }

  /// `section`, where Megatron-Bridge may have the argument there; else where it has it.
  static std::string section_for(const std::string& option, const std::string& section) {
    bool is_known = section == "model" || section == "optimizer" || section == "train" || section == "dataset";
    for (const auto& [other, options] : kPlanned) {
      const std::vector<std::string> list = split(options, ' ');
      if (std::find(list.begin(), list.end(), option) == list.end()) continue;
      if (other == section) return section;
      is_known = false;
    }
    return is_known ? section : section_of(option);
  }

  static void set_option(const BridgeOverride& given, const MegatronOption& option, bool is_inverted,
                         ArgumentList& arguments) {
    const std::string value = lower_case(given.value);
    const bool is_false = value == "null" || value == "none" || value == "false";
    const bool is_off = is_inverted ? value == "true" : is_false;
    if (is_off) return arguments.remove(given.option);
    arguments.set(given.option, option.max_words == 0 ? "" : plain_value(given.value));
  }

  static std::string suggestion_for(const BridgeOverride& given, const std::string& section) {
    std::string nearest = suggest_megatron_option(given.option);
    std::string option = given.option;
    if (nearest.empty()) return "leave it out, or write the field into the scenario";
    for (std::size_t at; (at = nearest.find("--")) != std::string::npos;) nearest.replace(at, 2, section + ".");
    for (std::size_t at = nearest.find(section + "."); at < nearest.size(); ++at)
      if (nearest[at] == '-') nearest[at] = '_';
    return nearest;
  }

  /// "model.tensor_model_parallel_size 4 -> ..." in place of "--tensor-model-parallel-size 4 -> ...".
  void name_as_given(std::string& note) const {
    for (auto given = command_.overrides.rbegin(); given != command_.overrides.rend(); ++given) {
      const std::string option = "--" + given->option;
      const bool is_named = !given->option.empty() && note.starts_with(option) &&
                            (note.size() == option.size() || note[option.size()] == ' ' || note[option.size()] == ':');
      if (is_named) return static_cast<void>(note.replace(0, option.size(), given->key));
    }
  }

  const std::string& file_;
  BridgeCommand command_;
  std::vector<std::string> unmodeled_;
  std::vector<const BridgeOverride*> ddp_overlap_;  ///< Overrides of ddp that may be overruled.
  std::vector<std::string> overruled_;              ///< Notes on overrides that have no effect.
};

/// "model.tensor_model_parallel_size=8" for the argument of a section, as it is set or taken away.
std::string override_of(const std::string& section, const std::string& option,
                        const std::optional<std::string>& value) {
  std::string key = section + "." + option;
  bool is_inverted = false;
  std::replace(key.begin(), key.end(), '-', '_');
  for (const Renamed& renamed : kRenamed)
    if (renamed.option == option && std::string_view(renamed.key).starts_with(section + "."))
      key = renamed.key, is_inverted = renamed.inverted;
  if (find_megatron_option(option)->max_words == 0)
    return fmt::format("{}={}", key, value.has_value() != is_inverted ? "true" : "false");
  const bool is_degree = option.ends_with("-size") && option.find("virtual") == std::string::npos;
  if (!value) return key + (is_degree ? "=1" : "=null");
  const bool is_list = option == "recompute-modules";
  std::string words = *value;
  if (is_list) std::replace(words.begin(), words.end(), ' ', ',');
  return fmt::format("{}={}", key, is_list ? "[" + words + "]" : words);
}

std::string format_of(const ArgumentList& arguments) {
  for (const auto& [precision, bridge, options] : kFormats) {
    const ArgumentList named(options);
    bool is_equal = true;
    for (const char* option : {"bf16", "fp16", "fp8-format", "fp8-recipe", "fp4-format", "fp4-recipe"})
      is_equal = is_equal && named.find(option) == arguments.find(option);
    if (is_equal) return bridge;
  }
  return "";
}

/// The overrides that turn the arguments of a recipe into the arguments of a plan.
std::vector<std::string> overrides_from(const ArgumentList& recipe, const ArgumentList& plan) {
  std::vector<std::string> overrides;
  for (const auto& [section, options] : kPlanned)
    for (const std::string& option : split(options, ' '))
      if (recipe.find(option) != plan.find(option))
        overrides.push_back(override_of(section, option, plan.find(option)));
  if (const std::string format = format_of(plan); format != format_of(recipe) && !format.empty())
    overrides.push_back("mixed_precision=" + format);
  return overrides;
}

}  // namespace

std::string megatron_words(const Recipe& r) {
  std::string text =
      arguments_of_model(r.model) +
      " --swiglu --normalization RMSNorm --position-embedding-type rope --untie-embeddings-and-output-weights "
      "--attention-dropout 0 --hidden-dropout 0 --cross-entropy-loss-fusion";
  if (r.model != "gpt-oss-120b") text += " --disable-bias-linear";
  if (r.layout.find('m') != std::string::npos) text += " --mtp-num-layers 1";
  text += fmt::format(" --seq-length {} --micro-batch-size {} --global-batch-size {}", r.sequence, r.micro_batch_size,
                      r.global_batch);
  text += fmt::format(" --tensor-model-parallel-size {} --pipeline-model-parallel-size {}{}", r.tensor, r.pipeline,
                      division_of(r));
  if (r.tensor > 1) text += " --sequence-parallel";
  if (r.context > 1) text += fmt::format(" --context-parallel-size {}", r.context);
  if (!r.context_type.empty()) text += " --cp-comm-type " + r.context_type;
  text += expert_words(r);
  for (const auto& [precision, bridge, options] : kFormats)
    if (r.precision == precision) text += std::string(" ") + options;
  if (r.gradient_bytes == 2) text += " --grad-reduce-in-bf16";
  text += recomputation_words(r);
  text += r.shard == "optimizer" ? " --use-distributed-optimizer"
                                 : fmt::format(
                                       " --use-megatron-fsdp --ckpt-format fsdp_dtensor "
                                       "--data-parallel-sharding-strategy {}",
                                       r.shard == "gradients" ? "optim_grads" : "optim_grads_params");
  for (const auto& [feature, option] : {std::pair{"tensor", "tp-comm-overlap"},
                                        {"gradients", "overlap-grad-reduce"},
                                        {"weights", "overlap-param-gather"},
                                        {"experts", "overlap-moe-expert-parallel-comm"},
                                        {"weight_gradients", "delay-wgrad-compute"}})
    if (std::find(r.overlap.begin(), r.overlap.end(), feature) != r.overlap.end()) text += fmt::format(" --{}", option);
  if (r.remarks.find("gather in the optimizer step") != std::string::npos)
    text += " --overlap-param-gather-with-optimizer-step --ckpt-format torch";
  if (r.remarks.find("embedding gradients deferred") != std::string::npos) text += " --defer-embedding-wgrad-compute";
  return text;
}

namespace {

/// Whether both have the layers of one model. A plan writes its vocabulary as it is padded.
bool has_shape_of(const ArgumentList& recipe, const ArgumentList& plan) {
  const bool has_experts = recipe.find("num-experts").has_value();
  for (const char* option : {"num-layers", "hidden-size", "num-attention-heads", "num-query-groups", "num-experts",
                             has_experts ? "moe-ffn-hidden-size" : "ffn-hidden-size"})
    if (recipe.find(option) != plan.find(option)) return false;
  const std::string of_recipe = recipe.find("vocab-size").value_or("0"),
                    of_plan = plan.find("vocab-size").value_or("0");
  const double words = std::stod(of_recipe), padded = std::stod(of_plan);
  return padded >= words && padded <= 1.1 * words;
}

}  // namespace

FrameworkConfiguration bridge_overrides(const PlannedExperiment& p) {
  FrameworkConfiguration written = megatron_arguments(p);
  const ArgumentList plan(join(split(written.text, '\n'), " "));
  const int devices = static_cast<int>(devices_of(p.plan).size());
  const Recipe* nearest = nullptr;
  std::vector<std::string> overrides;
  for (const Recipe& r : published_recipes()) {
    if (!is_of_bridge(r)) continue;
    const ArgumentList recipe(megatron_words(r));
    if (!has_shape_of(recipe, plan)) continue;
    std::vector<std::string> needed = overrides_from(recipe, plan);
    const int replicas = p.plan.stages.front().shape.degrees.replicas;
    const bool is_scaled =
        replicas != r.replicas() && recipe.find("global-batch-size") == plan.find("global-batch-size");
    if (is_scaled) needed.push_back(override_of("train", "global-batch-size", plan.find("global-batch-size")));
    const bool is_nearer = !nearest || needed.size() < overrides.size() ||
                           (needed.size() == overrides.size() && r.devices == devices && nearest->devices != devices);
    if (is_nearer) nearest = &r, overrides = std::move(needed);
  }
  if (!nearest)
    throw InputError(
        fmt::format("export bridge: no recipe of scenarios/recipes/recipes.csv trains '{}'", p.model().name),
        "export megatron, whose options are overrides of a recipe of your own");
  const int limit = most_on_a_node(devices_of(p.plan), p.cluster()), each = devices % limit == 0 ? limit : 1;
  std::string text = fmt::format(
      "# Megatron-Bridge 0.7: what follows scripts/training/train.sh, a recipe and what this plan overrides in it.\n"
      "--nodes {} --gpus-per-node {} --recipe {}\n",
      devices / each, each, name_of(*nearest));
  for (const std::string& one : overrides) text += one + "\n";
  return {std::move(text), std::move(written.notes)};
}

TrainingSetup read_bridge(const std::string& text, const std::string& file, const SetupOptions& options) {
  return BridgeReader(text, file).read(options);
}

}  // namespace stagecraft
