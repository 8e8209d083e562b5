#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/core/file.hpp"
#include "sim/core/quantity.hpp"

namespace stagecraft {

/// One end of a connection between two processes. Messages of any length go both ways and arrive in order.
class MessageSocket {
 public:
  explicit MessageSocket(OpenFile file) : file_(std::move(file)) {}
  /// Two connected ends. BackendError if the system has no more.
  static std::pair<MessageSocket, MessageSocket> connected_pair();

  int file() const { return file_.number(); }
  void close() { file_.close(); }
  /// Waits until all of the message has left, and receives meanwhile, so that two senders do not block each other.
  /// False if the other end is closed.
  bool send(std::string_view message);
  bool receive();                              ///< Reads what has arrived, without waiting. False at the end.
  std::optional<std::string> take();           ///< The next message that has arrived completely.
  std::optional<std::string> wait_for_next();  ///< Waits for the next message. Empty if the other end is closed.

 private:
  bool send_all(const char* data, std::size_t size);
  bool read(bool wait);

  OpenFile file_;
  std::string received_;
};

struct ChildOptions {
  /// Ctrl-C at a terminal does not reach the child, and kill() also ends the processes that it started.
  bool own_group = false;
  /// The child keeps no file of the parent but its socket: its standard streams are /dev/null.
  bool without_files = false;
  bool capture_errors = false;  ///< The parent reads what the child writes to stderr.
};

/// How a process ended: `signal` is 0 if it called exit.
struct ProcessEnd {
  int exit_code = 0, signal = 0;
};
std::string to_text(const ProcessEnd&);  ///< "exit 9" or "signal 11, Segmentation fault".

/// A forked process that calls a function and then exits. The kernel kills it when the thread that made it ends,
/// however that happens; it writes no core file, and signals have their default action. An exception in the function
/// ends the child by abort(). The destructor kills and reaps it.
class ChildProcess {
 public:
  /// BackendError if there can be no more processes or files.
  ChildProcess(const ChildOptions&, const std::function<void(MessageSocket&)>& work);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  MessageSocket& socket() { return socket_; }
  /// Waits until the child has ended and receives its messages and errors. False after `timeout`, if that is not zero.
  /// A stop_point().
  bool wait(Seconds timeout);
  /// Kills and reaps the child. One that is ending by itself gets `patience` first, because a signal would take the
  /// place of its reason.
  ProcessEnd kill(Seconds patience = {});
  const std::string& errors() const { return errors_; }  ///< The first 64 KiB that wait() read from its stderr.

 private:
  bool has_ended();
  bool read_errors();

  bool own_group_;
  bool reaped_ = false;
  pid_t id_ = -1;
  int status_ = 0;
  MessageSocket socket_{OpenFile()};
  OpenFile error_file_;
  std::string errors_;
};

}  // namespace stagecraft
