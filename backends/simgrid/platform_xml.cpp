// Checks a SimGrid platform file and writes it again from what is allowed, so that SimGrid never sees the original.

#include "backends/simgrid/platform_xml.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::sg {
namespace {

constexpr std::size_t kDeepest = 100;  // Real platforms nest zones less than ten deep.
constexpr std::string_view kSpaces = " \t\r\n";

/// An element that is taken, with lists of words: its attributes, and the elements that it may stand in.
struct ElementRule {
  std::string_view name, attributes, parents;
};

constexpr std::string_view kZones = "zone AS",
                           kRoutes = "route zoneRoute ASroute bypassRoute bypassZoneRoute bypassASroute";
constexpr ElementRule kElements[] = {
    {"platform", "version", ""},
    {"zone", "id routing", "platform zone AS"},
    {"AS", "id routing", "platform zone AS"},
    {"host", "id speed core coordinates pstate", kZones},
    {"disk", "id read_bw write_bw", "host"},
    {"prop", "id value", "zone AS host disk link cluster"},
    {"link", "id bandwidth latency sharing_policy", kZones},
    {"router", "id coordinates", kZones},
    {"cluster",
     "id prefix suffix radical speed core bw lat sharing_policy bb_bw bb_lat bb_sharing_policy topology "
     "topo_parameters loopback_bw loopback_lat limiter_link router_id",
     kZones},
    {"cabinet", "id prefix suffix radical speed bw lat", kZones},
    {"backbone", "id bandwidth latency", kZones},
    {"host_link", "id up down", kZones},
    {"route", "src dst symmetrical", kZones},
    {"zoneRoute", "src dst gw_src gw_dst symmetrical", kZones},
    {"ASroute", "src dst gw_src gw_dst symmetrical", kZones},
    {"bypassRoute", "src dst", kZones},
    {"bypassZoneRoute", "src dst gw_src gw_dst", kZones},
    {"bypassASroute", "src dst gw_src gw_dst", kZones},
    {"link_ctn", "id direction", kRoutes},
};

bool has_word(std::string_view list, std::string_view word) {
  const std::vector<std::string> words = split(list, ' ');
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

bool is_xml_character(std::uint32_t code) {
  return code == '\t' || code == '\n' || code == '\r' || (code >= 0x20 && code < 0xD800) ||
         (code >= 0xE000 && code < 0xFFFE) || (code >= 0x10000 && code < 0x110000);
}

std::string utf8(std::uint32_t code) {
  const auto byte = [](std::uint32_t bits) { return static_cast<char>(bits); };
  if (code < 0x80) return {byte(code)};
  if (code < 0x800) return {byte(0xC0 | code >> 6), byte(0x80 | (code & 0x3F))};
  if (code < 0x10000) return {byte(0xE0 | code >> 12), byte(0x80 | (code >> 6 & 0x3F)), byte(0x80 | (code & 0x3F))};
  return {byte(0xF0 | code >> 18), byte(0x80 | (code >> 12 & 0x3F)), byte(0x80 | (code >> 6 & 0x3F)),
          byte(0x80 | (code & 0x3F))};
}

std::string attribute_text(std::string_view value) {
  std::string text;
  for (const char c : xml_escape(value))
    text += c == '\n' || c == '\r' || c == '\t' ? fmt::format("&#{};", int{c}) : std::string(1, c);
  return text;
}

double number(std::string_view text) {
  double value = 0;
  text = trim(text);
  const auto [end, error] = from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc::result_out_of_range ? kMostClusterHosts + 1 : value;
}

/// How many ids "0-15,20" names; what SimGrid does not take as a range counts as one.
double ids(std::string_view radical) {
  double sum = 0;
  for (const std::string_view range : split(radical, ',')) {
    const auto dash = range.find('-');
    sum += dash == range.npos ? 1 : std::max(1.0, number(range.substr(dash + 1)) - number(range.substr(0, dash)) + 1);
  }
  return sum;
}

/// An element whose closing tag is still to come.
struct OpenElement {
  std::string name, routing;
  std::size_t points = 0;  ///< Hosts, routers and zones in it.
};

/// A table of all pairs takes 8 bytes for each; Floyd's algorithm takes a step for each triple.
std::size_t most_points(std::string_view routing) {
  return routing == "Full" ? 8000 : routing == "Floyd" ? 1000 : std::string_view::npos;
}

class PlatformXml {
 public:
  PlatformXml(const std::string& file, std::string_view text) : file_(file), text_(text) {}

  std::string check() {
    for (std::size_t i = 0; i < text_.size(); ++i)
      if (!is_xml_character(static_cast<unsigned char>(text_[i]))) refuse(i, "a control character may not be in XML");
    prologue();
    element();
    while (!open_.empty()) content();
    skip_spaces_and_comments();
    if (at_ < text_.size()) refuse(at_, "nothing may follow </platform>");
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::size_t at, const std::string& message, const std::string& help = {}) const {
    const std::string_view before = text_.substr(0, at);
    const std::size_t line = before.rfind('\n') == before.npos ? 0 : before.rfind('\n') + 1;
    const auto starts_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
    const auto column =
        std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line), before.end(), starts_character);
    throw InputError({{{file_, line_of(at), 1 + static_cast<int>(column)}, {}, message, help, "simgrid-platform"}});
  }

