#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace stagecraft::config {

/// The names here of a field that other programs (Megatron-LM, DeepSpeed, transformers, Calculon) call `word`, the
/// likeliest first; nothing if the word is not known. Upper case and hyphens do not matter.
std::vector<std::string_view> meanings(std::string_view word);

/// The first of these meanings that is among `candidates`, or nothing.
std::optional<std::string> meant_among(std::string_view word, std::span<const std::string> candidates);

/// "did you mean 'x'?" for a synonym, else what suggest() says.
std::string suggest_meant(std::string_view word, std::span<const std::string> candidates);

}  // namespace stagecraft::config
