#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <unordered_map>

#include "backends/platform.hpp"
#include "backends/simgrid/platform.hpp"
#include "backends/simgrid/platform_xml.hpp"
#include "backends/simgrid/sandbox.hpp"
#include "sim/core/child_process.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/text.hpp"

// A child of this process loads the file, because SimGrid has one engine for a process and aborts on some errors. It
// tells what it found line by line in a temporary file.

namespace stagecraft {
namespace {

namespace s4u = sg::s4u;

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// A file without a name in any folder, which exists as long as this object.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : file_(memfd_create("platform", MFD_CLOEXEC)) {
    while (file_.number() >= 0 && !text.empty()) {
      const ssize_t written = write(file_.number(), text.data(), text.size());
      if (written < 0 && errno != EINTR) break;
      text.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(written, 0)));
    }
    if (file_.number() < 0 || !text.empty())
      throw BackendError(fmt::format("no memory for a platform: {}", std::strerror(errno)));
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

 private:
  OpenFile file_;
};

/// "Parse error at FILE:LINE: what" has its place taken out of it, where FILE has no colon.
[[noreturn]] void refuse(const std::string& file, std::string_view message, int line = 0) {
  constexpr std::string_view mark = "Parse error at ";
  message = message.substr(0, message.find('\n'));
  if (message.starts_with(mark)) {
    message.remove_prefix(std::min(message.size(), message.find(':', mark.size()) + 1));
    const auto [rest, error] = std::from_chars(message.data(), message.data() + message.size(), line);
    if (error == std::errc{}) message.remove_prefix(rest - message.data());
    if (message.starts_with(": ")) message.remove_prefix(2);
  }
  throw InputError({{{file, line, line > 0 ? 1 : 0},
                     {},
                     fmt::format("SimGrid does not take this platform: {}", message),
                     {},
                     "simgrid-platform"}});
}

/// Digits count as numbers, so that n2 comes before n10.
bool before(std::string_view a, std::string_view b) {
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (!digit(a[i]) || !digit(b[j])) {
      if (a[i] != b[j]) return a[i] < b[j];
      ++i, ++j;
      continue;
    }
    std::size_t m = i, n = j;
    while (m < a.size() && digit(a[m])) ++m;
    while (n < b.size() && digit(b[n])) ++n;
    while (i + 1 < m && a[i] == '0') ++i;
    while (j + 1 < n && b[j] == '0') ++j;
    if (m - i != n - j) return m - i < n - j;
    if (const int order = a.substr(i, m - i).compare(b.substr(j, n - j)); order != 0) return order < 0;
    i = m, j = n;
  }
  return a.size() - i < b.size() - j;
}

std::vector<s4u::Host*> hosts_of(s4u::Engine& engine, const std::string& file, const std::vector<std::string>& wanted,
                                 std::size_t max_hosts) {
  std::vector<s4u::Host*> engine_hosts = engine.get_all_hosts(), hosts;
  std::sort(engine_hosts.begin(), engine_hosts.end(),
            [](auto* a, auto* b) { return before(a->get_name(), b->get_name()); });
  if (engine_hosts.empty()) refuse(file, "it has no host");
  if (wanted.empty()) hosts = engine_hosts;
  std::vector<std::string> names;
  for (const s4u::Host* host : engine_hosts) names.push_back(host->get_name());
  for (const std::string& pattern : wanted) {
    const std::size_t count = hosts.size();
    for (s4u::Host* host : engine_hosts)
      if (matches(pattern, host->get_name()) && std::find(hosts.begin(), hosts.end(), host) == hosts.end())
        hosts.push_back(host);
    if (hosts.size() == count)
      throw InputError(fmt::format("no host of {} is called '{}'", file, pattern), suggest(pattern, names));
  }
  if (hosts.size() > max_hosts)
    throw InputError(fmt::format("{} has {} hosts, and a way between every two of at most {} can be kept", file,
                                 hosts.size(), max_hosts),
                     "name those that are needed: hosts: [NAME, ...]; * stands for any letters");
  return hosts;
}