  int line_of(std::size_t at) const {
    return 1 + static_cast<int>(std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }

  bool sees(std::string_view word) const { return text_.substr(at_).starts_with(word); }
  bool take(std::string_view word) {
    if (!sees(word)) return false;
    at_ += word.size();
    return true;
  }
  void expect(std::string_view word, const char* where) {
    if (!take(word)) refuse(at_, fmt::format("'{}' is missing {}", word, where));
  }
  bool skip_spaces() {
    const std::size_t before = at_;
    at_ = std::min(text_.find_first_not_of(kSpaces, at_), text_.size());
    return at_ > before;
  }
  /// Leaves `at_` after the next `end`.
  void skip_to(std::string_view end, const char* what) {
    const std::size_t position = text_.find(end, at_);
    if (position == text_.npos) refuse(at_, fmt::format("{} does not end", what));
    at_ = position + end.size();
  }
  void skip_spaces_and_comments() {
    for (skip_spaces(); sees("<!--"); skip_spaces()) {
      const std::size_t begin = at_;
      at_ += 4;
      skip_to("--", "a comment");
      if (!take(">")) refuse(begin, "'--' may not be in a comment");
    }
  }

  void prologue() {
    take("\xEF\xBB\xBF");
    if (take("<?xml ")) skip_to("?>", "the XML declaration");
    skip_spaces_and_comments();
    if (const std::size_t begin = at_; take("<!DOCTYPE")) {
      skip_to(">", "the document type");
      if (text_.substr(begin, at_ - begin).find('[') != text_.npos)
        refuse(begin, "a document type with declarations of its own is not accepted",
               "write <!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">");
    }
    skip_spaces_and_comments();
    out_ = "<?xml version=\"1.0\"?><!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">";
    if (!sees("<platform")) refuse(at_, "this is no platform file: <platform version=\"4.1\"> is missing");
  }

  /// What stands between the tags of the innermost open element, up to and with the next tag.
  void content() {
    skip_spaces_and_comments();
    if (at_ >= text_.size()) refuse(at_, fmt::format("</{}> is missing", open_.back().name));
    if (text_[at_] != '<') refuse(at_, fmt::format("there may be no text in <{}>", open_.back().name));
    if (!sees("</")) return element();
    const std::size_t begin = at_;
    at_ += 2;
    if (const std::string_view closed = name(); closed != open_.back().name)
      refuse(begin, fmt::format("</{}> stands where </{}> is expected", closed, open_.back().name));
    skip_spaces();
    expect(">", "after the name of a closing tag");
    out_ += fmt::format("</{}>", open_.back().name);
    open_.pop_back();
  }

  std::string_view name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() && is_name_character(text_[at_])) ++at_;
    if (at_ == begin) refuse(begin, "a name is expected here");
    return text_.substr(begin, at_ - begin);
  }

  void element() {
    const std::size_t begin = at_;
    expect("<", "before an element");
    if (sees("!") || sees("?")) refuse(begin, "only elements and comments are accepted here");
    const std::string_view element_name = name();
    const ElementRule& rule = rule_of(element_name, begin);
    count_point(element_name, begin);
    // Every element keeps its line, so that SimGrid's messages point to the right line of the file.
    out_.append(std::count(text_.begin() + copied_lines_, text_.begin() + static_cast<std::ptrdiff_t>(begin), '\n'),
                '\n');
    copied_lines_ = static_cast<std::ptrdiff_t>(begin);
    out_ += fmt::format("<{}", element_name);
    std::vector<std::string_view> given;
    std::string routing;
    while (skip_spaces() && at_ < text_.size() && is_name_character(text_[at_])) attribute(rule, given, routing);
    const bool empty = take("/");
    expect(">", "at the end of a tag");
    out_ += empty ? "/>" : ">";
    if (empty) return;
    if (open_.size() >= kDeepest) refuse(begin, fmt::format("elements may be nested {} deep at most", kDeepest));
    open_.push_back({std::string(element_name), std::move(routing)});
  }

