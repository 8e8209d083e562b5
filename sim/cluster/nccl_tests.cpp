// Reads the output of nccl-tests as measured times of a collective, for `stagecraft calibrate`.

#include <algorithm>
#include <set>

#include <fmt/core.h>

#include "sim/cluster/collective_curve.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  while (!(line = trim(line)).empty()) {
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// The program prints whole bytes and hundredths of microseconds. Within these ranges all sums of a fit are finite.
constexpr double kMostBytes = 1e18, kLeastMicroseconds = 1e-3, kMostMicroseconds = 1e15;

std::optional<double> number(std::string_view word) {
  double value = 0;
  const auto [end, error] = from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !(value > 0)) return std::nullopt;
  return value;
}

/// "# Collective test starting: all_gather_perf"
std::optional<CollectiveKind> kind_in(std::string_view line) {
  constexpr std::pair<std::string_view, CollectiveKind> kPrograms[] = {
      {"all_reduce_perf", CollectiveKind::AllReduce},
      {"reduce_scatter_perf", CollectiveKind::ReduceScatter},
      {"all_gather_perf", CollectiveKind::AllGather},
      {"alltoall_perf", CollectiveKind::AllToAll},
      {"broadcast_perf", CollectiveKind::Broadcast}};
  for (const auto& [program, kind] : kPrograms)
    if (line.find(program) != std::string_view::npos) return kind;
  return std::nullopt;
}

/// What the lines say so far.
struct LogReader {
  CollectiveCurve curve{};
  std::optional<CollectiveKind> kind;
  std::set<std::string, std::less<>> hosts;
  int ranks = 0;
  std::size_t time_column = 0;  ///< 0 until the heading of the table.
  const std::string& file;
  int line_number = 0;

  explicit LogReader(const std::string& log) : file(log) {}

  void read(std::string_view line) {
    ++line_number;
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) return;
    if (const auto named = kind_in(line)) kind = named;  // Also in the command that someone typed.
    if (words.front() == "#")
      read_comment(words);
    else
      read_times(words);
  }

  void read_comment(const std::vector<std::string_view>& words) {
    const auto at = [&](std::string_view word) { return std::find(words.begin(), words.end(), word); };
    if (words.size() > 2 && words[1] == "Rank" && at("on") != words.end()) {
      ++ranks;
      if (const auto host = at("on") + 1; host != words.end()) hosts.emplace(*host);
    }
    if (words.size() > 2 && words[1] == "size" && at("time") != words.end())
      time_column = at("time") - words.begin() - 1;  // Rows have no leading '#'.
  }

  void read_times(const std::vector<std::string_view>& words) {
    if (time_column == 0 || words.size() <= time_column) return;
    const auto bytes = number(words[0]), microseconds = number(words[time_column]);
    if (!bytes || !microseconds) return;
    require("size", words[0], *bytes, 1, kMostBytes, "bytes");
    require("time", words[time_column], *microseconds, kLeastMicroseconds, kMostMicroseconds, "microseconds");
    curve.points.push_back({Bytes{*bytes}, Seconds{*microseconds / 1e6}});
  }

  void require(const char* what, std::string_view word, double value, double low, double high, const char* unit) const {
    if (value >= low && value <= high) return;
    throw InputError({{{file, line_number, 1},
                       {},
                       fmt::format("the {} {} is outside {} to {} {}", what, word, shortest(low), shortest(high), unit),
                       "give the output as the test prints it",
                       "nccl-tests"}});
  }
};

}  // namespace

CollectiveCurve read_nccl_tests(std::string_view text, const std::string& file, std::optional<CollectiveKind> kind) {
  LogReader reader(file);
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t end = std::min(text.find('\n', start), text.size());
    reader.read(text.substr(start, end - start));
    start = end + 1;
  }
  const auto refuse = [&](const char* what, const char* help) {
    throw InputError({{{file, 0, 0}, {}, what, help, "nccl-tests"}});
  };
  CollectiveCurve curve = std::move(reader.curve);
  if (curve.points.empty())
    refuse("there is no table of times as nccl-tests prints it", "give the whole output of one test, with its heading");
  if (reader.ranks < 2) refuse("the output lists fewer than two ranks", "keep the lines that begin with '#  Rank'");
  if (!kind && !reader.kind)
    refuse("the output does not name the collective", "say which one it is: --collective all_reduce");
  std::sort(curve.points.begin(), curve.points.end(), [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  const auto repeated = std::adjacent_find(curve.points.begin(), curve.points.end(),
                                           [](const auto& a, const auto& b) { return a.bytes == b.bytes; });
  if (repeated != curve.points.end()) refuse("a size stands there twice", "give the output of one run of one test");
  curve.kind = reader.kind ? *reader.kind : *kind;
  curve.ranks = reader.ranks;
  curve.nodes = static_cast<int>(reader.hosts.size());
  curve.source = file;
  curve.system = fmt::format("{} on {}", pluralize(curve.ranks, "rank"), pluralize(curve.nodes, "node"));
  return curve;
}

}  // namespace stagecraft