void check_name(const char* what, const std::string& name, const std::string& file) {
  if (name.find_first_of("\n\r\t") != std::string::npos)
    refuse(file, fmt::format("the name of a {} has a line break or a tab in it", what));
}

void check_host(const s4u::Host& host, const std::string& file) {
  check_name("host", host.get_name(), file);
  if (!(host.get_speed() > 0) || !std::isfinite(host.get_speed()))
    refuse(file, fmt::format("host '{}' has a speed of {}", host.get_name(), shortest(host.get_speed())));
}

char sharing_of(const s4u::Link& link) {
  switch (link.get_sharing_policy()) {
    case s4u::Link::SharingPolicy::SHARED:
      return 's';
    case s4u::Link::SharingPolicy::FATPIPE:
      return 'f';
    default:
      return 'o';
  }
}

void check_link(const s4u::Link& link, const std::string& file) {
  check_name("link", link.get_name(), file);
  if (sharing_of(link) == 'o')
    refuse(file, fmt::format("link '{}' is neither SHARED nor FATPIPE, and no other way to share is known here",
                             link.get_name()));
  if (!(link.get_bandwidth() > 0) || !(link.get_latency() >= 0))
    refuse(file, fmt::format("link '{}' has a bandwidth of {} and a latency of {}", link.get_name(),
                             shortest(link.get_bandwidth()), shortest(link.get_latency())));
}

/// What SimGrid is asked, or nothing. In 3.32 its Dijkstra crashes at a host without routes.
std::array<char, 600> question{};

/// For SIGSEGV, with what may be called in a signal. A fault of our own ends the process as ever.
void tell_question(int signal) {
  if (question[0] == '\0') {
    std::signal(signal, SIG_DFL);
    return;
  }
  if (write(STDERR_FILENO, question.data(), std::strlen(question.data())) < 0) _exit(2);
  _exit(1);
}

/// Writes what the parent reads.
class PlatformWriter {
 public:
  PlatformWriter(std::FILE* out, std::string file) : out_(out), file_(std::move(file)) {}

  void write(const std::vector<s4u::Host*>& hosts) {
    fmt::print(out_, "{}\n", hosts.size());
    for (const s4u::Host* host : hosts) {
      check_host(*host, file_);
      const auto* properties = host->get_properties();
      fmt::print(out_, "{}\n{} {} {}\n", host->get_name(), host->get_speed(), host->get_core_count(),
                 properties->size());
      for (const auto& [key, value] : *properties) fmt::print(out_, "{}\n{}\n", line(key), line(value));
    }
    for (s4u::Host* from : hosts)
      for (s4u::Host* to : hosts)
        if (from != to) way(from, to);
  }

 private:
  static std::string line(std::string text) {
    std::replace(text.begin(), text.end(), '\n', ' ');
    return text;
  }

  void way(s4u::Host* from, s4u::Host* to) {
    std::vector<s4u::Link*> links;
    double latency = 0, sum = 0;  // route_to adds to it
    *fmt::format_to_n(question.data(), question.size() - 1,
                      "it crashed when asked for the way from '{}' to '{}'; is there a route?", from->get_name(),
                      to->get_name())
         .out = '\0';
    from->route_to(to, links, &latency);
    question[0] = '\0';
    std::string text = std::to_string(links.size());
    for (s4u::Link* link : links) {
      sum += link->get_latency();
      text += fmt::format(" {}", number(link));
    }
    if (std::abs(sum - latency) > 1e-9 * (1e-9 + latency))
      refuse(file_, fmt::format("the latency from '{}' to '{}' is not that of its links, as with coordinates (Vivaldi)",
                                from->get_name(), to->get_name()));
    std::sort(links.begin(), links.end());
    if (std::adjacent_find(links.begin(), links.end()) != links.end())
      refuse(file_, fmt::format("the way from '{}' to '{}' crosses a link twice", from->get_name(), to->get_name()));
    fmt::print(out_, "{}\n", text);
  }

