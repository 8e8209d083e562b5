#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::config {

/// A field here that other programs call by another word.
struct Meaning {
  std::string_view name;
  std::string_view place;  ///< Path of its map, where another map has a field of this name too; else empty.
};

/// The fields here that other programs (Megatron-LM, DeepSpeed, PyTorch, transformers, Calculon) call `word`, the
/// likeliest first; nothing if the word is not known. Upper case and hyphens do not matter.
std::vector<Meaning> meanings(std::string_view word);

/// The first of these that is among the fields `candidates` of the map at `path`, or nothing.
std::optional<std::string> meant_field(std::string_view word, std::string_view path,
                                       std::span<const std::string> candidates);

/// The first of `candidates`, values of a field, that other programs call `word`, or nothing.
std::optional<std::string> meant_value(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?" for another word of a field or a value, else what suggest() says.
std::string suggest_field(std::string_view word, std::string_view path, std::span<const std::string> candidates);
std::string suggest_value(std::string_view word, std::span<const std::string> candidates);

}  // namespace stagecraft::config
