// `stagecraft serve`: runs the loop of serve/session.cpp, which answers requests of the Python module and other
// programs.

#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/serve/session.hpp"

namespace stagecraft::commands {
namespace {

int execute_serve(const Arguments&) {
  stagecraft::serve::serve();
  return 0;
}

}  // namespace

extern const Command serve{
    .name = "serve",
    .summary = "Answer requests of another program on stdin, such as the Python module's",
    .group = "Rest",
    .example = "echo '{\"method\": \"explain\", \"params\": {\"path\": \"bubble\"}}' | stagecraft serve",
    .arguments = {},
    .run = execute_serve,
};

}  // namespace stagecraft::commands
