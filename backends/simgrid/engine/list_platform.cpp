// Loads a platform file in SimGrid and writes its hosts, its links and the route between every two hosts, for
// read_platform.cpp.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "backends/simgrid/engine/platform.hpp"
#include "backends/simgrid/engine/platform_error.hpp"
#include "backends/simgrid/engine/tasks.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::sg::engine {
namespace {

constexpr std::size_t kMostRouteLinks = 8'000'000;  // 1,024 hosts with eight links between two of them.

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
  if (engine_hosts.empty()) throw platform_error(file, "it has no host");
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
    throw platform_error(file, fmt::format("the name of a {} has a line break or a tab in it", what));
}

void check_host(const s4u::Host& host, const std::string& file) {
  check_name("host", host.get_name(), file);
  if (!(host.get_speed() > 0) || !std::isfinite(host.get_speed()))
    throw platform_error(file, fmt::format("host '{}' has a speed of {}", host.get_name(), shortest(host.get_speed())));
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
    throw platform_error(file,
                         fmt::format("link '{}' is neither SHARED nor FATPIPE, and no other way to share is known here",
                                     link.get_name()));
  if (!(link.get_bandwidth() > 0) || !(link.get_latency() >= 0))
    throw platform_error(file, fmt::format("link '{}' has a bandwidth of {} and a latency of {}", link.get_name(),
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
    route_links_ += links.size();
    if (route_links_ > kMostRouteLinks)
      throw InputError(fmt::format("the ways between every two hosts of {} have more than {} links together", file_,
                                   kMostRouteLinks),
                       "name those that are needed: hosts: [NAME, ...]; * stands for any letters");
    std::string text = std::to_string(links.size());
    for (s4u::Link* link : links) {
      sum += link->get_latency();
      text += fmt::format(" {}", number(link));
    }
    if (std::abs(sum - latency) > 1e-9 * (1e-9 + latency))
      throw platform_error(
          file_, fmt::format("the latency from '{}' to '{}' is not that of its links, as with coordinates (Vivaldi)",
                             from->get_name(), to->get_name()));
    std::sort(links.begin(), links.end());
    if (std::adjacent_find(links.begin(), links.end()) != links.end())
      throw platform_error(
          file_, fmt::format("the way from '{}' to '{}' crosses a link twice", from->get_name(), to->get_name()));
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
  std::size_t route_links_ = 0;  ///< Links of all ways so far.
};

}  // namespace

void list_platform(const std::string& file, const std::string& checked, const std::vector<std::string>& wanted,
                   std::size_t max_hosts, std::FILE* out) {
  s4u::Engine& engine = make_engine();
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

}  // namespace stagecraft::sg::engine