  std::size_t number(const s4u::Link* link) {
    const auto [place, fresh] = numbers_.try_emplace(link, numbers_.size());
    if (!fresh) return place->second;
    check_link(*link, file_);
    fmt::print(out_, "link\n{}\n{} {} {}\n", link->get_name(), link->get_bandwidth(), link->get_latency(),
               sharing_of(*link));
    return place->second;
  }

  std::FILE* out_;
  std::string file_;
  std::unordered_map<const s4u::Link*, std::size_t> numbers_;
};

void load(const std::string& file, const std::string& checked, const std::vector<std::string>& wanted,
          std::size_t max_hosts, std::FILE* out) {
  s4u::Engine& engine = sg::make_engine();
  std::signal(SIGINT, SIG_DFL);
  try {
    engine.load_platform(checked);
    if (engine.get_all_netpoints().empty()) throw std::runtime_error("it has no zone");  // 3.32 would follow nullptr.
    engine.seal_platform();
  } catch (const std::exception& error) {
    fmt::print(out, "wrong\n{}\n", std::string_view(error.what()).substr(0, std::string_view(error.what()).find('\n')));
    return;
  }
  std::signal(SIGSEGV, tell_question);
  PlatformWriter(out, file).write(hosts_of(engine, file, wanted, max_hosts));
}

/// Reads what the child has written.
class Listener {
 public:
  explicit Listener(std::string text) : text_(std::move(text)), rest_(text_) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string line() {
    const std::size_t end = rest_.find('\n');
    STAGECRAFT_CHECK(end != std::string_view::npos);
    std::string one(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return one;
  }
  double number() {
    double value = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    STAGECRAFT_CHECK(error == std::errc{});
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()) + 1);  // and the separator after it
    return value;
  }

 private:
  std::string text_;
  std::string_view rest_;
};

Platform listen(Listener& in) {
  Platform platform;
  const auto count = static_cast<std::size_t>(in.number());
  for (std::size_t h = 0; h < count; ++h) {
    Platform::Host host{in.line(), 0, 1, {}};
    host.speed = in.number();
    host.cores = static_cast<int>(in.number());
    for (auto left = static_cast<int>(in.number()); left > 0; --left) {
      const std::string key = in.line();
      host.properties[key] = in.line();
    }
    platform.hosts.push_back(std::move(host));
  }
  platform.routes.resize(count * count);
  for (std::size_t r = 0; r < platform.routes.size(); ++r) {
    if (r / count == r % count) continue;
    while (in.take("link\n")) {
      Platform::Link link{in.line(), 0, 0, Platform::Sharing::Shared};
      link.bandwidth = in.number(), link.latency = in.number();
      if (in.line() == "f") link.sharing = Platform::Sharing::Fatpipe;
      platform.links.push_back(std::move(link));
    }
    for (auto left = static_cast<int>(in.number()); left > 0; --left)
      platform.routes[r].push_back(static_cast<std::int32_t>(in.number()));
  }
  return platform;
}

std::string all_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[1 << 16];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
  return text;
}

}  // namespace

Platform read_simgrid_platform(const std::string& file, const std::vector<std::string>& wanted, std::size_t max_hosts) {
  const MemoryFile checked(sg::checked_platform_xml(file, read_file(file)));
  const File output(std::tmpfile());
  if (!output) throw BackendError("no temporary file for a platform");
  try {
    sg::run_in_child(
        [&] {
          load(file, checked.path(), wanted, max_hosts, output.get());
          std::fflush(output.get());
        },
        {});
  } catch (const InputError& error) {
    Diagnostic problem = error.problems().front();
    problem.where.file = file;
    throw InputError({std::move(problem)});
  } catch (const BackendError& error) {
    std::string_view message = error.what();
    if (const auto colon = message.find("): "); colon != std::string_view::npos) message.remove_prefix(colon + 3);
    refuse(file, message);
  }
  Listener in(all_of(output.get()));
  if (in.take("wrong\n")) refuse(file, in.line());
  return listen(in);
}

}  // namespace stagecraft
