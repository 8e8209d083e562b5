#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "sim/core/child_process.hpp"
#include "sim/core/json.hpp"

namespace stagecraft::serve {

/// The program that sends requests, over stdin and stdout: one JSON object on each line. While it lives, what other
/// code prints goes to stderr.
class Connection {
 public:
  Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The next object; nothing at the end of the input. BackendError for a line that is no JSON object.
  std::optional<Json> receive();
  /// Any thread may send. BackendError when the other program has gone.
  void send(const Json&);

 private:
  OpenFile out_;
  std::string received_;
  std::mutex mutex_;
};

}  // namespace stagecraft::serve
