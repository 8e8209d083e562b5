#pragma once

#include <sys/socket.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/real/processes/wire.hpp"

namespace stagecraft::real {

/// Where a process of a world listens, as the user wrote it.
struct HostPort {
  std::string host;
  int port = 0;
  std::string text() const;  ///< "node1:7700", "[::1]:7700".
};

inline constexpr int kDefaultPort = 7700;

/// Reads "HOST[:PORT],HOST[:PORT],...", with addresses of IPv6 in brackets. InputError where it is malformed or names a
/// process twice.
std::vector<HostPort> hosts_from(const std::string& text);

/// Owns a file descriptor.
class Socket {
 public:
  explicit Socket(int fd = -1) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }
  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  void close();

 private:
  int fd_;
};

/// A resolved address.
struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool is_loopback() const;
  friend bool operator==(const SocketAddress&, const SocketAddress&);
  sockaddr* data() { return reinterpret_cast<sockaddr*>(&storage); }
  const sockaddr* data() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

/// The addresses of a host, the preferred one first. InputError where its name cannot be resolved.
std::vector<SocketAddress> resolve(const HostPort&);

/// Listens at the port of an address: on all interfaces or, if `only_there`, at this address alone. BackendError where
/// the port is taken.
Socket listen_at(const SocketAddress&, const HostPort&, bool only_there);
int port_of(const Socket& listener);

/// A connection to one of the addresses, which does not block. It tries again until the deadline, because the other
/// process may not listen yet; then it is not open, and `why` says what the system said last.
Socket connect_to(const std::vector<SocketAddress>&, Deadline, std::string& why);
/// The next process that has connected, if any.
Socket accept_from(const Socket& listener);

}  // namespace stagecraft::real
