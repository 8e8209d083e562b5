#include "sim/run/sweep/line.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

bool is_full(ssize_t put) { return put < 0 && (errno == EAGAIN || errno == EWOULDBLOCK); }

}  // namespace

bool Line::send(std::string_view text) {
  const std::uint64_t size = text.size();
  return send_all(reinterpret_cast<const char*>(&size), sizeof size) && send_all(text.data(), size);
}

bool Line::send_all(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t put = ::send(file_, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (put < 0 && errno == EINTR) continue;
    if (is_full(put)) {  // The other end may wait for us to read.
      pollfd ready{file_, POLLIN | POLLOUT, 0};
      poll(&ready, 1, -1);
      if ((ready.revents & POLLIN) != 0 && !hear(false)) return false;
      continue;
    }
    if (put <= 0) return false;
    data += put;
    size -= static_cast<std::size_t>(put);
  }
  return true;
}

bool Line::hear(bool wait) {
  std::array<char, 1 << 16> buffer;
  for (;;) {
    const ssize_t got = recv(file_, buffer.data(), buffer.size(), wait ? 0 : MSG_DONTWAIT);
    if (got > 0) heard_.append(buffer.data(), static_cast<std::size_t>(got));
    if (got > 0 && wait) return true;
    if (got == 0 || (got < 0 && errno != EINTR)) return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }
}

bool Line::listen() { return hear(false); }

std::optional<std::string> Line::take() {
  std::uint64_t size = 0;
  if (heard_.size() < sizeof size) return {};
  std::memcpy(&size, heard_.data(), sizeof size);
  if (heard_.size() - sizeof size < size) return {};
  std::string text = heard_.substr(sizeof size, size);
  heard_.erase(0, sizeof size + size);
  return text;
}

std::optional<std::string> Line::next() {
  for (;;) {
    if (auto text = take()) return text;
    if (!hear(true)) return {};
  }
}

std::pair<int, int> open_line() {
  std::array<int, 2> ends{-1, -1};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw BackendError(fmt::format("socketpair: {}", std::strerror(errno)));
  return {ends[0], ends[1]};
}

}  // namespace stagecraft
