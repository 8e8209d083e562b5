// Reads numbers, and quantities such as "25 GB/s" in base units, and explains what is wrong with others.

#include "sim/config/units.hpp"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/core.h>

#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

// Divided rather than multiplied by 1e-6, so that "40 us" is exactly the double nearest to 40e-6.
struct Unit {
  std::string_view name;
  double times = 1;
  double per = 1;
};

constexpr Unit kTimes[] = {{"s"},       {"ms", 1, 1e3}, {"us", 1, 1e6}, {"ns", 1, 1e9},
                           {"min", 60}, {"h", 3600},    {"days", 86400}};
constexpr Unit kSizes[] = {{"B"},           {"kB", 1e3},     {"MB", 1e6},     {"GB", 1e9},    {"TB", 1e12},
                           {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kSpeeds[] = {{"B/s"},
                            {"kB/s", 1e3},
                            {"MB/s", 1e6},
                            {"GB/s", 1e9},
                            {"TB/s", 1e12},
                            {"KiB/s", 0x1p10},
                            {"MiB/s", 0x1p20},
                            {"GiB/s", 0x1p30},
                            {"TiB/s", 0x1p40},
                            {"bit/s", 1, 8},
                            {"kbit/s", 1e3, 8},
                            {"Mbit/s", 1e6, 8},
                            {"Gbit/s", 1e9, 8},
                            {"Tbit/s", 1e12, 8}};
constexpr Unit kWork[] = {{"FLOP"}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
constexpr Unit kRates[] = {{"FLOP/s"}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr Unit kPowers[] = {{"W"}, {"kW", 1e3}};
constexpr Unit kShares[] = {{"%", 1, 100}};

constexpr Dimension kDimensions[] = {Dimension::Time,     Dimension::Size,  Dimension::Bandwidth, Dimension::Work,
                                     Dimension::WorkRate, Dimension::Power, Dimension::Share};

std::span<const Unit> units_of(Dimension dimension) {
  switch (dimension) {
    case Dimension::Time:
      return kTimes;
    case Dimension::Size:
      return kSizes;
    case Dimension::Bandwidth:
      return kSpeeds;
    case Dimension::Work:
      return kWork;
    case Dimension::WorkRate:
      return kRates;
    case Dimension::Power:
      return kPowers;
    case Dimension::Share:
      return kShares;
  }
  return {};
}

const Unit* find_unit(Dimension dimension, std::string_view name) {
  for (const Unit& unit : units_of(dimension))
    if (unit.name == name) return &unit;
  return nullptr;
}

std::size_t digits_from(std::string_view text, std::size_t start) {
  std::size_t end = start;
  while (end < text.size() && text[end] >= '0' && text[end] <= '9') ++end;
  return end - start;
}

// How many characters at the start of `text` are a number: [+-] digits [. digits] [e [+-] digits].
std::size_t number_length(std::string_view text) {
  std::size_t at = !text.empty() && (text[0] == '+' || text[0] == '-') ? 1 : 0;
  const std::size_t whole = digits_from(text, at);
  at += whole;
  std::size_t fraction = 0;
  if (at < text.size() && text[at] == '.') {
    fraction = digits_from(text, at + 1);
    if (whole + fraction > 0) at += 1 + fraction;
  }
  if (whole + fraction == 0) return 0;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t exponent = at + 1;
    if (exponent < text.size() && (text[exponent] == '+' || text[exponent] == '-')) ++exponent;
    if (const std::size_t digits = digits_from(text, exponent)) at = exponent + digits;
  }
  return at;
}

std::optional<double> read_number(std::string_view number, std::string& why) {
  std::string_view digits = number;
  if (!digits.empty() && (digits.front() == '+' || digits.front() == '-')) digits.remove_prefix(1);
  if (digits.size() > 1 && digits[0] == '0' && digits_from(digits, 0) > 1) {
    const std::size_t first = std::min(digits.find_first_not_of('0'), digits_from(digits, 0) - 1);
    why = fmt::format("'{}' starts with a zero; write {}{}", number, number.front() == '-' ? "-" : "",
                      digits.substr(first));
    return {};
  }
  if (number.front() == '+') number.remove_prefix(1);
  double value = 0;
  const auto [end, error] = from_chars(number.data(), number.data() + number.size(), value);
  if (error == std::errc{} && std::isfinite(value)) return value;
  why = fmt::format("'{}' is too large or too small", number);
  return {};
}

bool is_not_finite_word(std::string_view text) {
  std::string word;
  for (const char c : lower_case(text))
    if (c >= 'a' && c <= 'z') word += c;
  return word == "inf" || word == "nan" || word == "infinity";
}

// "Gb/s", "Gbps", "GBps": a factor of eight hides there, so both readings are offered.
std::string both_readings(Dimension dimension, std::string_view number, std::string_view unit) {
  std::string prefix;
  if (!unit.empty() && std::string_view("kKMGT").find(unit.front()) != std::string_view::npos) {
    prefix = unit.front() == 'K' ? 'k' : unit.front();
    unit.remove_prefix(1);
  }
  if (dimension == Dimension::Bandwidth && (unit == "b/s" || unit == "bps" || unit == "Bps")) {
    return fmt::format("write '{0} {1}B/s' for bytes or '{0} {1}bit/s' for bits", number, prefix);
  }
  const std::string word = lower_case(unit);
  if (dimension == Dimension::Bandwidth && (word == "b" || word == "bit" || word == "bits"))
    return unit == "B" ? fmt::format("a bandwidth is in bytes for each second; write '{} {}B/s'", number, prefix)
                       : fmt::format("write '{0} {1}bit/s' for bits or '{0} {1}B/s' for bytes", number, prefix);
  std::string ignored;
  if (dimension == Dimension::Size && (unit == "b" || unit == "bit")) {
    const double value = read_number(number, ignored).value_or(0);
    return fmt::format("write '{} {}B' for bytes or '{} {}B' for that number of bits", number, prefix,
                       shortest(value / 8), prefix);
  }
  return {};
}

std::string longer_time(std::string_view number, std::string_view unit) {
  constexpr std::pair<std::string_view, std::string_view> kOthers[] = {
      {"minute", "min"}, {"minutes", "min"}, {"hour", "h"}, {"hours", "h"}, {"d", "days"}, {"day", "days"}};
  if (unit == "m") return fmt::format("write '{0} min' or '{0} ms'", number);
  for (const auto& [other, name] : kOthers)
    if (unit == other) return fmt::format("write '{} {}'", number, name);
  return {};
}

// Wrong capitals are the likeliest slip: 'KB' means 'kB' rather than 'B'.
std::optional<std::string> nearest_unit(const std::string& word, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (lower_case(name) == lower_case(word)) return name;
  return closest(word, names);
}

std::string about_unit(Dimension dimension, std::string_view number, std::string_view unit) {
  const std::vector<std::string> names = unit_names(dimension);
  if (unit.empty()) return fmt::format("'{}' has no unit; write one of {}", number, join(names));
  std::string advice = both_readings(dimension, number, unit);
  if (advice.starts_with("a bandwidth")) return fmt::format("'{}' has no time; {}", unit, advice);
  if (!advice.empty()) return fmt::format("'{}' can be read in two ways; {}", unit, advice);
  if (dimension == Dimension::Time) advice = longer_time(number, unit);
  for (const Dimension other : kDimensions) {
    if (!advice.empty() || !find_unit(other, unit)) continue;
    return fmt::format("'{}' is a unit of {}, not of {}; write one of {}", unit, dimension_name(other),
                       dimension_name(dimension), join(names));
  }
  std::string plain(unit);
  for (const std::string_view micro : {"\u00b5", "\u03bc"})
    if (plain.starts_with(micro)) plain.replace(0, micro.size(), "u");
  if (advice.empty()) {
    const auto near = nearest_unit(plain, names);
    advice = near ? fmt::format("did you mean '{}'?", *near) : "write one of " + join(names);
  }
  return fmt::format("'{}' is not a unit of {}; {}", unit, dimension_name(dimension), advice);
}

}  // namespace

std::optional<double> parse_number(std::string_view text, std::string& why) {
  if (!text.empty() && number_length(text) == text.size()) return read_number(text, why);
  if (is_not_finite_word(text)) {
    why = fmt::format("'{}' is not a finite number", text);
  } else if (!text.empty() && text.back() == '%' && number_length(text) == text.size() - 1) {
    const auto percent = read_number(text.substr(0, text.size() - 1), why);
    why = fmt::format("'{}' is a percentage; write the ratio {}", text, shortest(percent.value_or(0) / 100));
  } else {
    why = fmt::format("'{}' is not a number", text);
  }
  return {};
}

std::optional<double> parse_quantity(Dimension dimension, std::string_view text, std::string& why) {
  const std::size_t length = number_length(text);
  const std::string_view number = text.substr(0, length);
  if (length == 0) {
    why = is_not_finite_word(text) ? fmt::format("'{}' is not a finite number", text)
                                   : fmt::format("'{}' is not a number with a unit of {}, such as '1 {}'", text,
                                                 dimension_name(dimension), units_of(dimension).front().name);
    return {};
  }
  const auto value = read_number(number, why);
  if (!value) return {};
  std::string_view name = text.substr(length);
  if (name.starts_with(' ')) name.remove_prefix(1);
  if (std::signbit(*value)) {
    why = fmt::format("'{}' is negative; a {} is zero or more", text, dimension_name(dimension));
    return {};
  }
  const Unit* unit = find_unit(dimension, name);
  if (!unit && !(name.empty() && *value == 0)) {
    why = trim(name) == name ? about_unit(dimension, number, name)
                             : fmt::format("write '{} {}' with one space, or none", number, trim(name));
    return {};
  }
  const double base = unit ? *value * unit->times / unit->per : 0;
  if (std::isfinite(base)) return base;
  why = fmt::format("'{}' is too large", text);
  return {};
}

std::string_view dimension_name(Dimension dimension) {
  switch (dimension) {
    case Dimension::Time:
      return "time";
    case Dimension::Size:
      return "size";
    case Dimension::Bandwidth:
      return "bandwidth";
    case Dimension::Work:
      return "work";
    case Dimension::WorkRate:
      return "speed of computing";
    case Dimension::Power:
      return "power";
    case Dimension::Share:
      return "share";
  }
  return "quantity";
}

std::vector<std::string> unit_names(Dimension dimension) {
  std::vector<std::string> names;
  for (const Unit& unit : units_of(dimension)) names.emplace_back(unit.name);
  return names;
}

}  // namespace stagecraft::config
