// Addresses of `--hosts`, and sockets that listen, connect and close themselves.

#include "backends/real/tcp/socket.hpp"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>
#include <thread>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::real {
namespace {

constexpr int kBacklog = 4096;

HostPort host_from(const std::string& word) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("'{}' names no process: {}", word, why),
                     "write HOST or HOST:PORT, such as node1:7700");
  };
  HostPort result{word, kDefaultPort};
  std::string port;
  if (const std::size_t bracket = word.find(']'); word.starts_with('[') && bracket != std::string::npos) {
    result.host = word.substr(1, bracket - 1);
    port = word.substr(bracket + 1);
  } else if (const std::size_t colon = word.find(':'); colon != std::string::npos) {
    result.host = word.substr(0, colon);
    port = word.substr(colon);
  }
  if (result.host.empty()) refuse("it has no host");
  if (port.empty()) return result;
  const char* const end = port.data() + port.size();
  const auto [at, error] = from_chars(port.data() + 1, end, result.port);
  if (port.front() != ':' || error != std::errc{} || at != end || result.port < 1 || result.port > 65535)
    refuse("a port is a whole number from 1 to 65535");
  return result;
}

}  // namespace

std::string HostPort::text() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::vector<HostPort> hosts_from(const std::string& text) {
  std::vector<HostPort> hosts;
  std::set<std::string> known_hosts;
  for (const std::string& word : split(text, ',')) {
    hosts.push_back(host_from(word));
    if (!known_hosts.insert(hosts.back().text()).second)
      throw InputError(fmt::format("two processes have the address {}", hosts.back().text()),
                       "give each process on a host a port of its own: HOST:7700,HOST:7701");
  }
  return hosts;
}

Socket& Socket::operator=(Socket&& other) noexcept {
  close();
  fd_ = std::exchange(other.fd_, -1);
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

bool SocketAddress::is_loopback() const {
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
  return ntohl(v4->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool operator==(const SocketAddress& a, const SocketAddress& b) {
  return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
}

std::vector<SocketAddress> resolve(const HostPort& host) {
  addrinfo hints{}, *found_addresses = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const int error = getaddrinfo(host.host.c_str(), std::to_string(host.port).c_str(), &hints, &found_addresses);
  if (error != 0)
    throw InputError(fmt::format("the host '{}' cannot be resolved: {}", host.host, gai_strerror(error)),
                     "a name that this machine knows, or an address");
  std::vector<SocketAddress> result;
  for (const addrinfo* next = found_addresses; next != nullptr; next = next->ai_next) {
    SocketAddress& address = result.emplace_back();
    std::memcpy(&address.storage, next->ai_addr, next->ai_addrlen);
    address.length = next->ai_addrlen;
  }
  freeaddrinfo(found_addresses);
  return result;
}

Socket listen_at(const SocketAddress& address, const HostPort& host, bool only_there) {
  SocketAddress where = address;
  if (!only_there && where.storage.ss_family == AF_INET6)
    reinterpret_cast<sockaddr_in6*>(&where.storage)->sin6_addr = in6addr_any;
  if (!only_there && where.storage.ss_family == AF_INET)
    reinterpret_cast<sockaddr_in*>(&where.storage)->sin_addr.s_addr = htonl(INADDR_ANY);
  Socket listener(socket(where.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  const int on = 1;
  setsockopt(listener.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (!listener.is_open() || bind(listener.fd(), where.data(), where.length) != 0 ||
      listen(listener.fd(), kBacklog) != 0)
    throw BackendError(fmt::format("this process cannot listen at {}: {}{}", host.text(), std::strerror(errno),
                                   errno == EADDRINUSE ? "; --hosts HOST:PORT takes another port" : ""));
  return listener;
}

int port_of(const Socket& listener) {
  SocketAddress address;
  address.length = sizeof address.storage;
  getsockname(listener.fd(), address.data(), &address.length);
  return ntohs(reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);  // IPv6 has it at the same place.
}

namespace {

void send_at_once(const Socket& socket) {
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/// A socket that looks for a process which does not listen yet may find its own port.
bool is_connected_with_itself(const Socket& socket) {
  SocketAddress here, there;
  here.length = there.length = sizeof here.storage;
  getsockname(socket.fd(), here.data(), &here.length);
  getpeername(socket.fd(), there.data(), &there.length);
  return here == there;
}

/// Zero, or the number of the error.
int try_connect(const Socket& socket, const SocketAddress& address, Deadline deadline) {
  constexpr int kAttempt = 2000;  // Milliseconds, after which another packet is tried.
  if (!socket.is_open()) return errno;
  if (connect(socket.fd(), address.data(), address.length) != 0 && errno != EINPROGRESS) return errno;
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  pollfd writable{socket.fd(), POLLOUT, 0};
  if (poll(&writable, 1, static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, kAttempt))) <= 0) return ETIMEDOUT;
  int error = 0;
  socklen_t size = sizeof error;
  getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &error, &size);
  return error == 0 && is_connected_with_itself(socket) ? ECONNREFUSED : error;
}

}  // namespace

Socket connect_to(const std::vector<SocketAddress>& addresses, Deadline deadline, std::string& why) {
  constexpr std::chrono::milliseconds kPause{20};
  while (true) {
    for (const SocketAddress& address : addresses) {
      Socket socket(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
      const int error = try_connect(socket, address, deadline);
      if (error == 0) return send_at_once(socket), std::move(socket);
      why = std::strerror(error);
    }
    if (std::chrono::steady_clock::now() > deadline) return Socket();
    std::this_thread::sleep_for(kPause);
  }
}

Socket accept_from(const Socket& listener) {
  Socket socket(accept4(listener.fd(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (socket.is_open()) send_at_once(socket);
  return socket;
}

}  // namespace stagecraft::real
