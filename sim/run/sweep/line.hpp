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
  /// Waits until all of it has left, and takes what is said meanwhile: two that both send do not wait for each other.
  /// False when nobody is at the other end.
  bool send(std::string_view text);
  bool listen();                      ///< Takes what has been said, without waiting. False when the other end is gone.
  std::optional<std::string> take();  ///< The next text that is all here.
  std::optional<std::string> next();  ///< The same, and waits for it. Empty when the other end is gone.

 private:
  bool send_all(const char* data, std::size_t size);
  bool hear(bool wait);

  int file_;
  std::string heard_;
};

/// Two ends that belong together, closed in programs that this one starts. BackendError when there are no more.
std::pair<int, int> open_line();

}  // namespace stagecraft
