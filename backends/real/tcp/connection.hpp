#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/tcp/socket.hpp"

namespace stagecraft::real {

using Block = std::shared_ptr<char[]>;

enum class FrameKind : std::uint32_t {
  Hello,       ///< The first frame of each connection.
  Word,        ///< `number` is its WordKind.
  Ready,       ///< The receive of a rendezvous transfer may start.
  Taken,       ///< The data of a transfer are here.
  Message,     ///< The data of a transfer.
  Share,       ///< What a process needs of the share of a member of a collective.
  PartToSum,   ///< The part of a member's share that the receiver sums.
  SummedPart,  ///< A sum, which goes around the ring.
  Array        ///< An array of a member of a group; `number` is that of the member.
};

/// What precedes data on a connection. Both processes are of one build, on machines of one kind.
struct Frame {
  FrameKind kind = FrameKind::Hello;
  std::int32_t number = 0;  ///< The transfer, the collective or the member; in a Hello the rank.
  std::int32_t member = 0;  ///< Rank of the share's member in its collective; in a Hello, whether it is for control.
  std::int32_t part = 0;
  std::uint64_t bytes = 0;
};

/// One TCP connection. Nothing blocks.
class Connection {
 public:
  Connection(Socket socket, BufferPool& pool) : socket_(std::move(socket)), pool_(pool) {}

  int fd() const { return socket_.fd(); }
  bool is_open() const { return socket_.is_open(); }
  void close();
  void shut_down();       ///< The other process reads that nothing more will come.
  std::uint64_t key = 0;  ///< By which its wire finds it.
  int peer = -1;          ///< Not known before its Hello.
  bool is_control = false;
  bool is_greeted = false;  ///< Whether it is known to be of this world; else only a short Hello may come.

  void queue(const Frame&, Block);
  bool has_queued() const { return !leaving_.empty(); }
  /// Bytes that the socket took and whose arrival the other system has not acknowledged. Only then they are safe: a
  /// socket that is closed before it has read everything takes them back.
  std::uint64_t unacknowledged() const;
  /// Writes what the socket takes. False where the connection is broken.
  bool write_some();
  /// Reads what is there, up to a limit, and passes on whole frames. False where the connection has ended.
  bool read_some(const std::function<void(const Frame&, Block)>& use);
  std::uint64_t bytes_read() const { return bytes_read_; }
  std::uint64_t bytes_arrived() const { return bytes_written_ - unacknowledged(); }  ///< At the other system.

 private:
  struct Leaving {
    Frame frame;
    Block data;
    std::uint64_t written = 0;  ///< Bytes of the frame and the data together.
  };
  /// Where the next bytes go.
  std::pair<char*, std::size_t> next_target();

  Socket socket_;
  BufferPool& pool_;
  std::deque<Leaving> leaving_;
  Frame frame_;
  Block data_;
  std::uint64_t read_ = 0, bytes_read_ = 0;  ///< Bytes of the frame that arrives, and of all.
  std::uint64_t bytes_written_ = 0;
};

}  // namespace stagecraft::real
