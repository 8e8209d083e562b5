// The connections of this process to all others over TCP: how they meet, frames and short messages on them, and losses.

#include "backends/real/tcp/wire.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "backends/real/byte_text.hpp"
#include "backends/real/processes/meeting.hpp"
#include "backends/real/tcp/local_processes.hpp"
#include "backends/real/tcp/remote_members.hpp"
#include "backends/real/tcp/transport.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr std::uint64_t kListenerKey = 0, kWakeKey = 1;
constexpr Patience kJoin{30};

Block block_of(const std::string& text) {
  Block block(new char[std::max<std::size_t>(text.size(), 1)]);
  std::memcpy(block.get(), text.data(), text.size());
  return block;
}

/// Why a process takes no connection: the number in the Hello with which it answers.
constexpr std::int32_t kOtherHosts = -1, kSecondOne = -2;

std::string hosts_text(const std::vector<HostPort>& hosts) {
  std::string text = "stagecraft world of";
  for (const HostPort& host : hosts) text += " " + host.text();
  return text;
}

}  // namespace

TcpWire::TcpWire(std::vector<HostPort> hosts, int rank, Socket listener)
    : hosts_(std::move(hosts)),
      rank_(rank),
      listener_(std::move(listener)),
      poll_(epoll_create1(EPOLL_CLOEXEC)),
      wake_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (!poll_.is_open() || !wake_.is_open())
    throw BackendError(fmt::format("the processes cannot be joined: {}", std::strerror(errno)));
  for (const HostPort& host : hosts_) addresses_.push_back(resolve(host));
  const bool is_local = std::all_of(addresses_.begin(), addresses_.end(),
                                    [](const auto& addresses) { return addresses.front().is_loopback(); });
  if (!listener_.is_open()) listener_ = listen_at(addresses_[rank_].front(), hosts_[rank_], is_local);
  for (const auto& [fd, key] : {std::pair{listener_.fd(), kListenerKey}, {wake_.fd(), kWakeKey}}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = key;
    epoll_ctl(poll_.fd(), EPOLL_CTL_ADD, fd, &event);
  }
  if (rank_ > 0) join_first();
}

TcpWire::~TcpWire() = default;

void TcpWire::join_first() {
  const Deadline deadline = deadline_after(longer(kJoin));
  std::string why;
  Socket socket = connect_to(addresses_[0], deadline, why);
  if (!socket.is_open())
    throw BackendError(fmt::format("the first process ({}) has not answered for {:.3g} s: {}", hosts_[0].text(),
                                   longer(kJoin).count(), why));
  const std::lock_guard lock(mutex_);
  greet(add(std::move(socket), 0, kControl));
}

/// The first frame of a connection says from whom it is.
void TcpWire::greet(Connection& c) {
  const std::string text = hosts_text(hosts_);
  c.queue({FrameKind::Hello, rank_, c.is_control, 0, text.size()}, block_of(text));
  if (!c.write_some()) lose(c, {});
  if (c.is_open()) watch(c);
}

/// `peer` is negative where the other process has not said which it is.
Connection& TcpWire::add(Socket socket, int peer, int lane) {
  const std::uint64_t key = next_key_++;
  Connection& c = *(connections_[key] = std::make_unique<Connection>(std::move(socket), pool_));
  c.key = key;
  c.peer = peer;
  c.is_control = lane == kControl;
  c.is_greeted = peer >= 0;
  if (peer >= 0) outgoing_[{peer, lane}] = &c;
  watch(c, true);
  return c;
}

/// Asks the system to tell when the connection can be read from and, where something waits to leave, written to.
void TcpWire::watch(Connection& c, bool first_time) {
  epoll_event event{};
  event.events = EPOLLIN | (c.has_queued() ? EPOLLOUT : 0U);
  event.data.u64 = c.key;
  epoll_ctl(poll_.fd(), first_time ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c.fd(), &event);
}

Connection* TcpWire::connection_to(int peer, int lane) {
  const auto it = outgoing_.find({peer, lane});
  return it == outgoing_.end() || !it->second->is_open() ? nullptr : it->second;
}

void TcpWire::open_lane(int peer, int lane, Deadline deadline) {
  {
    const std::lock_guard lock(mutex_);
    if (connection_to(peer, lane)) return;
  }
  std::string why;
  Socket socket = connect_to(addresses_[peer], deadline, why);
  if (!socket.is_open()) throw BackendError(fmt::format("{} cannot be reached: {}", name_of(peer), why));
  const std::lock_guard lock(mutex_);
  greet(add(std::move(socket), peer, lane));
}

