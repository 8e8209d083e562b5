// Closes files when their owners end, reads whole files, also as an editor has them that has not saved, and notes which
// files were inputs, so that no output replaces one.

#include "sim/core/file.hpp"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kLargestFile = std::size_t{512} << 20;

std::mutex inputs_mutex;
std::set<std::string> inputs;  // Guarded by inputs_mutex.

/// Path and text of the UnsavedText that lives.
std::optional<std::pair<std::string, std::string>> unsaved;

bool is_opened_by_shell(const std::string& path) {
  return path == "/dev/stdin" || path.starts_with("/dev/fd/") || path.starts_with("/proc/self/fd/");
}

}  // namespace

OpenFile::~OpenFile() { close(); }

void OpenFile::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

UnsavedText::UnsavedText(std::string path, std::string text) { unsaved.emplace(std::move(path), std::move(text)); }
UnsavedText::~UnsavedText() { unsaved.reset(); }

const std::string* unsaved_text(const std::string& path) {
  return unsaved && unsaved->first == path ? &unsaved->second : nullptr;
}

void note_input(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  if (error || !std::filesystem::is_regular_file(absolute, error)) return;
  const std::scoped_lock lock(inputs_mutex);
  inputs.insert(absolute.string());
}

std::string input_at(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const std::scoped_lock lock(inputs_mutex);
  for (const std::string& input : inputs)
    if (std::filesystem::equivalent(input, path, error)) return input;
  return {};
}

void allow_saving(const std::string& path) {
  const std::scoped_lock lock(inputs_mutex);
  std::erase_if(inputs, [&](const std::string& input) {
    std::error_code error;
    return std::filesystem::equivalent(input, path, error);
  });
}

InputError problems_in(const std::string& file, const InputError& error) {
  std::vector<Diagnostic> problems = error.problems();
  for (Diagnostic& problem : problems)
    if (problem.where.file.empty() && problem.message.find(file) == std::string::npos) problem.where.file = file;
  return InputError(std::move(problems));
}

std::string read_file(const std::string& path) {
  if (const std::string* text = unsaved_text(path)) return *text;
  note_input(path);
  return read_output(path);
}

std::string read_output(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (std::filesystem::is_directory(status)) throw InputError(fmt::format("'{}' is a folder, not a file", path));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) && !is_opened_by_shell(path))
    throw InputError(fmt::format("'{}' is a {}, not a file", path,
                                 std::filesystem::is_fifo(status)     ? "pipe"
                                 : std::filesystem::is_socket(status) ? "socket"
                                                                      : "device"),
                     "write what it gives to a file; /dev/stdin is read as well");
  const std::string too_large = fmt::format("'{}' is larger than 512 MiB", path);
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > kLargestFile) throw InputError(too_large);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0) {
    text.append(chunk.data(), in.gcount());
    if (text.size() > kLargestFile) throw InputError(too_large);
  }
  if (!in.is_open() || in.bad()) {
    throw InputError(fmt::format("'{}' cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
  }
  return text;
}

}  // namespace stagecraft
