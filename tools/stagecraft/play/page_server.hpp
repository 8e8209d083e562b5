#pragma once

#include <string>

namespace stagecraft::play {

/// What the server gives to whoever knows the token.
struct Served {
  std::string file;   ///< The scenario that is edited.
  std::string token;  ///< Part of the address of the page and of its requests.
  bool may_save = true;
};

/// Unguessable, from the random numbers of the system.
std::string new_token();

/// Serves the page and its requests on a socket that listens, until the process is ended. Each request is a process of
/// its own, which ends after a minute, or when the page no longer waits for it.
[[noreturn]] void serve_page(const Served&, int listening);

}  // namespace stagecraft::play
