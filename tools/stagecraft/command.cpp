// What commands share: values of arguments with their checks, standard streams and printing, output files and folders,
// warnings, and the options --time, --replay, --hosts, --quiet and --force.

#include "tools/stagecraft/command.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "backends/world.hpp"
#include "sim/config/units.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/json.hpp"
#include "sim/search/replay.hpp"
#include "tools/stagecraft/progress.hpp"

namespace stagecraft {
namespace {

constexpr std::size_t kMostWarnings = 5;
constexpr double kLargest = 1e30;  // So that sums of it are numbers still.

/// Says which option names the file that `work` does not take.
void naming(const std::string& option, const std::function<void()>& work) {
  try {
    work();
  } catch (const InputError& e) {
    const Diagnostic& problem = e.problems().front();
    throw InputError(fmt::format("--{}: {}", option, problem.message), problem.help);
  }
}

[[noreturn]] void refuse_stdout() {
  throw BackendError(fmt::format("the output cannot be written: {}", std::strerror(errno)));
}

}  // namespace

bool Arguments::has(const std::string& name) const {
  const auto it = values.find(name);
  return it != values.end() && !it->second.empty();
}

std::string Arguments::text(const std::string& name) const {
  return has(name) ? values.at(name).front() : std::string{};
}

double Arguments::number(const std::string& name) const {
  const std::string word = text(name);
  double value = 0;
  const auto [end, error] = from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || !std::isfinite(value) || value < 0)
    throw InputError(fmt::format("--{}: '{}' is not a number that is zero or more", name, word));
  if (value > kLargest) throw InputError(fmt::format("--{}: {} is too large; {} is the most", name, word, kLargest));
  return value;
}

int Arguments::count(const std::string& name, int low, int high) const {
  const double value = number(name);
  if (value != std::floor(value) || value < low || value > high)
    throw InputError(fmt::format("--{}: '{}' is not a whole number from {} to {}", name, text(name), low, high));
  return static_cast<int>(value);
}

std::vector<std::string> Arguments::list(const std::string& name) const {
  return has(name) ? values.at(name) : std::vector<std::string>{};
}

void print(std::string_view text) { print_with(text, {}); }

void print_with(std::string_view text, const std::vector<std::string_view>& sequences) {
  if (launched().rank > 0) return;
  std::string shown;
  while (!text.empty()) {
    const auto next = std::find_if(sequences.begin(), sequences.end(),
                                   [&](std::string_view sequence) { return text.starts_with(sequence); });
    if (next != sequences.end()) {
      shown += *next;
      text.remove_prefix(next->size());
      continue;
    }
    const std::size_t end = sequences.empty() ? text.size() : std::min(text.find('\033', 1), text.size());
    shown += printable_lines(text.substr(0, end));
    text.remove_prefix(end);
  }
  hide_progress();
  errno = 0;
  if (std::fwrite(shown.data(), 1, shown.size(), stdout) < shown.size()) refuse_stdout();
}

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

void print_error_text(std::string_view text) {
  hide_progress();
  write_error(printable_lines(text));
}

void flush() {
  errno = 0;
  if (std::fflush(stdout) != 0) refuse_stdout();
}

void make_folder(const std::string& folder) {
  naming("out", [&] { make_output_folder(folder); });
}

void make_folder(const Arguments& a, const std::vector<std::string>& files) {
  const std::string folder = a.text("out");
  make_folder(folder);
  for (const std::string& file : files) naming("out", [&] { check_listed(folder, file, overwrite_of(a)); });
}

std::vector<Argument> host_arguments() {
  return {{"--hosts", Argument::Kind::Text,
           "HOST[:PORT],HOST[:PORT],...: the processes that do it together over TCP, each started with the same list"},
          {"--rank", Argument::Kind::Count, "The place of this process in --hosts, from 0"}};
}

Argument quiet_argument() { return {"-q,--quiet", Argument::Kind::Flag, "Show no progress"}; }

Argument force_argument() {
  return {"--force", Argument::Kind::Flag, "Replace files that stagecraft did not write, or that were changed since"};
}

Overwrite overwrite_of(const Arguments& a) { return a.flag("force") ? Overwrite::Anything : Overwrite::Ours; }

void check_output_of(const Arguments& a, const std::string& option) {
  naming(option, [&] { check_output(a.text(option), overwrite_of(a)); });
}

void write_output_of(const Arguments& a, const std::string& option, std::string_view text, CommentStyle style) {
  naming(option, [&] { write_output(a.text(option), text, overwrite_of(a), style); });
}

void check_format(const std::string& format, const std::vector<std::string>& allowed) {
  for (const std::string& word : allowed)
    if (word == format) return;
  throw InputError(fmt::format("--format: '{}' is not known here", format), suggest(format, allowed));
}

void warn(const std::vector<Diagnostic>& warnings) {
  for (std::size_t i = 0; i < std::min(warnings.size(), kMostWarnings); ++i) {
    const Diagnostic& w = warnings[i];
    print_error("{}:{}:{}: warning: {}{}{}\n", w.where.file, w.where.line, w.where.column, w.path,
                w.path.empty() ? "" : ": ", w.message);
  }
  if (warnings.size() > kMostWarnings) print_error("{} more warnings\n", warnings.size() - kMostWarnings);
}

Json problems_list(const std::vector<Diagnostic>& problems) {
  JsonArray list;
  for (const Diagnostic& d : problems)
    list.push_back(JsonObject{{"file", d.where.file},
                              {"line", d.where.line},
                              {"column", d.where.column},
                              {"path", d.path},
                              {"message", d.message},
                              {"help", d.help},
                              {"code", d.code}});
  return Json(std::move(list));
}

std::string diagnostics_json(const std::vector<Diagnostic>& problems) { return problems_list(problems).dump(2); }

namespace {

constexpr int kMostRows = 100000;

int parsed(const std::string& word) {
  if (word == "all") return kAllRows;
  int rows = -1;
  const auto [end, error] = from_chars(word.data(), word.data() + word.size(), rows);
  if (error != std::errc{} || end != word.data() + word.size() || rows < 0 || rows > kMostRows)
    throw InputError(fmt::format("--replay: '{}' is neither all nor a whole number from 0 to {}", word, kMostRows),
                     "a number of rows, or all");
  return rows;
}

}  // namespace

Seconds time_limit(const Arguments& a) {
  std::string why;
  const std::optional<double> seconds = config::parse_quantity(config::Dimension::Time, a.text("time"), why);
  if (!seconds || *seconds <= 0)
    throw InputError(
        fmt::format("--time: '{}' is not a time: {}", a.text("time"), seconds ? "it is not above zero" : why),
        "such as 60s or 5min");
  return Seconds{*seconds};
}

Argument replay_argument(const std::string& usual, const std::string& when) {
  return {
      "--replay", Argument::Kind::Text,
      fmt::format("{}simulate the shortest rows again on {}, with network contention: their number, or all, or 0 for "
                  "none (default: {}; 0 with a backend other than ideal)",
                  when.empty() ? "" : when + ": ", kReplayBackend, usual)};
}

int replay_rows(const Arguments& a, const std::string& backend, const std::string& usual) {
  const int rows = parsed(a.has("replay") ? a.text("replay") : backend == "ideal" ? usual : "0");
  if (rows > 0 && backend != "ideal")
    throw InputError(fmt::format("--replay simulates rows that ideal ranked again on {}, but --backend {} ranks them",
                                 kReplayBackend, backend),
                     "leave out one of the two");
  return rows;
}

}  // namespace stagecraft
