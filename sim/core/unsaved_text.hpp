#pragma once

#include <string>

namespace stagecraft {

/// While it lives, read_file() of `path` returns `text`: what an editor has not saved. There is one at a time.
class UnsavedText {
 public:
  UnsavedText(std::string path, std::string text);
  ~UnsavedText();
  UnsavedText(const UnsavedText&) = delete;
  UnsavedText& operator=(const UnsavedText&) = delete;
};

/// The text of an UnsavedText with this path; null without one.
const std::string* unsaved_text(const std::string& path);

/// Outputs may replace this file from now on, although it is an input of this process: it is what is edited.
void allow_saving(const std::string& path);

}  // namespace stagecraft
