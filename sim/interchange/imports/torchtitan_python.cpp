// Reads a Python function that makes a configuration of torchtitan since 2026-02-23, as keys and values of its older
// TOML files; torchtitan.cpp calls it.

#include "sim/interchange/imports/torchtitan_python.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/python_values.hpp"
#include "sim/interchange/imports/torchtitan_main.hpp"
#include "sim/interchange/rules/torchtitan.hpp"

namespace stagecraft {
namespace {

/// Sections whose fields are keys of TOML.
constexpr std::pair<std::string_view, std::string_view> kPlainSections[] = {{"training", "TrainingConfig"},
                                                                            {"parallelism", "ParallelismConfig"},
                                                                            {"compile", "CompileConfig"},
                                                                            {"model", "ModelConfig"}};

/// Whether the file reads an attribute and leaves it as it is.
bool is_untouched(const PythonValue& value) {
  return value.is_attribute &&
         std::all_of(value.fields.begin(), value.fields.end(), [](const auto& f) { return is_untouched(*f.second); });
}
bool is_none(const PythonValue& value) { return !value.is_computed && value.callee.empty() && value.plain.is_null(); }

class ConfigurationReader {
 public:
  ConfigurationReader(const PythonFile& python, const std::string& file, std::string function)
      : python_(python), file_(file), function_(std::move(function)) {}

  std::map<std::string, TomlValue> read(bool& is_main) {
    const PythonValue& config = *python_.returned;
    std::map<std::string, TomlValue> base = published_torchtitan_values(config.callee);
    if (config.is_computed || (base.empty() && !config.callee.ends_with("Config")))
      refuse(config, function_,
             config.callee.empty() ? "its result is computed, or no configuration"
                                   : fmt::format("what '{}' makes is not known here", config.callee),
             "a function that returns Trainer.Config(...), or changes a configuration such as llama3_70b()");
    refuse_places(config, function_);
    for (const auto& [section, value] : config.fields)
      if (!is_untouched(*value)) read_section(section, *value, base);
    is_main =
        std::none_of(given_.begin(), given_.end(), [](const auto& v) { return is_older_torchtitan_key(v.first); });
    const bool has_new_tokens = std::any_of(given_.begin(), given_.end(), [](const auto& v) {
      return v.first.find("num_tokens") != std::string::npos || v.first == "training.max_context_length";
    });
    if (is_main || has_new_tokens) check_keys_of_main(given_, file_, "");
    if (!is_main && !base.empty()) base = as_keys_of_toml(std::move(base), file_, true);
    if (derived_.contains("activation_checkpoint.mode"))
      std::erase_if(base, [](const auto& v) { return v.first.starts_with("activation_checkpoint."); });
    for (const auto* more : {&given_, &derived_})
      for (const auto& [key, value] : *more) base[key] = value;
    return is_main ? as_keys_of_toml(std::move(base), file_, true) : base;
  }

 private:
  [[noreturn]] void refuse(const PythonValue& at, const std::string& key, std::string message, std::string help) const {
    throw InputError({{{file_, at.line, at.column}, key, std::move(message), std::move(help), "import"}});
  }
  [[noreturn]] void refuse_computed(
      const PythonValue& at, const std::string& key,
      std::string help = "write the value out: a number, a text, True, False, None or a list of these") const {
    refuse(at, key, "this is computed, and the file is not run", std::move(help));
  }
  /// Which fields they are is not known here.
  void refuse_places(const PythonValue& object, const std::string& key) const {
    if (!object.values.empty())
      refuse(*object.values.front(), key, "values without names are not read here", "give each value its name");
  }

  /// `base` has the published configuration that the file changes; an object takes the place of a whole section.
  void read_section(const std::string& section, const PythonValue& value, std::map<std::string, TomlValue>& base) {
    const auto plain = std::find_if(std::begin(kPlainSections), std::end(kPlainSections),
                                    [&](const auto& s) { return section == s.first; });
    if (section == "model_spec") return read_model(value, base);
    if (section == "model_converters") return read_converters(value, section);
    if (section == "activation_checkpoint") return read_recomputation(value, base);
    if (plain == std::end(kPlainSections)) return given_[section] = {Json(value.callee), value.line}, void();
    if (!value.is_attribute) {
      if (value.is_computed || value.callee.substr(value.callee.rfind('.') + 1) != plain->second)
        refuse_computed(value, section, fmt::format("{}(...) with a name for each value", plain->second));
      refuse_places(value, section);
      std::erase_if(base, [&](const auto& v) { return v.first.starts_with(section + "."); });
    }
    for (const auto& [field, given] : value.fields) {
      const std::string key = section + "." + field;
      if (is_untouched(*given)) continue;
      if (given->is_computed || !given->callee.empty()) refuse_computed(*given, key);
      if (is_none(*given))
        base.erase(key);
      else
        given_[key] = {given->plain, given->line};
    }
  }

