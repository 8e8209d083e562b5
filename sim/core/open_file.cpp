// Closes files when their owners end.

#include "sim/core/open_file.hpp"

#include <unistd.h>

namespace stagecraft {

OpenFile::~OpenFile() { close(); }

void OpenFile::close() {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

}  // namespace stagecraft
