#pragma once

#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {

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

}  // namespace stagecraft
