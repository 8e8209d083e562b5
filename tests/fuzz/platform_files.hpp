#pragma once

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stagecraft::fuzz {

/// Draws SimGrid platform files that are mostly valid, one element a line, and changes elements and values of any file.
/// Elements, attributes and choices come from SimGrid's DTD 4.1.
class PlatformFiles {
 public:
  explicit PlatformFiles(std::uint64_t seed) : random_(seed) {}

  bool once_in(std::size_t times) { return below(times) == 0; }
  std::size_t below(std::size_t end) { return static_cast<std::size_t>(random_() % end); }

  std::string draw() {
    names_ = 0;
    odd_ = once_in(2);
    std::string text =
        "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
        "<platform version=\"4.1\">\n";
    if (once_in(16)) text += "<config>\n<prop id=\"network/latency-factor\" value=\"" + value() + "\"/>\n</config>\n";
    return text + zone(0) + "</platform>\n";
  }

  void change(std::string& text) {
    switch (below(6)) {
      case 0:
        return replace(text, value());
      case 1: {
        const auto [begin, end] = place(text);
        return replace(text, text.substr(begin, end - begin));
      }
      case 2: {
        const auto [begin, end] = place(text);
        const std::size_t name = text.rfind(' ', begin);
        if (name != text.npos && end < text.size()) text.erase(name, end + 1 - name);
        return;
      }
      case 3: {
        const auto [begin, end] = line(text);
        text.erase(begin, end - begin);
        return;
      }
      case 4: {
        const auto [begin, end] = line(text);
        text.insert(line(text).first, text.substr(begin, end - begin));
        return;
      }
      default:
        text.insert(line(text).first, element());
    }
  }

 private:
  using TextChoices = std::initializer_list<const char*>;
  std::string one_of(TextChoices words) { return words.begin()[below(words.size())]; }
  /// One of the valid `words`; in every other file, one time in forty, any value.
  std::string mostly(TextChoices words) { return odd_ && once_in(40) ? value() : one_of(words); }

  /// A value that is valid somewhere in a platform file.
  std::string value() {
    return one_of({"0",
                   "-1",
                   "nan",
                   "inf",
                   "1e400",
                   "1e-320Bps",
                   "99999999999999999999",
                   "",
                   " ",
                   "1Gf",
                   "2.5Gf,1Gf",
                   "1e300f",
                   "1f",
                   "1GBps",
                   "8Gbps",
                   "1Bps",
                   "1us",
                   "1w",
                   "1e-30s",
                   "0-3",
                   "3-0",
                   "0,2-4",
                   "0-100000",
                   "n0",
                   "l0",
                   "z0",
                   "n1_UP",
                   "l0_DOWN",
                   "YES",
                   "NO",
                   "WIFI",
                   "FATPIPE",
                   "SHARED",
                   "FLAT",
                   "2;2,2;1,2;1,2",
                   "2,0,1",
                   "3,4;3,2;2,1;2",
                   "-1,-1",
                   "1;1;1;1",
                   "a&#10;b",
                   "a&#9;b",
                   "&lt;&quot;",
                   "\xC3\xA9",
                   "\xFF",
                   "4 GiB",
                   "16 KB",
                   "4096 TiB",
                   "h100-sxm",
                   "0 0 0",
                   "1.5 -2 3",
                   "/dev/null",
                   "memory",
                   "type",
                   "%s%n",
                   "n*",
                   "x y"});
  }

  std::string name(char kind) {
    return std::string(1, kind) + std::to_string(odd_ && once_in(60) ? below(names_ + 1) : names_++);
  }
  std::string speed() { return mostly({"1Gf", "2.5Gf", "1e9f", "3Gf,1Gf", "989Tf"}); }
  std::string bandwidth() { return mostly({"1GBps", "10Gbps", "125MBps", "1e9Bps", "3.5GiBps"}); }
  std::string latency() { return mostly({"1us", "0", "50us", "2ms", "1e-6s"}); }
  std::string sharing() { return mostly({"SHARED", "SHARED", "SHARED", "SHARED", "FATPIPE", "SPLITDUPLEX"}); }

  std::string host(const std::string& id) {
    std::string text = "<host id=\"" + id + "\" speed=\"" + speed() + "\"";
    if (once_in(3)) text += " core=\"" + mostly({"1", "2", "16"}) + "\"";
    if (once_in(12)) text += " pstate=\"" + mostly({"0", "1"}) + "\"";
    if (once_in(12)) text += " coordinates=\"" + mostly({"0 0 0", "1.5 2 3"}) + "\"";
    if (!once_in(3)) return text + "/>\n";
    return text + "><prop id=\"" + mostly({"memory", "type", "x"}) + "\" value=\"" +
           mostly({"16 GiB", "80 GiB", "h100-sxm"}) + "\"/></host>\n";
  }

  std::string link(const std::string& id) {
    return "<link id=\"" + id + "\" bandwidth=\"" + bandwidth() + "\" latency=\"" + latency() + "\" sharing_policy=\"" +
           sharing() + "\"/>\n";
  }

  std::string crossed(const std::vector<std::string>& links) {
    std::string text;
    for (std::size_t left = links.empty() ? 0 : 1 + below(2); left > 0; --left) {
      text += "<link_ctn id=\"" + links[below(links.size())] + "\"";
      if (once_in(3)) text += " direction=\"" + mostly({"UP", "DOWN", "NONE"}) + "\"";
      text += "/>";
    }
    return text;
  }

  std::string cluster(const std::string& id, const std::string& hosts) {
    static constexpr std::pair<const char*, const char*> kShapes[] = {
        {"FLAT", ""}, {"FLAT", ""}, {"TORUS", "2,2"}, {"FAT_TREE", "2;2,2;1,2;1,2"}, {"DRAGONFLY", "2,1;1,1;2,1;1"}};
    const auto& [shape, parameters] = kShapes[below(std::size(kShapes))];
    std::string text = "<cluster id=\"" + id + "\" prefix=\"" + hosts + "\" suffix=\"\" radical=\"" +
                       mostly({"0-3", "0-3", "0,1,2,3", "4-7", "0-1"}) + "\" speed=\"" + speed() + "\" bw=\"" +
                       bandwidth() + "\" lat=\"" + latency() + "\" topology=\"" + mostly({shape}) +
                       "\" topo_parameters=\"" + mostly({parameters}) + "\" sharing_policy=\"" +
                       mostly({"SHARED", "SPLITDUPLEX", "FATPIPE"}) + "\"";
    if (once_in(2)) text += " bb_bw=\"" + bandwidth() + "\" bb_lat=\"" + latency() + "\"";
    if (once_in(6)) text += " limiter_link=\"" + bandwidth() + "\"";
    if (once_in(6)) text += " loopback_bw=\"" + bandwidth() + "\" loopback_lat=\"" + latency() + "\"";
    if (once_in(6)) text += " router_id=\"" + id + "_router\"";
    return text + "/>\n";
  }

  /// A zone of hosts with routes between them.
  std::string leaf(const std::string& id, std::string& gateway) {
    std::string text = "<zone id=\"" + id + "\" routing=\"" +
                       mostly({"Full", "Full", "Floyd", "Dijkstra", "DijkstraCache", "Vivaldi", "None"}) + "\">\n";
    std::vector<std::string> hosts, links;
    for (std::size_t left = 1 + below(4); left > 0; --left) text += host(hosts.emplace_back(name('n')));
    for (std::size_t left = 1 + below(4); left > 0; --left) text += link(links.emplace_back(name('l')));
    if (once_in(4)) text += "<router id=\"" + hosts.emplace_back(name('r')) + "\"/>\n";
    for (std::size_t a = 0; a < hosts.size(); ++a)
      for (std::size_t b = a + 1; b < hosts.size(); ++b)
        if (!odd_ || !once_in(30))
          text += "<route src=\"" + hosts[a] + "\" dst=\"" + hosts[b] + "\">" + crossed(links) + "</route>\n";
    if (once_in(8))
      text += "<bypassRoute src=\"" + hosts.front() + "\" dst=\"" + hosts.back() + "\">" + crossed(links) +
              "</bypassRoute>\n";
    gateway = hosts[below(hosts.size())];
    return text + "</zone>\n";
  }

  std::string member(std::size_t depth, std::string& id, std::string& gateway) {
    id = name('z');
    if (depth > 0 && once_in(3)) {
      gateway = id + "_router";
      const std::string prefix = name('c') + "-";
      std::string text = cluster(id, prefix);
      if (text.find("router_id") == text.npos) text.insert(text.size() - 3, " router_id=\"" + gateway + "\"");
      return text;
    }
    return leaf(id, gateway);
  }

  std::string zone(std::size_t depth) {
    std::string id, gateway;
    if (once_in(4)) return cluster(name('z'), name('c'));
    if (!once_in(3)) return member(depth, id, gateway);
    std::string text = "<zone id=\"" + name('z') + "\" routing=\"" + mostly({"Full", "Floyd", "Dijkstra"}) + "\">\n";
    std::vector<std::pair<std::string, std::string>> zones;
    for (std::size_t left = 1 + below(3); left > 0; --left) {
      text += member(1, id, gateway);
      zones.emplace_back(id, gateway);
    }
    const std::vector<std::string> links{name('l'), name('l')};
    for (const std::string& one : links) text += link(one);
    for (std::size_t a = 0; a < zones.size(); ++a)
      for (std::size_t b = a + 1; b < zones.size(); ++b)
        text += "<zoneRoute src=\"" + zones[a].first + "\" dst=\"" + zones[b].first + "\" gw_src=\"" + zones[a].second +
                "\" gw_dst=\"" + zones[b].second + "\">" + crossed(links) + "</zoneRoute>\n";
    return text + "</zone>\n";
  }

  /// A random element, valid anywhere.
  std::string element() {
    switch (below(10)) {
      case 0:
        return host(name('n'));
      case 1:
        return link(name('l'));
      case 2:
        return cluster(name('z'), name('c'));
      case 3:
        return "<prop id=\"" + value() + "\" value=\"" + value() + "\"/>\n";
      case 4:
        return "<route src=\"n0\" dst=\"n1\" symmetrical=\"NO\"><link_ctn id=\"l0\"/></route>\n";
      case 5:
        return "<peer id=\"" + name('n') + "\" speed=\"" + speed() + "\" bw_in=\"" + bandwidth() + "\" bw_out=\"" +
               bandwidth() + "\" coordinates=\"" + mostly({"0 0 0", "1 2 3"}) + "\"/>\n";
      case 6:
        return "<cabinet id=\"" + name('z') + "\" prefix=\"" + name('c') + "\" suffix=\"\" radical=\"0-2\" speed=\"" +
               speed() + "\" bw=\"" + bandwidth() + "\" lat=\"" + latency() + "\"/>\n";
      case 7:
        return "<backbone id=\"" + name('l') + "\" bandwidth=\"" + bandwidth() + "\" latency=\"" + latency() + "\"/>\n";
      case 8:
        return "<host_link id=\"n0\" up=\"l0\" down=\"l" + std::to_string(below(3)) + "\"/>\n";
      default:
        return "<trace id=\"t\" periodicity=\"1\">\n0 " + value() + "\n</trace>\n<trace_connect kind=\"" +
               mostly({"SPEED", "BANDWIDTH", "LATENCY", "HOST_AVAIL"}) + "\" trace=\"t\" element=\"" +
               mostly({"n0", "l0"}) + "\"/>\n";
    }
  }

  /// Start of the line after the <platform> tag.
  static std::size_t start(const std::string& text) {
    const std::size_t platform = text.find("<platform"), end = text.find('\n', platform);
    return platform == text.npos || end + 1 >= text.size() ? 0 : end + 1;
  }
  /// Start and end of a value between two quotes; without quotes, the end of the text.
  std::pair<std::size_t, std::size_t> place(const std::string& text) {
    std::vector<std::size_t> quotes;
    for (std::size_t i = start(text) + 1; i < text.size(); ++i)
      if (text[i] == '"' && text[i - 1] == '=') quotes.push_back(i + 1);
    if (quotes.empty()) return {text.size(), text.size()};
    const std::size_t begin = quotes[below(quotes.size())];
    return {begin, std::min(text.find('"', begin), text.size())};
  }
  void replace(std::string& text, const std::string& value) {
    const auto [begin, end] = place(text);
    text.replace(begin, end - begin, value);
  }
  /// Start and end of a random line, its line end included.
  std::pair<std::size_t, std::size_t> line(const std::string& text) {
    if (text.empty()) return {0, 0};
    const std::size_t from = start(text), at = from + below(text.size() - from),
                      before = at == 0 ? text.npos : text.rfind('\n', at - 1);
    const std::size_t end = text.find('\n', at);
    return {before == text.npos ? 0 : before + 1, end == text.npos ? text.size() : end + 1};
  }

  std::mt19937_64 random_;
  std::size_t names_ = 0;
  bool odd_ = true;
};

}  // namespace stagecraft::fuzz
