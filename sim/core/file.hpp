#pragma once

#include <string>
#include <utility>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

/// An open file, which this closes.
class OpenFile {
 public:
  explicit OpenFile(int number = -1) : number_(number) {}
  OpenFile(OpenFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  OpenFile& operator=(OpenFile&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~OpenFile();

  int number() const { return number_; }
  void close();

 private:
  int number_;
};

/// The whole of a regular file, or of what the shell opened for this process (/dev/stdin, /dev/fd/N). InputError when
/// it cannot be read: a folder, a device or a pipe of another kind is refused, because reading it may never end. The
/// file counts as an input from then on.
std::string read_file(const std::string& path);

/// A copy of the error in which each problem without a file has this one.
InputError problems_in(const std::string& file, const InputError&);

/// Calls `read`. Problems of an input that it finds, and that name no file, are problems of `file`.
template <class Read>
auto with_file_context(const std::string& file, Read&& read) {
  try {
    return read();
  } catch (const InputError& e) {
    throw problems_in(file, e);
  }
}
/// A file that is read by other means counts as an input too: no output may take its place.
void note_input(const std::string& path);

/// An input of this process that `path` names too, by whatever name or link; empty if there is none.
std::string input_at(const std::string& path);

/// Reads a file that Stagecraft wrote and may replace, like read_file(), but does not count it as an input.
std::string read_output(const std::string& path);

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