  void read_recomputation(const PythonValue& value, std::map<std::string, TomlValue>& base) {
    std::erase_if(base, [](const auto& v) { return v.first.starts_with("activation_checkpoint."); });
    const std::string key = "activation_checkpoint";
    const auto has = [&](const char* name) { return value.callee.find(name) != std::string::npos; };
    const auto set = [&](const char* field, const char* text) {
      derived_[key + "." + field] = {Json(text), value.line};
    };
    if (is_none(value)) return set("mode", "none");
    if (value.is_computed) refuse_computed(value, key);
    if (has("FullAC")) return set("mode", "full");
    if (has("SelectiveAC")) return set("mode", "selective"), set("selective_ac_option", "op");
    if (has("MemoryBudgetAC")) return set("mode", "memory_budget");
    if (!has("ActivationCheckpointConfig")) refuse_computed(value, key);
    refuse_places(value, key);
    for (const auto& [field, given] : value.fields) {  // Releases before 2026-06-15.
      if (given->is_computed) refuse_computed(*given, key + "." + field);
      derived_[key + "." + field] = {given->plain, given->line};
    }
  }

  /// model_registry("70B", converters=[...], moe_comm_backend="deepep").
  void read_model(const PythonValue& value, std::map<std::string, TomlValue>& base) {
    std::erase_if(base, [](const auto& v) { return v.first.starts_with("model."); });
    if (value.is_computed || !value.callee.ends_with("model_registry")) refuse_computed(value, "model_spec");
    const auto named = value.fields.find("flavor");
    const PythonValue* flavor = named != value.fields.end() ? named->second.get()
                                : value.values.empty()      ? nullptr
                                                            : value.values.front().get();
    if (value.values.size() > (named == value.fields.end() ? 1 : 0))
      refuse(*value.values.back(), "model_spec", "values without names are not read here", "give each value its name");
    if (!flavor || !flavor->plain.is_string()) refuse_computed(flavor ? *flavor : value, "model_spec");
    derived_["model.flavor"] = {flavor->plain, flavor->line};
    derived_["model.name"] = {Json(model_name(value.callee)), value.line};
    for (const auto& [field, given] : value.fields) {
      const std::string key = "model_spec." + field;
      if (field == "flavor" || given->plain.is_null()) continue;
      if (given->is_computed && field != "converters") refuse_computed(*given, key);
      if (field == "converters")
        read_converters(*given, key);
      else if (field == "moe_comm_backend")
        derived_["parallelism.expert_parallel_comm_backend"] = {given->plain, given->line};
      else
        derived_["model." + field] = {given->plain, given->line};
    }
  }

  /// Number formats of torchao, by the names that 0.2.2 has for them.
  void read_converters(const PythonValue& value, const std::string& key) {
    Json::Array formats;
    const auto add_format = [&](const PythonValue& converter) {
      for (const auto& [name, format] : {std::pair{"NVFP4", "quantize.linear.nvfp4"},
                                         {"MXFP8", "quantize.linear.mx"},
                                         {"Float8", "quantize.linear.float8"}})
        if (converter.callee.find(name) != std::string::npos) return formats.emplace_back(format), void();
      refuse_computed(converter, key);
    };
    const auto inner = value.fields.find("converters");  // A ModelConvertersContainer.Config has them.
    const PythonValue& list = inner == value.fields.end() ? value : *inner->second;
    if (list.is_computed || !list.plain.is_array()) refuse_computed(list, key);
    for (const auto& converter : list.values) add_format(*converter);
    if (!formats.empty()) derived_["model.converters"] = {Json(std::move(formats)), value.line};
  }

  /// The model whose registry the file imports; else what the folder of the file, or the function, is named after.
  std::string model_name(const std::string& callee) const {
    const auto imported = python_.imports.find(callee.substr(0, callee.find('.')));
    const std::string module = imported == python_.imports.end() ? "" : imported->second;
    for (const std::string& text : {callee, module, file_, function_})
      for (const TorchtitanFlavor& f : torchtitan_flavors())
        if (text.find(f.name) != std::string::npos) return f.name;
    return "";
  }

  const PythonFile& python_;
  const std::string& file_;
  const std::string function_;
  std::map<std::string, TomlValue> given_;    ///< As the file has them.
  std::map<std::string, TomlValue> derived_;  ///< Keys of 0.2.2 for what the file says in other words.
};

}  // namespace

bool is_torchtitan_python(const std::string& text) {
  return text.starts_with("def ") || text.find("\ndef ") != std::string::npos;
}

std::map<std::string, TomlValue> read_torchtitan_python(const std::string& text, const std::string& file,
                                                        const std::string& function, bool& is_main) {
  std::string name = function;
  if (name.empty()) {
    const std::vector<std::string> functions = python_functions(text, file);
    if (functions.size() != 1)
      throw InputError(
          {{{file, 1, 1},
            {},
            fmt::format("the file has {}", pluralize(std::ssize(functions), "function")),
            functions.empty() ? "a function that returns Trainer.Config(...)"
                              : "stagecraft import torchtitan reads one of them with --config: " + join(functions),
            "import"}});
    name = functions.front();
  }
  const PythonFile python = read_python(text, file, name);
  return ConfigurationReader(python, file, name).read(is_main);
}

}  // namespace stagecraft
