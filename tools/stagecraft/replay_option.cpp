#include "tools/stagecraft/replay_option.hpp"

#include <charconv>

#include <fmt/format.h>

#include "sim/search/replay.hpp"

namespace stagecraft {
namespace {

constexpr int kMost = 100000;

int parsed(const std::string& word) {
  if (word == "all") return kAllRows;
  int rows = -1;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), rows);
  if (error != std::errc{} || end != word.data() + word.size() || rows < 0 || rows > kMost)
    throw InputError(fmt::format("--replay: '{}' is neither all nor a whole number from 0 to {}", word, kMost),
                     "a number of rows, or all");
  return rows;
}

}  // namespace

Argument replay_argument(const std::string& usual, const std::string& when) {
  return {
      "--replay", Argument::Kind::Text,
      fmt::format("{}rows to play again on {}, where messages share links, the shortest first: a number, or all; 0: "
                  "none (default: {}; with another backend than ideal 0)",
                  when.empty() ? "" : when + ": ", kReplayBackend, usual)};
}

int replay_rows(const Arguments& a, const std::string& backend, const std::string& usual) {
  const int rows = parsed(a.has("replay") ? a.text("replay") : backend == "ideal" ? usual : "0");
  if (rows > 0 && backend != "ideal")
    throw InputError(fmt::format("--replay plays what was ranked on ideal again on {}, but --backend {} ranks them",
                                 kReplayBackend, backend),
                     "leave out one of the two");
  return rows;
}

}  // namespace stagecraft
