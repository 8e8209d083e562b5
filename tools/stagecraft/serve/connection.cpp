// The pipe between `serve` and the program that asks: JSON objects, each on a line of stdin or stdout. Other output to
// stdout goes to stderr.

#include "tools/stagecraft/serve/connection.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/json_reader.hpp"

namespace stagecraft::serve {
namespace {

constexpr std::size_t kLongestLine = std::size_t{512} << 20;

}  // namespace

Connection::Connection() : out_(dup(STDOUT_FILENO)) {
  std::fflush(stdout);
  if (out_.number() < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw BackendError("serve: stdout and stderr cannot be set up");
}

bool Connection::read_more() {
  char buffer[1 << 16];
  ssize_t size = -1;
  do size = read(STDIN_FILENO, buffer, sizeof buffer);
  while (size < 0 && errno == EINTR);
  if (size <= 0) return false;
  std::string_view text(buffer, size);
  if (is_skipping_) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return true;
    is_skipping_ = false;
    text.remove_prefix(end + 1);
  }
  received_.append(text);
  return true;
}

std::optional<std::string> Connection::receive_line() try {
  for (std::size_t searched = 0;;) {
    const std::size_t end = received_.find('\n', searched);
    if (end != std::string::npos) {
      std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      return line;
    }
    searched = received_.size();
    if (searched > kLongestLine) throw InputError("a request is longer than 512 MiB");
    if (read_more()) continue;
    if (received_.empty()) return {};
    return std::exchange(received_, {});
  }
} catch (...) {  // The line does not fit into memory, so the rest of it is not kept either.
  is_skipping_ = received_.find('\n') == std::string::npos;
  received_ = {};
  throw;
}

std::optional<Json> Connection::receive() {
  const std::optional<std::string> line = receive_line();
  if (!line) return {};
  const std::string help = "a request is one JSON object on one line";
  try {
    Json request = parse_json(*line);
    if (!request.is_object()) throw InputError("the request is no JSON object", help);
    return request;
  } catch (const JsonSyntaxError& e) {
    throw InputError(fmt::format("the request cannot be read: {}, at byte {}", e.what(), e.offset + 1), help);
  }
}

void Connection::send(const Json& object) {
  const std::string line = object.dump() + '\n';
  const std::scoped_lock lock(mutex_);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t size = write(out_.number(), line.data() + sent, line.size() - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) throw BackendError("serve: the program that asked has gone");
    sent += size;
  }
}

}  // namespace stagecraft::serve