/// The process with the greater rank connects.
void TcpWire::open_control(const std::vector<int>& peers, Deadline deadline) {
  for (const int peer : peers)
    if (peer < rank_) open_lane(peer, kControl, deadline);
  for (const int peer : peers) {
    const auto is_there = [&] {
      const std::lock_guard lock(mutex_);
      return connection_to(peer, kControl) != nullptr || losses_.contains(peer);
    };
    if (!wait_for(is_there, deadline))
      throw BackendError(fmt::format("{} has not connected with process {} in time", name_of(peer), rank_));
  }
}

void TcpWire::send(int peer, int lane, const Frame& frame, Block data) {
  const std::lock_guard lock(mutex_);
  Connection* const c = connection_to(peer, lane);
  if (c == nullptr) return;  // Its loss has been noted.
  const bool waits = c->has_queued();
  c->queue(frame, std::move(data));
  if (waits) return;
  if (!c->write_some()) return lose(*c, std::strerror(errno));
  if (c->has_queued()) watch(*c);
}

void TcpWire::post(int to, WordKind kind, std::string text) {
  send(to, kControl, {FrameKind::Word, static_cast<std::int32_t>(kind), 0, 0, text.size()}, block_of(text));
}

std::optional<std::string> TcpWire::take(int from, WordKind kind) {
  for (const bool again : {true, false}) {
    {
      const std::lock_guard lock(mutex_);
      if (auto& words = words_[{from, kind}]; !words.empty()) {
        std::string text = std::move(words.front());
        words.pop_front();
        return text;
      }
    }
    if (again) pump(0);
  }
  return {};
}

bool TcpWire::is_coming(int from, WordKind kind) {
  const std::lock_guard lock(mutex_);
  return !words_[{from, kind}].empty();
}

bool TcpWire::all_left() {
  pump(0);
  const std::lock_guard lock(mutex_);
  return std::none_of(connections_.begin(), connections_.end(),
                      [](const auto& c) { return c.second->has_queued() || c.second->unacknowledged() > 0; });
}

std::uint64_t TcpWire::progress() {
  const std::lock_guard lock(mutex_);
  std::uint64_t bytes = 0;
  for (const auto& [key, c] : connections_) bytes += c->bytes_read() + c->bytes_arrived();
  return bytes;
}

std::string TcpWire::loss(int process) {
  const std::lock_guard lock(mutex_);
  const auto it = losses_.find(process);
  return it == losses_.end() ? std::string() : it->second;
}

std::string TcpWire::cause(int process) { return end_of_local_process(process); }

std::deque<Arrival> TcpWire::arrivals() {
  const std::lock_guard lock(mutex_);
  return std::exchange(arrivals_, {});
}

std::optional<Arrival> TcpWire::take_array(int from, int member, double seconds) {
  std::unique_lock lock(mutex_);
  auto& queue = arrays_[{from, member}];
  if (!moved_.wait_for(lock, std::chrono::duration<double>(seconds), [&] { return !queue.empty(); })) return {};
  Arrival first = std::move(queue.front());
  queue.pop_front();
  return first;
}

void TcpWire::pump(double seconds) {
  const std::unique_lock alone(pumping_, std::try_to_lock);
  if (!alone.owns_lock()) {
    std::unique_lock lock(mutex_);
    if (seconds > 0) moved_.wait_for(lock, std::chrono::duration<double>(seconds));
    return;
  }
  std::array<epoll_event, 64> events{};
  // Rounded up: a wait that is too short would end in a wait of no time, again and again.
  const int milliseconds = static_cast<int>(std::clamp(seconds * 1e3 + 0.999, 0.0, 1e6));
  const int count =
      epoll_wait(poll_.fd(), events.data(), static_cast<int>(events.size()), seconds > 0 ? milliseconds : 0);
  {
    const std::lock_guard lock(mutex_);
    for (int n = 0; n < count; ++n) handle(events[n].data.u64, events[n].events);
  }
  if (count > 0) moved_.notify_all();
}

void TcpWire::wake() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = write(wake_.fd(), &one, sizeof one);
}

