#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "sim/program/program.hpp"

namespace stagecraft::real {

/// Send and receive buffers of messages that go to another process.
class RemoteBuffers {
 public:
  virtual ~RemoteBuffers() = default;
  virtual std::size_t bytes(int transfer) const = 0;
  virtual void pack(int transfer, void* into) = 0;
  virtual void unpack(int transfer, const void* from) = 0;

  /// What a member brings to its collective; the size is known for members of other processes too.
  virtual std::size_t share_bytes(InstructionId member) = 0;
  virtual void pack_share(InstructionId member, void* into) = 0;
  /// Computes the results of the members that are here from the shares of all, in the order of their ranks.
  virtual void finish(int collective, std::span<const void* const> shares) = 0;

  // An all-reduce can be computed part by part, by different processes.
  /// The size of what is added to its like: a number of a share, or a record of numbers.
  virtual std::size_t number_bytes(int collective) const = 0;
  /// Adds a part of the shares of all members, in the order of their ranks.
  virtual void add_up(int collective, std::span<const void* const> parts, std::size_t bytes, void* sum) = 0;
  /// The result of each member that is here is this sum.
  virtual void finish_sum(int collective, const void* sum) = 0;
};

/// Carries messages to and from devices of other processes. Any thread may call it at any time.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual bool here(DeviceId) const = 0;
  virtual void send(int transfer) = 0;     ///< The message is made; with eager transfers its send has ended.
  virtual void receive(int transfer) = 0;  ///< Its receive may start.
  virtual void join(int collective, InstructionId member) = 0;  ///< A member that is here may start.
  /// What has ended since the last call; nothing while another thread asks.
  virtual void poll(std::vector<InstructionId>& ended) = 0;

  /// The state of a process, each number 0 or 1; or the sums over all processes.
  struct Pulse {
    int moving = 0, failed = 0, stuck = 0, unfinished = 0;
  };
  /// Gives the others this process's pulse, unless it has done so; returns the sums once all have given theirs.
  virtual std::optional<Pulse> pulse(const Pulse& local) = 0;
  virtual bool stop_requested_by_launcher() const = 0;  ///< Whether the launcher has sent SIGTERM.

  /// Whether wait() returns as soon as something comes, so that only the thread which calls it has to look.
  virtual bool is_awaited() const { return false; }
  virtual void wait(double /*seconds*/) {}
  virtual void wake() {}  ///< Ends a wait(), from any thread.
  /// Whether eager sends, too, end when poll() says so: when the other process has their data.
  virtual bool confirms_eager_sends() const { return false; }
  virtual std::uint64_t bytes_moved() const { return 0; }  ///< It grows also before a message is complete.
  /// The run has failed here. From now on the end of this process is limited.
  virtual void note_failure(const std::string& /*why*/) {}
};

}  // namespace stagecraft::real
