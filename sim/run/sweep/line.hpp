#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace stagecraft {

/// One end of a line between two processes, over which texts of any length go both ways, in order.
class Line {
 public:
  explicit Line(int file) : file_(file) {}  ///< Does not close it.

  int file() const { return file_; }
  bool send(std::string_view text);   ///< Waits until all of it has left; false when nobody is at the other end.
  bool listen();                      ///< Takes what has been said, without waiting. False when the other end is gone.
  std::optional<std::string> take();  ///< The next text that is all here.
  std::optional<std::string> next();  ///< The same, and waits for it. Empty when the other end is gone.

 private:
  bool hear(bool wait);

  int file_;
  std::string heard_;
};

/// Two ends that belong together, closed in programs that this one starts. BackendError when there are no more.
std::pair<int, int> open_line();

}  // namespace stagecraft
