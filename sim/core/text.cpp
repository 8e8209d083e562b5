#include "sim/core/text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/written.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kLargestFile = std::size_t{512} << 20;  // So that a device that never ends is no trap.

// Optimal string alignment: insert, delete, replace and swap of neighbours count one each. O(|a| |b|).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

/// Letters that are the same from the beginning on, and from the end.
std::ptrdiff_t alike_at_ends(std::string_view a, std::string_view b) {
  return (std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin()) +
         (std::mismatch(a.rbegin(), a.rend(), b.rbegin(), b.rend()).first - a.rbegin());
}

/// A device or a pipe: no file may take its place.
bool is_special(const std::string& path) {
  std::error_code none;
  const auto status = std::filesystem::status(path, none);
  return path.starts_with("/dev/") || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status) &&
                                       !std::filesystem::is_directory(status));
}

/// A device that is no terminal: what it gives need not end, as that of /dev/zero. Standard input is what it was
/// made, and /dev/null is an empty file.
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

std::string lower_case(std::string_view word) {
  std::string lower(word);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
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

std::optional<std::string> closest(std::string_view word, std::span<const std::string> candidates) {
  const auto same = [&](const std::string& c) { return lower_case(word) == lower_case(c); };
  if (std::count_if(candidates.begin(), candidates.end(), same) == 1)  // Units may differ in case alone.
    return *std::find_if(candidates.begin(), candidates.end(), same);
  std::optional<std::string> best;
  std::size_t limit = std::max<std::size_t>(1, word.size() / 3);
  for (const std::string& candidate : candidates) {
    const std::size_t apart = std::max(word.size(), candidate.size()) - std::min(word.size(), candidate.size());
    if (apart > limit) continue;
    const std::size_t distance = edit_distance(word, candidate);
    if (distance > limit) continue;
    if (best && distance == limit && alike_at_ends(word, candidate) <= alike_at_ends(word, *best)) continue;
    best = candidate;
    limit = distance;
  }
  return best;
}

std::string suggest(std::string_view word, std::span<const std::string> candidates) {
  if (const auto near = closest(word, candidates)) return fmt::format("did you mean '{}'?", *near);
  if (candidates.empty() || candidates.size() > 12) return {};
  if (candidates.size() == 1) return fmt::format("write {}", candidates.front());
  return "write one of " + join(candidates);
}

std::string join(std::span<const std::string> words, std::string_view separator) {
  return fmt::format("{}", fmt::join(words, separator));
}

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> pieces;
  for (;;) {
    const std::size_t end = text.find(separator);
    pieces.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return pieces;
    text.remove_prefix(end + 1);
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

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

std::string csv_quoted(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return '"' + out + '"';
}

std::string shortest(double value) { return fmt::format("{}", value); }

std::optional<int> read_number(std::string_view& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  if (error != std::errc{} || text.front() == '-' || (digits > 1 && text.front() == '0')) return {};
  text.remove_prefix(digits);
  return value;
}

std::string two_digits(double value) {
  return std::abs(value) < 99.5 ? fmt::format("{:.2g}", value) : fmt::format("{:.0f}", value);
}

}  // namespace stagecraft
