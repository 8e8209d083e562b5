// As much of HTTP/1.1 as a browser on this machine needs: one request and one answer for each connection.

#include "tools/stagecraft/play/http.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/core/threads.hpp"

namespace stagecraft::play {
namespace {

constexpr int kPatienceMs = 10'000;

/// Appends what arrives next; false at the end.
bool receive_more(int socket, std::string& text) {
  pollfd ready{socket, POLLIN, 0};
  if (poll(&ready, 1, kPatienceMs) <= 0) return false;
  std::array<char, 1 << 14> chunk;
  const ssize_t size = recv(socket, chunk.data(), chunk.size(), 0);
  if (size > 0) text.append(chunk.data(), size);
  return size > 0;
}

/// The value of a header; empty where there is none.
std::string header(const std::vector<std::string>& lines, std::string_view name) {
  for (const std::string& line : lines)
    if (const auto colon = line.find(':'); colon != line.npos && lower_case(line.substr(0, colon)) == name)
      return std::string(trim(std::string_view(line).substr(colon + 1)));
  return {};
}

/// "POST /answer?token=1a HTTP/1.1" and the lines after it.
std::optional<Request> read_head(std::string_view head) {
  const std::vector<std::string> lines = split(head, '\n');
  const std::vector<std::string> words = split(trim(lines.front()), ' ');
  if (words.size() != 3 || !words[2].starts_with("HTTP/1.")) return {};
  constexpr std::string_view kToken = "?token=";
  const std::string& target = words[1];
  const auto question = target.find('?');
  return Request{.method = words[0],
                 .path = target.substr(0, question),
                 .token = question != target.npos && target.compare(question, kToken.size(), kToken) == 0
                              ? target.substr(question + kToken.size())
                              : "",
                 .host = header(lines, "host"),
                 .origin = header(lines, "origin"),
                 .body = header(lines, "content-length")};
}

std::string_view reason(int status) {
  return status == 200 ? "OK" : status == 403 ? "Forbidden" : status == 404 ? "Not Found" : "Error";
}

void send_all(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    text.remove_prefix(sent);
  }
}

}  // namespace

OpenFile listen_on_loopback(int port) {
  OpenFile socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (socket.number() < 0) throw BackendError(fmt::format("socket: {}", std::strerror(errno)));
  const int on = 1;
  setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      listen(socket.number(), SOMAXCONN) != 0)
    throw InputError(fmt::format("port {} cannot be used: {}", port, std::strerror(errno)),
                     "another number, or no --port: then one that is free is taken");
  return socket;
}

int port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return ntohs(address.sin_port);
}

std::optional<Request> receive_request(int socket) {
  constexpr std::string_view kEnd = "\r\n\r\n";
  std::string text;
  auto end = text.npos;
  while ((end = text.find(kEnd)) == text.npos)
    if (text.size() > kLargestHead || !receive_more(socket, text)) return {};
  std::optional<Request> request = read_head(std::string_view(text).substr(0, end));
  if (!request) return {};
  std::size_t length = 0;
  const std::string& said = request->body;
  if (from_chars(said.data(), said.data() + said.size(), length).ec != std::errc() && !said.empty()) return {};
  if (length > kLargestBody) return {};
  text.erase(0, end + kEnd.size());
  while (text.size() < length)
    if (!receive_more(socket, text)) return {};
  request->body = text.substr(0, length);
  return request;
}

void send_response(int socket, int status, std::string_view type, std::string_view body, std::string_view headers) {
  send_all(socket, fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}; charset=utf-8\r\nContent-Length: {}\r\n"
                               "Connection: close\r\nCache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\n"
                               "Referrer-Policy: no-referrer\r\n{}\r\n",
                               status, reason(status), type, body.size(), headers));
  send_all(socket, body);
}

void end_with_connection(int socket) {
  std::thread([socket] {
    pollfd closed{socket, POLLRDHUP, 0};
    while (poll(&closed, 1, -1) < 0 && errno == EINTR) continue;
    std::_Exit(0);
  }).detach();
}

}  // namespace stagecraft::play
