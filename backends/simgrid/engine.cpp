#include "backends/simgrid/engine.hpp"

#include <algorithm>
#include <array>
#include <string>

namespace stagecraft::sg {

/// The five options make links share their bandwidth evenly (max-min) and say nothing of latency, which we add.
/// Without them: TCP's slow start and window, shares by round-trip time, and events within 1 ns fall together.
s4u::Engine& make_engine() {
  static std::array<std::string, 8> words{"stagecraft",
                                          "--cfg=network/model:CM02",
                                          "--cfg=network/crosstraffic:0",
                                          "--cfg=network/latency-factor:0",
                                          "--cfg=network/TCP-gamma:1e30",
                                          "--cfg=surf/precision:1e-12",
                                          "--cfg=debug/verbose-exit:no",
                                          "--log=root.thres:error"};
  std::array<char*, 9> argv{};
  std::transform(words.begin(), words.end(), argv.begin(), [](std::string& word) { return word.data(); });
  int argc = static_cast<int>(words.size());
  static s4u::Engine* const engine = new s4u::Engine(&argc, argv.data());
  return *engine;
}

}  // namespace stagecraft::sg
