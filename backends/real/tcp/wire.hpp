#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <vector>

#include "backends/real/processes/wire.hpp"
#include "backends/real/tcp/connection.hpp"

namespace stagecraft::real {

/// A frame from another process.
struct Arrival {
  int from = 0;
  Frame frame;
  Block data;
};

/// Words and messages over TCP. Each process has a control connection to the first and to each process with which it
/// exchanges messages. Data go over separate connections, one for each stream of messages in each direction, so
/// that no word waits behind data.
///
/// Any thread may send: it writes at once what the socket takes. The threads that wait share the rest of the work; one
/// of them at a time waits for the system, and the others wait for it.
class TcpWire : public Wire {
 public:
  /// Connects with the first process. InputError where a host cannot be resolved, BackendError where the port is taken
  /// or the first process does not answer. `listener` may be open already.
  TcpWire(std::vector<HostPort> hosts, int rank, Socket listener);
  ~TcpWire() override;

  World world() const override { return {rank_, static_cast<int>(hosts_.size())}; }
  std::string address(int process) const override { return hosts_[process].text(); }
  void post(int to, WordKind, std::string text) override;
  std::optional<std::string> take(int from, WordKind) override;
  bool is_coming(int from, WordKind) override;
  bool all_left() override;
  std::uint64_t progress() override;
  std::string loss(int process) override;
  std::string cause(int process) override;
  void idle(Nap&) override { pump(kTick); }
  std::unique_ptr<MessageTransport> transport(const Program&, const DevicePlacement&, RemoteBuffers&) override;
  std::unique_ptr<RemoteMembers> members(int first, std::vector<int> owners) override;
  bool has_launcher() const override { return false; }
  void leave(int code) override;

  static constexpr int kControl = -1;
  /// Opens a connection for data that this process sends to another. BackendError where it cannot before the deadline.
  void open_lane(int peer, int lane, Deadline);
  /// Opens the control connections with these processes, or waits until they have.
  void open_control(const std::vector<int>& peers, Deadline);
  /// Sends on a connection that is open. The data must not change before they have left.
  void send(int peer, int lane, const Frame&, Block data);
  /// What has arrived for the transport of the run since the last call.
  std::deque<Arrival> arrivals();
  /// The next array of a member of a group, which another thread receives meanwhile. Waits up to some seconds for it.
  std::optional<Arrival> take_array(int from, int member, double seconds);
  /// Moves what can be moved, and waits up to some seconds until something arrives or wake() is called.
  void pump(double seconds);
  void wake();
  std::uint64_t bytes_read() const { return bytes_read_; }  ///< Data, without words.

 private:
  static constexpr double kTick = 0.01;

  Connection& add(Socket, int peer, int lane);
  Connection* connection_to(int peer, int lane);
  void greet(Connection&);
  void join_first();
  void watch(Connection&, bool first_time = false);
  void handle(std::uint64_t key, std::uint32_t events);
  void accept_all();
  void use(Connection&, const Frame&, Block);
  void answer_greeting(Connection&, const Frame&, const Block&);
  void note_refusal(Connection&, const Frame&);
  std::string name_of(int process) const;
  void lose(Connection&, const std::string& why);

  std::vector<HostPort> hosts_;
  std::vector<std::vector<SocketAddress>> addresses_;  ///< By process.
  int rank_ = 0;
  Socket listener_, poll_, wake_;
  BufferPool pool_;

  std::mutex mutex_;                                                  ///< Guards everything below.
  std::map<std::uint64_t, std::unique_ptr<Connection>> connections_;  ///< By their key in poll_.
  std::map<std::pair<int, int>, Connection*> outgoing_;               ///< By peer and lane.
  std::map<std::pair<int, WordKind>, std::deque<std::string>> words_;
  std::map<std::pair<int, int>, std::deque<Arrival>> arrays_;  ///< By peer and member.
  std::deque<Arrival> arrivals_;
  std::map<int, std::string> losses_;
  std::uint64_t next_key_ = 2;
  std::atomic<std::uint64_t> bytes_read_{0};

  std::mutex pumping_;
  std::condition_variable moved_;
};

}  // namespace stagecraft::real
