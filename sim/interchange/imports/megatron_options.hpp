#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft {

/// What an option of Megatron-LM is to a scenario: a field stands for it, or none does and it changes the time of an
/// iteration, the memory, both or neither; or it is an option of a launcher.
enum class MegatronUse : std::uint8_t { Field, Time, Memory, TimeAndMemory, WithoutUse, Launcher };

/// What the parser takes as a word after an option; a pattern is a whole number or a list, such as [0]*3+[1]*58.
enum class MegatronWord : std::uint8_t { Any, Whole, Real, Pattern, Choice };

/// One option, without the dashes of its name.
struct MegatronOption {
  MegatronUse use = MegatronUse::Field;
  bool older = false;  ///< Megatron-LM 0.20 does not have it: older versions or forks do.
  std::string since = {},
              until = {};            ///< Its first and its last release; empty: before those that are known, and 0.20.
  int min_words = 0, max_words = 0;  ///< Words that follow it.
  MegatronWord word = MegatronWord::Any;
  std::vector<std::string> choices = {};        ///< The words that MegatronWord::Choice takes.
  std::vector<std::string> choices_since = {};  ///< The first release with each; empty: that of the option.
  std::string fallback = {};  ///< The word that changes nothing; empty: none, or it is not known here.

  bool takes(const std::string& given) const;
  /// Whether a release of Megatron-LM has the option.
  bool is_in(std::string_view release) const;
  /// The first release that takes this word after it; empty: each that has the option, or it is none of the choices.
  std::string since_of(const std::string& choice) const;
};

/// The releases of Megatron-LM whose options are known, oldest first.
std::span<const std::string_view> megatron_releases();

/// Options of one kind, as megatron_option_data.cpp writes them.
struct MegatronOptionList {
  MegatronUse use;
  bool older;
  std::string_view text;
};
std::span<const MegatronOptionList> megatron_option_lists();

/// Null where neither a version of Megatron-LM nor a launcher has the option.
const MegatronOption* find_megatron_option(const std::string& name);

/// "did you mean '--swiglu'?", or nothing.
std::string suggest_megatron_option(const std::string& name);

}  // namespace stagecraft