void TcpWire::handle(std::uint64_t key, std::uint32_t events) {
  if (key == kWakeKey) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = read(wake_.fd(), &count, sizeof count);
    return;
  }
  if (key == kListenerKey) return accept_all();
  const auto it = connections_.find(key);
  if (it == connections_.end() || !it->second->is_open()) return;
  Connection& c = *it->second;
  const std::uint64_t before = c.bytes_read();
  if ((events & ~std::uint32_t{EPOLLOUT}) != 0) {
    errno = 0;
    const bool lives = c.read_some([&](const Frame& frame, Block data) { use(c, frame, std::move(data)); });
    if (!c.is_control) bytes_read_ += c.bytes_read() - before;
    if (!lives && c.is_open()) return lose(c, errno == 0 || errno == ECONNRESET ? "" : std::strerror(errno));
  }
  if (!c.is_open() || (events & EPOLLOUT) == 0) return;
  if (!c.write_some()) return lose(c, std::strerror(errno));
  watch(c);
}

void TcpWire::accept_all() {
  for (Socket socket = accept_from(listener_); socket.is_open(); socket = accept_from(listener_))
    add(std::move(socket), -1, 0);
}

void TcpWire::use(Connection& c, const Frame& frame, Block data) {
  if (frame.kind == FrameKind::Hello) return c.peer < 0 ? answer_greeting(c, frame, data) : note_refusal(c, frame);
  if (c.peer < 0) return;  // It was refused.
  if (frame.kind == FrameKind::Word)
    words_[{c.peer, static_cast<WordKind>(frame.number)}].emplace_back(data.get(), frame.bytes);
  else if (frame.kind == FrameKind::Array)
    arrays_[{c.peer, frame.number}].push_back({c.peer, frame, std::move(data)});
  else
    arrivals_.push_back({c.peer, frame, std::move(data)});
}

/// A refused connection stays open, so that the other process reads why.
void TcpWire::answer_greeting(Connection& c, const Frame& frame, const Block& data) {
  const auto refuse = [&](std::int32_t why) {
    c.queue({FrameKind::Hello, why, 0, 0, 0}, nullptr);
    if (!c.write_some()) c.close();
  };
  const std::string text = hosts_text(hosts_);
  const bool is_rank = frame.number >= 0 && frame.number < static_cast<int>(hosts_.size());
  if (!is_rank || std::string_view(data.get(), frame.bytes) != text) return refuse(kOtherHosts);
  const bool is_control = frame.member != 0;
  if (frame.number == rank_ || (is_control && connection_to(frame.number, kControl))) return refuse(kSecondOne);
  c.peer = frame.number;
  c.is_control = is_control;
  c.is_greeted = true;
  if (is_control) outgoing_[{c.peer, kControl}] = &c;
}

void TcpWire::note_refusal(Connection& c, const Frame& frame) {
  losses_[c.peer] = frame.number == kOtherHosts
                        ? name_of(c.peer) + " was started with other --hosts"
                        : fmt::format("another process has --rank {} of {} already", rank_, hosts_.size());
  c.close();
}

std::string TcpWire::name_of(int process) const {
  return fmt::format("process {} of {} ({})", process, hosts_.size(), address(process));
}

/// A connection ends when the other process has. What that process has said before is on the control connection, and
/// may still have to be read when a connection for data ends.
void TcpWire::lose(Connection& c, const std::string& why) {
  c.close();
  if (c.peer < 0 || (why.empty() && !c.is_control && connection_to(c.peer, kControl))) return;
  std::string& text = losses_[c.peer];
  if (text.empty()) text = name_of(c.peer) + (why.empty() ? " has ended" : " cannot be reached: " + why);
}

std::unique_ptr<MessageTransport> TcpWire::transport(const Program& program, const DevicePlacement& placement,
                                                     RemoteBuffers& buffers) {
  return std::make_unique<TcpTransport>(*this, program, placement, buffers);
}

std::unique_ptr<RemoteMembers> TcpWire::members(int first, std::vector<int> owners) {
  return std::make_unique<TcpMembers>(*this, first, std::move(owners));
}

/// After a failure the last words have to arrive before the connections are closed: what a closed socket has not read
/// may take back what it has sent.
void TcpWire::leave(int code) {
  const auto all_lost = [&] {
    const std::lock_guard lock(mutex_);
    return std::none_of(connections_.begin(), connections_.end(),
                        [](const auto& c) { return c.second->is_open() && c.second->is_control; });
  };
  if (code != 0 || world_state() != WorldState::Separated) {
    const Deadline deadline = deadline_after(patience_after_failure());
    wait_for([&] { return all_left(); }, deadline);
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [key, c] : connections_) c->shut_down();
    }
    wait_for(all_lost, deadline);
  }
}

std::unique_ptr<Wire> open_tcp_wire() {
  return std::make_unique<TcpWire>(hosts_from(std::getenv("STAGECRAFT_HOSTS")), launched().rank, take_local_listener());
}

}  // namespace stagecraft::real
