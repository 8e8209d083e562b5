// The values of an axis of a sweep (one, a list, or a range {from, to, by} or {from, to, times}), and the text of a
// value on one line, for labels.

#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/text.hpp"
#include "sim/sweep/sweep.hpp"

namespace stagecraft {
namespace {

using config::Member;
using config::Problems;
using config::Value;

constexpr double kMostValues = 1e6;
const char* const kForms = "write a value, a list, {from: 4, to: 64, times: 2} or {from: 1, to: 9, by: 2}";

/// The number and the unit of a text such as "50 GB/s".
struct Amount {
  double number = 0;
  std::string unit;
};

std::optional<Amount> amount_of(const Value& value) {
  if (!value.is_scalar() || value.quoted) return {};
  const std::size_t end = value.text.find_first_not_of("+-.0123456789eE");
  std::string ignored;
  const auto number = config::parse_number(trim(value.text.substr(0, end)), ignored);
  if (!number) return {};
  return Amount{*number, end == std::string::npos ? "" : std::string(trim(value.text.substr(end)))};
}

/// A value of a range. Twelve digits hide rounding errors, which do not add up, because each value is computed from the
/// first one.
Value counted(double number, const std::string& unit, const Where& where) {
  const std::string text = fmt::format("{:.12g}", number);
  return Value::scalar(unit.empty() ? text : text + ' ' + unit, where, "computed");
}

class Range {
 public:
  Range(const Value& map, const std::string& path, Problems& problems) : map_(map), path_(path), problems_(problems) {}

  std::vector<Value> values() {
    for (const Member& m : map_.members)
      if (m.key != "from" && m.key != "to" && m.key != "by" && m.key != "times")
        return refuse(m.where, path_ + '.' + m.key, "a range has no such field", kForms);
    if (map_.has("by") == map_.has("times")) return refuse(map_.where, path_, "a range needs `by` or `times`", kForms);
    const bool adds = map_.has("by");
    const char* const step_key = adds ? "by" : "times";
    const auto from = read("from"), to = read("to"), step = read(step_key);
    if (!from || !to || !step) return {};
    if (from->unit != to->unit) return refuse(map_.at("to").where, path_ + ".to", "its unit is not that of `from`", "");
    if (step->unit != (adds ? from->unit : ""))
      return refuse(map_.at(step_key).where, path_ + '.' + step_key,
                    adds ? "its unit is not that of `from`" : "a factor has no unit", "");
    if (adds ? step->number <= 0 : step->number <= 1 || from->number <= 0)
      return refuse(map_.at(step_key).where, path_ + '.' + step_key, "the range does not get on",
                    adds ? "write a step above 0" : "write a factor above 1, and `from` above 0");
    if (to->number < from->number) return refuse(map_.at("to").where, path_ + ".to", "this is below `from`", "");
    const double exact = adds ? (to->number - from->number) / step->number
                              : std::log(to->number / from->number) / std::log(step->number);
    const double last = std::floor(exact * (1 + 1e-12) + 1e-9);
    if (!(last < kMostValues))
      return refuse(map_.where, path_, fmt::format("the range has more than {:.0f} values", kMostValues), "");
    std::vector<Value> list;
    for (int i = 0; i <= static_cast<int>(last); ++i)
      list.push_back(counted(adds ? from->number + i * step->number : from->number * std::pow(step->number, i),
                             from->unit, map_.where));
    return list;
  }

 private:
  std::vector<Value> refuse(const Where& where, const std::string& path, std::string message, std::string help) {
    problems_.add(where, path, std::move(message), std::move(help), "range");
    return {};
  }

  std::optional<Amount> read(const char* key) {
    const Value* value = map_.find(key);
    if (!value) {
      refuse(map_.where, path_ + '.' + key, "this field is missing", kForms);
      return {};
    }
    const auto amount = amount_of(*value);
    if (!amount) refuse(value->where, path_ + '.' + key, "a number is needed here, with its unit if it has one", "");
    return amount;
  }

  const Value& map_;
  const std::string& path_;
  Problems& problems_;
};

}  // namespace

std::vector<Value> axis_values(const Value& written, const std::string& path, Problems& problems) {
  if (written.is_map()) return Range(written, path, problems).values();
  if (written.is_scalar()) return {written};
  if (!written.is_list())
    problems.add(written.where, path, "an axis needs its values", kForms, "wrong-type");
  else if (written.items.empty())
    problems.add(written.where, path, "the axis has no values", "write at least one, or take the line out", "empty");
  return written.items;
}

std::string one_line(const Value& value) {
  if (value.kind == Value::Kind::Null) return "null";
  if (value.is_scalar()) return value.text;
  std::vector<std::string> words;
  for (const Member& m : value.members) words.push_back(fmt::format("{}: {}", m.key, one_line(m.value)));
  for (const Value& item : value.items) words.push_back(one_line(item));
  return value.is_map() ? '{' + join(words) + '}' : '[' + join(words) + ']';
}

}  // namespace stagecraft
