#include "sim/core/file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kLargestFile = std::size_t{512} << 20;  // So that a device that never ends is no trap.

/// A device or a pipe: no file may take its place.
bool is_special(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  return path.starts_with("/dev/") || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
                                       !std::filesystem::is_directory(status));
}

/// A device that is no terminal. Reading it may never end, as with /dev/zero. Standard input may be anything, and
/// /dev/null is an empty file.
bool is_device(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  if (path == "/dev/stdin" || path == "/dev/null" ||
      !(std::filesystem::is_character_file(status) || std::filesystem::is_block_file(status)))
    return false;
  const int file = open(path.c_str(), O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
  if (file < 0) return false;  // Whoever reads it says why.
  const bool terminal = isatty(file);
  close(file);
  return !terminal;
}

/// The file that a link stands for, so that the link stays.
std::string behind_links(const std::string& path) {
  std::error_code none;
  if (!std::filesystem::is_symlink(path, none)) return path;
  const auto file = std::filesystem::canonical(path, none);
  return none ? path : file.string();
}

/// A neighbour file of write_file(). None goes away, since a handler of a signal may look at it at any time.
struct Neighbour {
  const std::string file;
  std::atomic<bool> half = true;
  Neighbour* next = nullptr;
};

std::atomic<Neighbour*> neighbours = nullptr;
std::atomic<int> finished = 0;

/// While it lives, remove_half_written() removes its file.
class Unfinished {
 public:
  explicit Unfinished(const std::string& file) : neighbour_(new Neighbour{file}) {
    neighbour_->next = neighbours;
    while (!neighbours.compare_exchange_weak(neighbour_->next, neighbour_)) continue;
  }
  ~Unfinished() { neighbour_->half = false; }
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

 private:
  Neighbour* neighbour_;
};

}  // namespace

std::string read_file(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) throw InputError(fmt::format("'{}' is a folder, not a file", path));
  if (is_device(path)) throw InputError(fmt::format("'{}' is a device, not a file", path));
  const std::string too_large = fmt::format("'{}' is larger than 512 MiB", path);
  const auto size = std::filesystem::file_size(path, error);
  if (!error && size > kLargestFile) throw InputError(too_large);
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  std::string text;
  std::array<char, 1 << 16> chunk;
  while (in.read(chunk.data(), chunk.size()) || in.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(in.gcount()));
    if (text.size() > kLargestFile) throw InputError(too_large);
  }
  if (!in.is_open() || in.bad()) {
    throw InputError(fmt::format("'{}' cannot be read: {}", path, std::strerror(errno == 0 ? EIO : errno)));
  }
  return text;
}

void remove_half_written() noexcept {
  for (const Neighbour* n = neighbours; n; n = n->next)
    if (n->half) unlink(n->file.c_str());
}

int files_written() noexcept { return finished; }

void write_file(const std::string& path, std::string_view content) {
  static std::atomic<int> counter{0};
  const bool in_place = is_special(path);
  const std::string target = behind_links(path);
  const std::string neighbour = in_place ? path : fmt::format("{}.{}-{}.tmp", target, getpid(), counter++);
  std::optional<Unfinished> unfinished;
  if (!in_place) unfinished.emplace(neighbour);
  errno = 0;
  std::ofstream out(neighbour, std::ios::binary);
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code renamed;
  if (out && !in_place) std::filesystem::rename(neighbour, target, renamed);
  if (out && !renamed) {
    ++finished;
    return;
  }
  const std::string reason = out ? renamed.message() : std::strerror(errno == 0 ? EIO : errno);
  std::error_code ignored;
  if (!in_place) std::filesystem::remove(neighbour, ignored);
  throw BackendError(fmt::format("'{}' cannot be written: {}", path, reason));
}

}  // namespace stagecraft
