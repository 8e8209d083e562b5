// Reads a recipe of Megatron-Bridge with overrides, by way of the arguments of Megatron-LM that it stands for: an
// override takes the place of an argument of the recipe.

#include "sim/interchange/bridge.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/bridge_command.hpp"
#include "sim/interchange/bridge_keys.hpp"
#include "sim/interchange/bridge_recipe.hpp"

namespace stagecraft {
namespace {

/// The name that shares most words with another one, two or more that not all names have; empty where there is none.
std::string nearest_recipe(const std::string& name, const std::vector<std::string>& names) {
  const std::vector<std::string> words = split(name, '_');
  std::string nearest;
  std::ptrdiff_t shared_by_nearest = 1;
  for (const std::string& other : names) {
    const std::vector<std::string> parts = split(other, '_');
    const auto shared = std::count_if(words.begin(), words.end(), [&](const std::string& word) {
      return word != "config" && word != "pretrain" && std::find(parts.begin(), parts.end(), word) != parts.end();
    });
    if (shared > shared_by_nearest) shared_by_nearest = shared, nearest = other;
  }
  return nearest;
}

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
    offloads_layers_ = arguments.find(kOffloadedLayers).has_value();
    for (BridgeOverride& given : command_.overrides) apply(given, arguments);
    decide_together(arguments);
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
    for (const auto* notes : {&overruled_, &command_.assumed})
      setup.assumed.insert(setup.assumed.end(), notes->begin(), notes->end());
    for (std::vector<std::string>* notes :
         {&setup.matched, &setup.unmodeled, &setup.unmodeled_time, &setup.unmodeled_memory, &setup.without_use})
      for (std::string& note : *notes) name_as_given(note);
    const std::pair<MegatronUse, std::vector<std::string>&> kinds[] = {{MegatronUse::TimeAndMemory, setup.unmodeled},
                                                                       {MegatronUse::Time, setup.unmodeled_time},
                                                                       {MegatronUse::Memory, setup.unmodeled_memory}};
    for (const auto& [use, note] : passed_over_)
      for (const auto& [kind, list] : kinds)
        if (use == kind) list.push_back(note);
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
      names.push_back(bridge_name(r));
      if (names.back() == command_.recipe) return &r;
    }
    constexpr const char* kHelp =
        "the recipes of scenarios/recipes/recipes.csv are known; for another, `import megatron` reads its options";
    if (command_.recipe.empty()) return add_problem("no recipe is named", kHelp), nullptr;
    const std::string nearest = suggest(command_.recipe, names);
    const std::string alike = nearest_recipe(command_.recipe, names);
    add_problem(fmt::format("there is no recipe '{}' here", command_.recipe),
                nearest.starts_with("did you mean") ? nearest
                : alike.empty()                     ? kHelp
                                                    : fmt::format("{}; the nearest is '{}'", kHelp, alike));
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
    for (const auto& [precision, bridge, options] : bridge_formats())
      if (given.value == bridge) {
        for (const char* option : format_options()) arguments.remove(option);
        std::string name;
        for (const std::string& word : split(options, ' '))
          word.starts_with("--") ? arguments.set(name = word.substr(2), "") : arguments.set(name, word);
        return;
      }
    std::vector<std::string> names;
    for (const auto& [precision, bridge, options] : bridge_formats()) names.emplace_back(bridge);
    refuse(given, suggest(given.value, names));
  }

  void set_switch(BridgeOverride& given, bool& is_on, const char* option) {
    const std::string value = lower_case(given.value);
    if (value != "true" && value != "false") return refuse(given, "true or false");
    is_on = value == "true";
    if (is_on) given.option = option;
  }

  /// Keys that count together with another one, after all overrides: either section switches Megatron-FSDP on, and
  /// layers go to host memory where a switch and their number say so.
  void decide_together(ArgumentList& arguments) {
    if (divides_weights_) arguments.set(kFsdp, "");
    const std::optional<std::string> layers = arguments.find(kOffloadedLayers);
    if (layers && !offloads_layers_) {
      arguments.remove(kOffloadedLayers);
      overruled_.push_back(fmt::format(
          "Megatron-Bridge passes over model.cpu_offloading_num_layers={} without model.cpu_offloading=true", *layers));
    }
    if (!layers && offloads_layers_)
      overruled_.emplace_back("model.cpu_offloading=true offloads nothing without model.cpu_offloading_num_layers");
  }

  void apply(BridgeOverride& given, ArgumentList& arguments) {
    const BridgeKey key = bridge_key(given.key);
    if (given.key == "dist.use_megatron_fsdp") return set_switch(given, divides_weights_, kFsdp);
    if (given.key == "model.cpu_offloading") return set_switch(given, offloads_layers_, "");
    if (const std::optional<MegatronUse> use = use_of_bridge_key(key, given.key)) {
      if (*use == MegatronUse::WithoutUse) return command_.without_use.push_back(given.key);
      return passed_over_.emplace_back(*use, fmt::format("{}={}", given.key, given.value)), void();
    }
    if (given.key == "mixed_precision") return apply_format(given, arguments);
    if (key.section == "peft") return refuse(given, "train all weights: adapters are not modeled");
    given.option = key.option;
    const MegatronOption* option = find_megatron_option(given.option);
    if (option && key.section == given.key)
      return refuse(given, fmt::format("the section before it, such as {}.{}", section_of(given.option), given.key));
    if (!option) return refuse(given, suggestion_for(given, key));
    const std::string wanted =
        is_overruled(key) || key.is_renamed ? key.section : section_for(given.option, key.section);
    if (wanted != key.section)
      return refuse(given, fmt::format("did you mean '{}{}'?", wanted, given.key.substr(key.section.size())));
    const std::string value = lower_case(given.value);
    if (option->max_words == 0 && value != "true" && value != "false" && value != "null" && value != "none")
      return refuse(given, "true or false");
    if (is_overruled(key)) return ddp_overlap_.push_back(&given);
    set_option(given, *option, key.is_inverted, arguments);
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

  static void set_option(const BridgeOverride& given, const MegatronOption& option, bool is_inverted,
                         ArgumentList& arguments) {
    const std::string value = lower_case(given.value);
    const bool is_false = value == "null" || value == "none" || value == "false";
    const bool is_off = is_inverted ? value == "true" : is_false;
    if (is_off) return arguments.remove(given.option);
    arguments.set(given.option, option.max_words == 0 ? "" : plain_value(given.value));
  }

  static std::string suggestion_for(const BridgeOverride& given, const BridgeKey& key) {
    const std::string nearest = suggest_bridge_key(key, given.key);
    return nearest.empty() ? "leave it out, or write the field into the scenario" : nearest;
  }

  /// "model.tensor_model_parallel_size 4 -> ..." in place of "--tensor-model-parallel-size 4 -> ...".
  void name_as_given(std::string& note) const {
    for (auto given = command_.overrides.rbegin(); given != command_.overrides.rend(); ++given) {
      const std::string option = "--" + given->option;
      const bool is_named =
          !given->option.empty() && note.starts_with(option) &&
          (note.size() == option.size() || std::string_view(" ,:").find(note[option.size()]) != std::string::npos);
      if (is_named) return static_cast<void>(note.replace(0, option.size(), given->key));
    }
  }

  static constexpr const char *kFsdp = "use-megatron-fsdp", *kOffloadedLayers = "cpu-offloading-num-layers";

  const std::string& file_;
  BridgeCommand command_;
  bool divides_weights_ = false, offloads_layers_ = false;
  std::vector<std::pair<MegatronUse, std::string>>
      passed_over_;                                 ///< Overrides that no option stands for, by their use.
  std::vector<const BridgeOverride*> ddp_overlap_;  ///< Overrides of ddp that may be overruled.
  std::vector<std::string> overruled_;              ///< Notes on overrides that have no effect.
};

}  // namespace

TrainingSetup read_bridge(const std::string& text, const std::string& file, const SetupOptions& options) {
  return BridgeReader(text, file).read(options);
}

}  // namespace stagecraft
