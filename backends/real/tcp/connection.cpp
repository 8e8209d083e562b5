// Sends and receives frames (a header and data) on one TCP connection that never blocks.

#include "backends/real/tcp/connection.hpp"

#include <linux/sockios.h>
#include <sys/ioctl.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace stagecraft::real {
namespace {

constexpr std::uint64_t kLongestHello = 1 << 16;
constexpr std::size_t kPerTurn = std::size_t{1} << 20;  // Bytes, before it is the turn of another connection.

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

}  // namespace

void Connection::close() {
  socket_.close();
  leaving_.clear();
}

void Connection::shut_down() {
  if (is_open()) shutdown(fd(), SHUT_WR);
}

void Connection::queue(const Frame& frame, Block data) {
  if (is_open()) leaving_.push_back({frame, std::move(data), 0});
}

std::uint64_t Connection::unacknowledged() const {
  int bytes = 0;
  return is_open() && ioctl(fd(), SIOCOUTQ, &bytes) == 0 ? static_cast<std::uint64_t>(bytes) : 0;
}

bool Connection::write_some() {
  while (!leaving_.empty()) {
    Leaving& first = leaving_.front();
    iovec pieces[2];
    std::size_t count = 0;
    if (first.written < sizeof first.frame)
      pieces[count++] = {reinterpret_cast<char*>(&first.frame) + first.written, sizeof first.frame - first.written};
    const std::uint64_t sent = std::max<std::uint64_t>(first.written, sizeof first.frame) - sizeof first.frame;
    if (sent < first.frame.bytes) pieces[count++] = {first.data.get() + sent, first.frame.bytes - sent};
    msghdr message{};
    message.msg_iov = pieces;
    message.msg_iovlen = count;
    const ssize_t written = sendmsg(fd(), &message, MSG_NOSIGNAL);
    if (written < 0) return would_block();
    first.written += static_cast<std::uint64_t>(written);
    bytes_written_ += static_cast<std::uint64_t>(written);
    if (first.written == sizeof first.frame + first.frame.bytes) leaving_.pop_front();
  }
  return true;
}

std::pair<char*, std::size_t> Connection::next_target() {
  if (read_ < sizeof frame_) return {reinterpret_cast<char*>(&frame_) + read_, sizeof frame_ - read_};
  const std::uint64_t there = read_ - sizeof frame_;
  return {data_.get() + there, frame_.bytes - there};
}

bool Connection::read_some(const std::function<void(const Frame&, Block)>& use) {
  for (std::size_t left = kPerTurn; left > 0;) {
    const auto [to, room] = next_target();
    const ssize_t count = recv(fd(), to, std::min(room, left), 0);
    if (count < 0) return would_block();
    if (count == 0) return false;
    read_ += static_cast<std::uint64_t>(count);
    bytes_read_ += static_cast<std::uint64_t>(count);
    left -= static_cast<std::size_t>(count);
    const bool is_stranger = !is_greeted && (frame_.kind != FrameKind::Hello || frame_.bytes > kLongestHello);
    if (read_ >= sizeof frame_ && is_stranger) return false;
    if (read_ == sizeof frame_ && frame_.bytes > 0) data_ = pool_.take(frame_.bytes);
    if (read_ < sizeof frame_ || read_ < sizeof frame_ + frame_.bytes) continue;
    read_ = 0;
    use(frame_, std::exchange(data_, nullptr));
    if (!is_open()) return false;
  }
  return true;
}

}  // namespace stagecraft::real
