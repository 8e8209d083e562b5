#pragma once

#include <mutex>
#include <optional>
#include <string>

#include "sim/core/file.hpp"
#include "sim/core/json.hpp"

namespace stagecraft::serve {

/// The program that sends requests, over stdin and stdout: one JSON object on each line. While it lives, what other
/// code prints goes to stderr.
class Connection {
 public:
  Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  /// The object on the next line; nothing at the end of the input. InputError for a line that is no JSON object, or
  /// that is too long to be kept: the next call goes on with the line after it. The last line may lack its line break.
  std::optional<Json> receive();
  /// Any thread may send. BackendError when the other program has gone.
  void send(const Json&);

 private:
  /// Nothing at the end of the input.
  std::optional<std::string> receive_line();
  bool read_more();  ///< False at the end of the input.

  OpenFile out_;
  std::string received_;
  bool is_skipping_ = false;  ///< The rest of a line that was refused is still to come.
  std::mutex mutex_;
};

}  // namespace stagecraft::serve
