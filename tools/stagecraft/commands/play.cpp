// `stagecraft play`: opens the playground on a file, with this program as its engine.

#include "sim/config/library.hpp"
#include "tools/stagecraft/command.hpp"
#include "tools/stagecraft/interrupt.hpp"
#include "tools/stagecraft/play/http.hpp"
#include "tools/stagecraft/play/page_server.hpp"

namespace stagecraft::commands {
namespace {

constexpr int kHighestPort = 65535;

int execute_play(const Arguments& a) {
  const std::string given = a.text("FILE"), file = scenario_file(given);
  const OpenFile listening = play::listen_on_loopback(a.has("port") ? a.count("port", 1, kHighestPort) : 0);
  // A name, unlike a path, is of a file of Stagecraft.
  const play::Served served{.file = file, .token = play::new_token(), .may_save = file == given};
  print(fmt::format("http://127.0.0.1:{}/?token={}\n", play::port_of(listening.number()), served.token));
  flush();
  print_error("open this address in a browser; only this machine can, and Ctrl-C ends it\n");
  on_interrupt_say("the page has no engine any more");
  play::serve_page(served, listening.number());
}

}  // namespace

extern const Command play{
    .name = "play",
    .summary = "Edit a scenario in the browser, where every change is simulated at once",
    .group = "Plan",
    .example = "stagecraft play my_scenario.yaml",
    .arguments = {{"FILE", Argument::Kind::Text, "Scenario; the page saves it when you ask for it", {}, true},
                  {"--port", Argument::Kind::Count, "Port on 127.0.0.1 (default: one that is free)"}},
    .run = execute_play,
};

}  // namespace stagecraft::commands
