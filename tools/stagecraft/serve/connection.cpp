#include "tools/stagecraft/serve/connection.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::serve {

Connection::Connection() : out_(dup(STDOUT_FILENO)) {
  std::fflush(stdout);
  if (out_.number() < 0 || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    throw BackendError("serve: stdout and stderr cannot be set up");
}

std::optional<Json> Connection::receive() {
  std::size_t end = 0;
  while ((end = received_.find('\n')) == std::string::npos) {
    char buffer[1 << 16];
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof buffer);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};
    received_.append(buffer, static_cast<std::size_t>(size));
  }
  std::optional<Json> object = Json::parse(std::string_view(received_).substr(0, end));
  received_.erase(0, end + 1);
  if (!object || !object->is_object()) throw BackendError("serve: a request is one JSON object on one line");
  return object;
}

void Connection::send(const Json& object) {
  const std::string line = object.dump() + '\n';
  const std::scoped_lock lock(mutex_);
  for (std::size_t sent = 0; sent < line.size();) {
    const ssize_t size = write(out_.number(), line.data() + sent, line.size() - sent);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) throw BackendError("serve: the program that asked has gone");
    sent += static_cast<std::size_t>(size);
  }
}

}  // namespace stagecraft::serve
