// The tree of a YAML or JSON text with its places: look-ups, problems, and writing it as YAML or JSON.

#include "sim/config/value.hpp"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "sim/config/units.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::config {
namespace {

constexpr std::size_t kLongestFlowList = 80;

bool is_null_word(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Whether YAML reads the bare text back as it is. Flow characters end a bare text only inside [ ] and { }.
bool can_be_bare(std::string_view text, bool in_flow) {
  if (is_null_word(text) || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return false;
  if (std::any_of(text.begin(), text.end(), is_control)) return false;
  if (text.starts_with("---") || text.starts_with("...") || text.starts_with("\xEF\xBB\xBF")) return false;
  if (std::string_view("[]{},#&*!|>'\"%@`").find(text.front()) != std::string_view::npos) return false;
  const std::string_view ends = in_flow ? ",[]{} " : " ";
  if (std::string_view("-?:").find(text.front()) != std::string_view::npos) {
    if (text.size() == 1 || ends.find(text[1]) != std::string_view::npos) return false;
  }
  if (in_flow && text.find_first_of(",[]{}?:") != std::string_view::npos) return false;
  return text.find(": ") == std::string_view::npos && text.find(" #") == std::string_view::npos;
}

// A string that both JSON and YAML read back.
std::string in_quotes(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      quoted += fmt::format("\\{}", c);
    else if (c == '\n')
      quoted += "\\n";
    else if (c == '\t')
      quoted += "\\t";
    else if (c == '\r')
      quoted += "\\r";
    else if (is_control(c))
      quoted += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      quoted += c;
  }
  return quoted + '"';
}

std::string yaml_scalar(const Value& value, bool in_flow) {
  if (value.kind == Value::Kind::Null) return "null";
  return !value.quoted && can_be_bare(value.text, in_flow) ? value.text : in_quotes(value.text);
}

bool is_leaf(const Value& value) { return value.kind == Value::Kind::Null || value.is_scalar(); }

// "[a, b]" when every item is a short leaf; empty when the list needs several lines.
std::string flow_list(const Value& list) {
  if (!list.is_list() || list.items.empty()) return {};
  std::vector<std::string> words;
  std::size_t length = 0;
  for (const Value& item : list.items) {
    if (!is_leaf(item)) return {};
    words.push_back(yaml_scalar(item, true));
    length += words.back().size() + 2;
  }
  return length > kLongestFlowList ? std::string{} : '[' + join(words) + ']';
}

class YamlWriter {
 public:
  explicit YamlWriter(bool comments) : comments_(comments) {}

  // Writes the value after "key:" or "-" on the current line, and its lines below.
  void value_behind(const Value& value, std::size_t indent) {
    if (is_leaf(value)) return line(" " + yaml_scalar(value, false), value);
    if (value.is_map() ? value.members.empty() : value.items.empty())
      return line(value.is_map() ? " {}" : " []", value);
    if (value.is_list()) {
      if (const std::string flow = flow_list(value); !flow.empty()) return line(" " + flow, value);
    }
    line("", value);
    lines_of(value, indent + 2);
  }

  void lines_of(const Value& value, std::size_t indent) {
    const std::string space(indent, ' ');
    for (const Member& member : value.members) {
      text_ += space + (can_be_bare(member.key, true) ? member.key : in_quotes(member.key)) + ':';
      value_behind(member.value, indent);
    }
    for (const Value& item : value.items) item_of(item, indent);
  }

  std::string take() { return std::move(text_); }

 private:
  // The first line of a map or list stands on the line of its "-".
  void item_of(const Value& item, std::size_t indent) {
    const std::string space(indent, ' ');
    const bool block = item.is_map() ? !item.members.empty() : item.is_list() && flow_list(item).empty();
    if (!block || item.items.size() + item.members.size() == 0) {
      text_ += space + '-';
      return value_behind(item, indent);
    }
    const std::size_t start = text_.size();
    lines_of(item, indent + 2);
    text_[start + indent] = '-';
  }

  void line(const std::string& content, const Value& value) {
    text_ += content;
    if (comments_ && !value.origin.empty()) text_ += "  # " + value.origin;
    text_ += '\n';
  }

  bool comments_;
  std::string text_;
};

// JSON knows neither "+5" nor ".5" nor "5.", which YAML takes for numbers.
std::string json_scalar(const Value& value) {
  if (value.kind == Value::Kind::Null) return "null";
  if (value.quoted) return in_quotes(value.text);
  if (value.text == "true" || value.text == "false") return value.text;
  std::string ignored;
  if (!parse_number(value.text, ignored)) return in_quotes(value.text);
  std::string number = value.text;
  if (number.front() == '+') number.erase(0, 1);
  const std::size_t dot = number.find('.');
  const auto is_digit = [&](std::size_t i) { return i < number.size() && number[i] >= '0' && number[i] <= '9'; };
  if (dot == std::string::npos) return number;
  if (!is_digit(dot + 1)) number.insert(dot + 1, "0");
  if (dot == 0 || !is_digit(dot - 1)) number.insert(dot, "0");
  return number;
}

std::string json_of(const Value& value, std::size_t indent) {
  if (is_leaf(value)) return json_scalar(value);
  const std::string space(indent, ' ');
  std::string text;
  for (const Member& member : value.members) {
    text += fmt::format("{}\n{}  {}: {}", text.empty() ? "" : ",", space, in_quotes(member.key),
                        json_of(member.value, indent + 2));
  }
  for (const Value& item : value.items) {
    text += fmt::format("{}\n{}  {}", text.empty() ? "" : ",", space, json_of(item, indent + 2));
  }
  if (!text.empty()) text += '\n' + space;
  return value.is_map() ? '{' + text + '}' : '[' + text + ']';
}

}  // namespace

bool same_content(const Value& a, const Value& b) {
  return a.kind == b.kind && a.text == b.text && a.quoted == b.quoted &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_content) &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    [](const Member& x, const Member& y) { return x.key == y.key && same_content(x.value, y.value); });
}

const Value* Value::find(std::string_view key) const {
  for (const Member& member : members)
    if (member.key == key) return &member.value;
  return nullptr;
}

Value* Value::find(std::string_view key) { return const_cast<Value*>(std::as_const(*this).find(key)); }

const Value& Value::at(std::string_view key) const {
  if (const Value* value = find(key)) return *value;
  throw InternalError(fmt::format("no '{}' in the map at {}:{}", key, where.file, where.line));
}

Value Value::scalar(std::string text, Where where, std::string origin) {
  Value value;
  value.kind = Kind::Scalar;
  value.text = std::move(text);
  value.where = std::move(where);
  value.origin = std::move(origin);
  return value;
}

void Problems::add(const Where& where, std::string path, std::string message, std::string help, std::string code) {
  list_.push_back({where, std::move(path), std::move(message), std::move(help), std::move(code)});
}

void Problems::throw_if_any() const {
  if (!list_.empty()) throw InputError(list_);
}

std::string to_yaml(const Value& value, bool comments) {
  YamlWriter writer(comments);
  const bool one_line = is_leaf(value) || value.items.size() + value.members.size() == 0 || !flow_list(value).empty();
  if (one_line) {
    writer.value_behind(value, 0);
    return writer.take().substr(1);
  }
  writer.lines_of(value, 0);
  return writer.take();
}

std::string to_json(const Value& value) { return json_of(value, 0); }

}  // namespace stagecraft::config
