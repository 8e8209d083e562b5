#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "sim/core/file.hpp"

namespace stagecraft::play {

/// A socket that listens on 127.0.0.1 alone. `port` 0: any that is free. InputError where it is in use.
OpenFile listen_on_loopback(int port);
int port_of(int socket);

struct Request {
  std::string method, path, token, host, origin, body;
};

constexpr std::size_t kLargestHead = 1 << 14, kLargestBody = 4 << 20;

/// A request of HTTP/1.1 with its body. Nothing where the other end closes, waits for more than ten seconds, or sends
/// what is no request or a larger one.
std::optional<Request> receive_request(int socket);

/// Sends the only answer of a connection. `headers`: further lines, each with its line break.
void send_response(int socket, int status, std::string_view type, std::string_view body, std::string_view headers = {});

/// Ends this process when the other end closes the connection, from a thread: no one waits for the answer.
void end_with_connection(int socket);

}  // namespace stagecraft::play
