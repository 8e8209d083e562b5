#include "backends/simgrid/radical.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

#include <fmt/format.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::sg {
namespace {

double number(std::string_view text) {
  double value = 0;
  text = trim(text);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
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

/// The value in quotes behind the name of an attribute that ends at `at`; empty when there is none.
std::string_view value_at(std::string_view text, std::size_t at) {
  const auto skip = [&] {
    while (at < text.size() && std::isspace(static_cast<unsigned char>(text[at]))) ++at;
  };
  skip();
  if (at >= text.size() || text[at] != '=') return {};
  ++at;
  skip();
  if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return {};
  const auto end = text.find(text[at], at + 1);
  return end == text.npos ? std::string_view() : text.substr(at + 1, end - at - 1);
}

}  // namespace

void check_radicals(const std::string& file, std::string_view text) {
  constexpr std::string_view name = "radical";
  double sum = 0;
  for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1)) {
    sum += ids(value_at(text, at + name.size()));
    if (sum <= kMostClusterHosts) continue;
    const auto line =
        1 + static_cast<int>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
    throw InputError(
        {{{file, line, 1},
          {},
          fmt::format("{:.0f} hosts are named up to here, and at most {:.0f} are read", sum, kMostClusterHosts),
          "a cluster with fewer of them, such as radical=\"0-1023\"",
          "simgrid-platform"}});
  }
}

}  // namespace stagecraft::sg