  const ElementRule& rule_of(std::string_view element_name, std::size_t begin) const {
    const auto* rule = std::find_if(std::begin(kElements), std::end(kElements),
                                    [&](const ElementRule& r) { return r.name == element_name; });
    if (rule == std::end(kElements))
      refuse(begin, fmt::format("<{}> is not accepted in a platform file", element_name),
             "only zones, hosts, links and routes are read: settings, traces, storage and included files are not");
    if (open_.empty() ? !rule->parents.empty() : !has_word(rule->parents, open_.back().name))
      refuse(begin, fmt::format("<{}> may not stand in <{}>", element_name, open_.empty() ? "" : open_.back().name));
    return *rule;
  }

  void attribute(const ElementRule& rule, std::vector<std::string_view>& given, std::string& routing) {
    const std::size_t begin = at_;
    const std::string_view key = name();
    if (!has_word(rule.attributes, key))
      refuse(begin, fmt::format("'{}' is not accepted in <{}>", key, rule.name),
             key.ends_with("_file") ? "a platform may not name files: leave it out" : "leave it out");
    if (std::find(given.begin(), given.end(), key) != given.end())
      refuse(begin, fmt::format("'{}' is written twice", key));
    given.push_back(key);
    skip_spaces();
    expect("=", "after the name of an attribute");
    skip_spaces();
    const std::string text = value();
    if (key == "radical") count_hosts(text, begin);
    if (key == "routing") routing = text;
    out_ += fmt::format(" {}=\"{}\"", key, attribute_text(text));
  }

  std::string value() {
    const std::size_t begin = at_;
    const char quote = at_ < text_.size() ? text_[at_] : ' ';
    if (quote != '"' && quote != '\'') refuse(at_, "a value in quotes is expected here");
    std::string text;
    for (++at_; at_ < text_.size() && text_[at_] != quote;) {
      if (text_[at_] == '<') refuse(at_, "'<' in a value is written &lt;");
      if (text_[at_] == '&')
        text += reference();
      else
        text += kSpaces.find(text_[at_]) == kSpaces.npos ? text_[at_] : ' ', ++at_;
    }
    if (at_ >= text_.size()) refuse(begin, "the quotes are not closed");
    ++at_;
    return text;
  }

  /// The character that stands for &lt; or &#10;. There are no other entities, for the file may not declare any.
  std::string reference() {
    const std::size_t begin = at_, end = text_.find(';', at_);
    std::string_view word = end == text_.npos ? std::string_view() : text_.substr(begin + 1, end - begin - 1);
    at_ = end + 1;
    constexpr std::pair<std::string_view, std::string_view> entities[] = {
        {"amp", "&"}, {"lt", "<"}, {"gt", ">"}, {"quot", "\""}, {"apos", "'"}};
    for (const auto& [entity, character] : entities)
      if (word == entity) return std::string(character);
    std::uint32_t code = 0;
    if (word.starts_with('#')) {
      word.remove_prefix(1);
      const int base = word.starts_with('x') ? 16 : 10;
      if (base == 16) word.remove_prefix(1);
      const auto [rest, error] = from_chars(word.data(), word.data() + word.size(), code, base);
      if (error == std::errc{} && rest == word.data() + word.size() && is_xml_character(code)) return utf8(code);
    }
    refuse(begin, "this is no character that is known", "write &amp; for &");
  }

  void count_point(std::string_view element_name, std::size_t at) {
    if (open_.empty() || !has_word("host router zone AS cluster", element_name)) return;
    OpenElement& zone = open_.back();
    if (++zone.points > most_points(zone.routing))
      refuse(at,
             fmt::format("a zone with the routing {} may have at most {} hosts, routers and zones", zone.routing,
                         most_points(zone.routing)),
             "zones in it, or another routing");
  }

  void count_hosts(std::string_view radical, std::size_t at) {
    hosts_ += ids(radical);
    if (hosts_ > kMostClusterHosts)
      refuse(at,
             fmt::format("{:.0f} hosts are named up to here, and at most {:.0f} are read", hosts_, kMostClusterHosts),
             "a cluster with fewer of them, such as radical=\"0-1023\"");
  }

  const std::string& file_;
  std::string_view text_;
  std::size_t at_ = 0;
  std::vector<OpenElement> open_;
  std::string out_;
  std::ptrdiff_t copied_lines_ = 0;  ///< Line ends before this place are in `out_`.
  double hosts_ = 0;
};

}  // namespace

std::string checked_platform_xml(const std::string& file, std::string_view text) {
  return PlatformXml(file, text).check();
}

}  // namespace stagecraft::sg
