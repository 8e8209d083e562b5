#pragma once

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sim/interchange/recipes.hpp"

namespace stagecraft {

/// Arguments of Megatron-LM by their names without dashes, in their order. A recipe of Megatron-Bridge and a plan are
/// compared as such lists.
class ArgumentList {
 public:
  explicit ArgumentList(const std::string& text);

  void remove(const std::string& name);
  void set(const std::string& name, const std::string& values);
  /// The words after an option, without quotes; nothing where it is not given.
  std::optional<std::string> find(const std::string& name) const;
  std::string text() const;

 private:
  std::vector<std::pair<std::string, std::string>> arguments_;  ///< Name, and the words after it.
};

/// "[a,b]" and "'a'" as words.
std::string plain_value(const std::string& value);

/// A number format of recipes.csv, its name in Megatron-Bridge, and its options; empty where no recipe has it.
struct BridgeFormat {
  const char *precision, *name, *options;
};
std::span<const BridgeFormat> bridge_formats();
/// The options that a number format is said by.
std::span<const char* const> format_options();

/// Whether a published recipe is one of Megatron-Bridge, and the name of its function there.
bool is_of_bridge(const Recipe&);
std::string bridge_name(const Recipe&);

/// The arguments of Megatron-LM that a recipe stands for, the model among them (scenarios/recipes/models.txt).
std::string megatron_words(const Recipe&);

}  // namespace stagecraft
