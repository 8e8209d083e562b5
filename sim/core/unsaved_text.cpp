// Keeps the text that an editor has not saved, which stands for that of its file.

#include "sim/core/unsaved_text.hpp"

#include <optional>
#include <utility>

namespace stagecraft {
namespace {

/// Path and text of the UnsavedText that lives.
std::optional<std::pair<std::string, std::string>> unsaved;

}  // namespace

UnsavedText::UnsavedText(std::string path, std::string text) { unsaved.emplace(std::move(path), std::move(text)); }
UnsavedText::~UnsavedText() { unsaved.reset(); }

const std::string* unsaved_text(const std::string& path) {
  return unsaved && unsaved->first == path ? &unsaved->second : nullptr;
}

}  // namespace stagecraft
