// Opens standard streams with which the program was started closed, so that no file takes their numbers, and writes to
// stderr without a buffer; main.cpp, printing and progress use it.

#include "tools/stagecraft/standard_streams.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

namespace stagecraft {

void open_standard_streams() {
  // A stream that is open the wrong way refuses every read or write, as a closed one does.
  for (const auto& [stream, how] :
       {std::pair{STDIN_FILENO, O_WRONLY}, {STDOUT_FILENO, O_RDONLY}, {STDERR_FILENO, O_WRONLY}})
    if (fcntl(stream, F_GETFD) < 0 && errno == EBADF) open("/dev/null", how);  // open() takes the smallest free number.
}

void write_error(std::string_view text) noexcept {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

}  // namespace stagecraft
