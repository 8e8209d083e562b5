// Reads what a command of Megatron-Bridge's launcher (scripts/training/run_recipe.py) says: the recipe, the GPUs, and
// overrides, for which it has short options too. Options: Megatron-Bridge 0.7 (067f987, 2026-08-22).

#include "sim/interchange/bridge_command.hpp"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/interchange/imports/shell_words.hpp"

namespace stagecraft {
namespace {

/// Options of the launcher (scripts/training/run_recipe.py) that stand for an override.
constexpr std::pair<const char*, const char*> kShortForms[] = {
    {"-gb --global_batch_size", "train.global_batch_size"},
    {"-mb --micro_batch_size", "train.micro_batch_size"},
    {"-sl --seq_length", "dataset.seq_length"},
    {"-tp --tensor_model_parallel_size", "model.tensor_model_parallel_size"},
    {"-pp --pipeline_model_parallel_size", "model.pipeline_model_parallel_size"},
    {"-cp --context_parallel_size", "model.context_parallel_size"},
    {"-vp --virtual_pipeline_model_parallel_size", "model.virtual_pipeline_model_parallel_size"},
    {"-ep --expert_model_parallel_size", "model.expert_model_parallel_size"},
    {"-etp --expert_tensor_parallel_size", "model.expert_tensor_parallel_size"}};
/// Its other options that have a value, and those without one: data, rates, checkpoints and the job.
constexpr std::string_view kLauncherOptions =
    "--dataset --mode --step-func --step_func -ms --max_steps --lr --min_lr --warmup_iters --pretrained_checkpoint "
    "--save_dir --load_dir --save_interval --account --partition --time --gres --additional-slurm-params "
    "--additional_slurm_params --container-image --mount --env --srun-arg -lmc --peak-mem-clk --peak_mem_clk "
    "--experiment-name";
constexpr std::string_view kLauncherFlags =
    "--dry-run --dry_run --submission-dry-run --deterministic --dump-env --dump_env --wait --no-gpu-resource-request";

bool has_word(std::string_view list, const std::string& word) {
  const std::vector<std::string> words = split(list, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// "CUDA_DEVICE_MAX_CONNECTIONS", which a command line may set before the program.
bool is_of_environment(const std::string& name) {
  return !name.empty() && name.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string::npos;
}

/// Hydra adds a key with "+", and with "++" where it is there too.
std::string key_of(std::string word) {
  while (word.starts_with('+')) word.erase(0, 1);
  return word;
}

/// Whether a word may be the name of a recipe that is mistyped: "llama3_70b_64gpu_h100_bf16".
bool is_like_recipe(const std::string& word) {
  return word.find('_') != std::string::npos && word.find_first_of("-~+./\\") == std::string::npos;
}

bool is_program(const std::string& word) { return word.ends_with(".py") || word.ends_with("train.sh"); }

class CommandReader {
 public:
  CommandReader(const std::string& text, const std::string& file) : file_(file) {
    std::vector<std::string> words = words_of(text.starts_with("#!") ? command_of_script(text) : text);
    const auto program = std::find_if(words.rbegin(), words.rend(), is_program);
    words.erase(words.begin(), program.base());  // What starts the program is not read.
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string word = words[i];
      const std::size_t at = word.find('=');
      if (word.starts_with('-') && read_option(words, i)) continue;
      if (at == std::string::npos && (word.ends_with("_config") || (command_.recipe.empty() && is_like_recipe(word))))
        name_recipe(word);
      else if (at == std::string::npos || word.starts_with('-') || word.starts_with('~'))
        refuse(word, "overrides are section.key=value, and null takes a value away");
      else if (const std::string key = key_of(word.substr(0, at)); !is_of_environment(key))
        command_.overrides.push_back({key, word.substr(at + 1), ""});
    }
  }

  BridgeCommand result() {
    command_.overrides.insert(command_.overrides.begin(), short_forms_.begin(), short_forms_.end());
    return std::move(command_);
  }

 private:
  /// An option of the launcher at a word, with its value after it or after "="; false for what it does not have.
  bool read_option(const std::vector<std::string>& words, std::size_t& at) {
    const std::size_t equals = words[at].find('=');
    const std::string name = words[at].substr(0, equals);
    if (has_word(kLauncherFlags, name)) return command_.without_use.push_back(name), true;
    const bool has_value = equals != std::string::npos || at + 1 < words.size();
    const auto value = [&] { return equals != std::string::npos ? words[at].substr(equals + 1) : words[++at]; };
    if (!has_value) return false;
    if (name == "--recipe") return name_recipe(value()), true;
    if (name == "--nodes") return command_.nodes = count(name, value()), true;
    if (name == "--gpus-per-node" || name == "--gpus_per_node") return command_.each = count(name, value()), true;
    if (name == "-ng" || name == "--num_gpus") return command_.gpus = count(name, value()), true;
    if (has_word(kLauncherOptions, name)) return command_.without_use.push_back(name + " " + value()), true;
    for (const auto& [names, key] : kShortForms)
      if (has_word(names, name)) return short_forms_.push_back({key, value(), ""}), true;
    return false;
  }

  int count(const std::string& name, const std::string& value) {
    std::string_view rest = value;
    const std::optional<int> number = value.empty() ? std::nullopt : read_number(rest);
    if (number && rest.empty() && *number >= 1 && *number <= BridgeCommand::kMostDevices) return *number;
    add_problem(fmt::format("'{} {}' is no whole number from 1 to {}", name, value, BridgeCommand::kMostDevices),
                name + " NUMBER");
    return 1;
  }

  /// The command of a shell script that names a recipe, with the values of its variables: the first with --recipe, or
  /// else one whose word is like a recipe's name. The whole text where there is none.
  std::string command_of_script(const std::string& script) {
    try {
      const ShellScript read = read_shell(script);
      command_.assumed = shell_notes(read);
      std::string best = script;
      int highest = 0;
      for (const ShellCommand& command : read.commands) {
        std::string text;
        for (const ShellWord& word : command) text += word.text + " ";
        const int likeness = text.starts_with("echo ") ? 0 : recipe_likeness(text);
        if (likeness > highest) best = std::move(text), highest = likeness;
      }
      return best;
    } catch (const InputError& error) {
      add_problem(error.problems().front().message, error.problems().front().help);
    }
    return {};
  }

  /// 0 where a command names no recipe, and more the surer it is that it does: mkdir may make an x_config.
  static int recipe_likeness(const std::string& command) {
    const std::vector<std::string> words = split(command, ' ');
    const auto any = [&](const auto& is) { return std::any_of(words.begin(), words.end(), is); };
    if (any([](const std::string& w) { return w == "--recipe" || w.starts_with("--recipe="); })) return 3;
    const auto is_recipe = [](const std::string& w) {
      return w.ends_with("_config") && w.find_first_of("=/") == std::string::npos;
    };
    return !any(is_recipe) ? 0 : any(is_program) ? 2 : 1;
  }

  /// The words of a command or a file, without comments; a list in brackets is a part of its word.
  static std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (std::string line : split(text, '\n')) {
      if (const std::size_t comment = (" " + line).find(" #"); comment != std::string::npos) line.resize(comment);
      for (char& c : line)
        if (c == '\t' || c == '\\') c = ' ';
      bool is_open = false;
      for (const std::string& word : split(line, ' ')) {
        if (word.empty()) continue;
        if (is_open)
          words.back() += word;
        else
          words.push_back(word);
        drop_quotes(words.back());
        is_open = words.back().find('[') != std::string::npos && words.back().find(']') == std::string::npos;
      }
    }
    return words;
  }

  /// Quotes around a whole word are for the shell.
  static void drop_quotes(std::string& word) {
    const bool is_quoted =
        word.size() > 1 && (word.front() == '"' || word.front() == '\'') && word.back() == word.front();
    if (is_quoted) word = word.substr(1, word.size() - 2);
  }

  void name_recipe(const std::string& name) {
    if (!command_.recipe.empty() && command_.recipe != name)
      refuse(name, "one recipe; '" + command_.recipe + "' is named before");
    command_.recipe = name;
  }

  void add_problem(std::string message, std::string help) {
    command_.problems.push_back({{file_, 1, 1}, "", std::move(message), std::move(help), "import"});
  }
  void refuse(const std::string& word, std::string help) {
    add_problem(fmt::format("'{}' is not known here", word), std::move(help));
  }

  const std::string& file_;
  BridgeCommand command_;
  std::vector<BridgeOverride> short_forms_;
};

}  // namespace

BridgeCommand read_bridge_command(const std::string& text, const std::string& file) {
  return CommandReader(text, file).result();
}

}  // namespace stagecraft
