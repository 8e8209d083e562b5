// The only function of the WebAssembly module, which the page calls in a worker.

#include <cstdlib>
#include <string>

#include "backends/world.hpp"
#include "tools/playground/answers.hpp"

namespace stagecraft {
// backends/real has it otherwise, with threads and sockets. Here is one process, and no network follows its runs.
bool network_follows_run() { return false; }
}  // namespace stagecraft

/// Text of JSON in, text of JSON out, which stays until the next call. The page has written the files of a scenario
/// into /library, and an empty scenario.yaml.
extern "C" const char* stagecraft_answer(const char* request) {
  static std::string text;
  static const int set = setenv("STAGECRAFT_PATH", "/library", 1);
  static_cast<void>(set);
  text = stagecraft::playground::answer(request, "scenario.yaml");
  return text.c_str();
}
