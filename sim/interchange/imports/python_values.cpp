// Evaluates Python files that say values, such as configurations: assignments, literals and calls.
// torchtitan_python.cpp calls it.

#include "sim/interchange/imports/python_values.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/python_tokens.hpp"

namespace stagecraft {
namespace {

using PythonRef = std::shared_ptr<PythonValue>;

using PythonNames = std::map<std::string, PythonRef>;

constexpr int kMostCalls = 1000, kDeepestCall = 20, kDeepestValue = 50;

class PythonInterpreter {
 public:
  PythonInterpreter(const std::string& text, const std::string& file) : file_(file), lines_(python_lines(text, file)) {
    for (std::size_t i = 0; i < lines_.size(); i = end_of_block(i)) {
      const std::vector<PythonToken>& line = lines_[i].tokens;
      if (line[0].is("def") && line.size() > 1) {
        functions_[line[1].text] = i;
        if (!line[1].text.starts_with('_')) names_.push_back(line[1].text);
      } else if (line[0].is("from")) {
        read_import(line);
      }
    }
    for (std::size_t i = 0; i < lines_.size(); i = end_of_block(i))
      if (end_of_block(i) == i + 1 && target_size(lines_[i].tokens) > 0) assign(lines_[i].tokens, globals_);
  }

  const std::vector<std::string>& functions() const { return names_; }

  PythonFile call(const std::string& function) {
    const auto entry = functions_.find(function);
    if (entry == functions_.end())
      throw InputError({{{file_, 1, 1},
                         {},
                         fmt::format("there is no function '{}'", function),
                         suggest(function, names_),
                         "import"}});
    const PythonToken& name = lines_[entry->second].tokens[1];
    return {run(entry->second, parameters(entry->second, {}, name)), imports_};
  }

 private:
  /// Reads one expression from the tokens of a line.
  struct Cursor {
    const std::vector<PythonToken>& tokens;
    std::size_t at;
    PythonNames& names;
    int depth = 0;

    bool is(std::string_view mark) const { return at < tokens.size() && tokens[at].is(mark); }
    bool take(std::string_view mark) { return is(mark) && ++at; }
  };

  [[noreturn]] void refuse_at(const PythonToken& token, std::string message, std::string help) const {
    refuse_python(file_, token.line, token.column, std::move(message), std::move(help));
  }

  /// The first line after this one that its block does not have.
  std::size_t end_of_block(std::size_t line) const {
    std::size_t next = line + 1;
    while (next < lines_.size() && lines_[next].indent > lines_[line].indent) ++next;
    return next;
  }

  void read_import(const std::vector<PythonToken>& line) {
    std::string module;
    std::size_t i = 1;
    for (; i < line.size() && !line[i].is("import"); ++i) module += line[i].text;
    for (++i; i < line.size(); ++i) {
      const bool is_renamed = i + 1 < line.size() && line[i].is("as");
      if (line[i].kind == PythonToken::Kind::Name) imports_[line[is_renamed ? ++i : i].text] = module;
    }
  }

  /// Tokens before the "=" of an assignment to a name or an attribute; 0 for other statements.
  static std::size_t target_size(const std::vector<PythonToken>& line) {
    constexpr std::string_view kKeywords[] = {"if", "else", "for", "while", "with", "try", "finally", "lambda", "del"};
    if (std::any_of(std::begin(kKeywords), std::end(kKeywords), [&](auto word) { return line[0].is(word); })) return 0;
    std::size_t i = 0;
    while (i < line.size() && line[i].kind == PythonToken::Kind::Name && i + 2 < line.size() && line[i + 1].is("."))
      i += 2;
    if (i >= line.size() || line[i].kind != PythonToken::Kind::Name) return 0;
    const std::size_t size = ++i;
    if (i < line.size() && line[i].is(":"))
      while (i < line.size() && !line[i].is("=")) ++i;
    return i < line.size() && line[i].is("=") ? size : 0;
  }

  static PythonRef computed(const PythonToken& token) {
    auto value = std::make_shared<PythonValue>();
    value->is_computed = true;
    value->line = token.line, value->column = token.column;
    return value;
  }
  static PythonRef plain(Json json, const PythonToken& token) {
    PythonRef value = computed(token);
    value->is_computed = false, value->plain = std::move(json);
    return value;
  }

  PythonRef find(const std::string& name, const PythonNames& names) const {
    for (const PythonNames* scope : {&names, &globals_})
      if (const auto it = scope->find(name); it != scope->end()) return it->second;
    return nullptr;
  }

  /// Assigns to a name, or to an attribute of an object that the file makes.
  void assign(const std::vector<PythonToken>& line, PythonNames& names) {
    const std::size_t size = target_size(line);
    std::size_t begin = size;
    while (!line[begin].is("=")) ++begin;
    Cursor cursor{line, begin + 1, names};
    PythonRef value = expression(cursor);
    if (cursor.at < line.size()) value = computed(line[begin]);
    if (size == 1) return names[line[0].text] = value, void();
    PythonRef object = find(line[0].text, names);
    for (std::size_t i = 2; object && i + 1 < size; i += 2) {
      PythonRef& field = object->fields[line[i].text];
      if (!field) field = plain(Json(), line[i]);
      object = field;
    }
    if (object) object->fields[line[size - 1].text] = value;
  }

  /// The result of the function that begins at a line.
  PythonRef run(std::size_t line, PythonNames names) {
    const std::size_t end = end_of_block(line);
    for (std::size_t i = line + 1; i < end; i = end_of_block(i)) {
      const std::vector<PythonToken>& tokens = lines_[i].tokens;
      if (tokens[0].is("return")) {
        Cursor cursor{tokens, 1, names};
        PythonRef value = tokens.size() > 1 ? expression(cursor) : plain(Json(), tokens[0]);
        return cursor.at < tokens.size() ? computed(tokens[0]) : value;
      }
      execute(i, names);
    }
    return plain(Json(), lines_[line].tokens[0]);
  }

  void execute(std::size_t line, PythonNames& names) {
    const std::vector<PythonToken>& tokens = lines_[line].tokens;
    const auto begins = [&](std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(), [&](const char* word) { return tokens[0].is(word); });
    };
    const bool is_text = std::all_of(tokens.begin(), tokens.end(),
                                     [](const PythonToken& token) { return token.kind == PythonToken::Kind::String; });
    if (is_text || begins({"pass", "assert", "import", "global"})) return;
    if (tokens[0].is("from")) return read_import(tokens);
    if (begins({"def", "class"}) && tokens.size() > 1) return names[tokens[1].text] = computed(tokens[1]), void();
    if (end_of_block(line) == line + 1 && target_size(tokens) > 0) return assign(tokens, names);
    refuse_at(tokens[0], fmt::format("the configuration is computed here, by '{}'", tokens[0].text),
              "write out what it makes, in assignments");
  }

  /// An expression up to a comma, a closing bracket or the end of the line; what is not literal is computed.
  PythonRef expression(Cursor& c) {
    const std::size_t begin = c.at;
    if (begin >= c.tokens.size()) refuse_at(c.tokens.back(), "this is no Python: a value is missing", "write it");
    PythonRef value = c.depth > kDeepestValue ? nullptr : sum(c);
    const auto is_end = [&] { return c.at >= c.tokens.size() || c.is(",") || c.is(")") || c.is("]") || c.is("}"); };
    if (value && is_end()) return value;
    c.at = begin;
    for (int open = 0; c.at < c.tokens.size() && (open > 0 || !is_end()); ++c.at) {
      open += c.is("(") || c.is("[") || c.is("{");
      open -= c.is(")") || c.is("]") || c.is("}");
    }
    return computed(c.tokens[begin]);
  }

  /// Null where an operand is no number.
  static std::optional<double> number_of(const PythonRef& value) {
    return value && value->plain.is_number() ? std::optional(value->plain.number()) : std::nullopt;
  }
  static PythonRef combine(const PythonRef& left, const PythonRef& right, const PythonToken& mark) {
    const std::optional<double> a = number_of(left), b = number_of(right);
    if (!a || !b) return nullptr;
    const bool whole = left->plain.is_whole() && right->plain.is_whole();
    const double result = mark.is("+")    ? *a + *b
                          : mark.is("-")  ? *a - *b
                          : mark.is("*")  ? *a * *b
                          : mark.is("**") ? std::pow(*a, *b)
                          : *b == 0       ? NAN
                          : mark.is("//") ? std::floor(*a / *b)
                                          : *a / *b;
    if (!std::isfinite(result)) return nullptr;
    const bool is_integer = whole && !mark.is("/") && std::abs(result) < 9e15;
    return plain(is_integer ? Json(static_cast<std::int64_t>(result)) : Json(result), mark);
  }

  PythonRef sum(Cursor& c) {
    PythonRef value = product(c);
    while (value && (c.is("+") || c.is("-"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = combine(value, product(c), mark);
    }
    return value;
  }
  PythonRef product(Cursor& c) {
    PythonRef value = power(c);
    while (value && (c.is("*") || c.is("/") || c.is("//"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = combine(value, power(c), mark);
    }
    return value;
  }
  PythonRef power(Cursor& c) {
    if (c.depth > kDeepestValue) return nullptr;
    ++c.depth;
    const bool is_negative = c.is("-");
    PythonRef value = is_negative ? plain(Json(0), c.tokens[c.at]) : postfix(c);
    if (value && (is_negative || c.is("**"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = combine(value, power(c), mark);
    }
    --c.depth;
    return value;
  }

  /// A name with its attributes and calls, or another operand. Null where it is neither.
  PythonRef postfix(Cursor& c) {
    if (c.at >= c.tokens.size()) return nullptr;
    const PythonToken& first = c.tokens[c.at];
    if (first.kind != PythonToken::Kind::Name || first.is("not") || first.is("lambda") || first.is("await"))
      return atom(c);
    if (const std::optional<Json> constant = constant_of(first)) return ++c.at, plain(*constant, first);
    ++c.at;
    std::string name = first.text;
    PythonRef value = find(name, c.names);
    while (c.is(".") && c.at + 1 < c.tokens.size()) {
      const std::string& attribute = c.tokens[c.at + 1].text;
      c.at += 2;
      name += "." + attribute;
      if (!value) continue;
      const auto field = value->fields.find(attribute);
      value = field == value->fields.end() ? computed(first) : field->second;
    }
    if (c.is("(")) return call_of(name, first, c);
    return value ? value : computed(first);
  }

  static std::optional<Json> constant_of(const PythonToken& token) {
    if (token.is("True")) return Json(true);
    if (token.is("False")) return Json(false);
    if (token.is("None")) return Json();
    return {};
  }

  PythonRef call_of(const std::string& name, const PythonToken& first, Cursor& c) {
    auto object = std::make_shared<PythonValue>();
    object->callee = name, object->line = first.line, object->column = first.column;
    bool is_unpacked = false;
    for (c.take("("); !c.is(")");) {
      is_unpacked = is_unpacked || c.is("*") || c.is("**");
      const bool is_named = c.at + 1 < c.tokens.size() && c.tokens[c.at + 1].is("=");
      const std::string key = is_named ? c.tokens[c.at].text : "";
      if (is_named) c.at += 2;
      PythonRef value = nested(c);
      if (is_named)
        object->fields[key] = value;
      else
        object->values.push_back(value);
      if (!c.take(",") && !c.is(")")) return nullptr;
    }
    c.take(")");
    if (is_unpacked || c.is("(") || c.is(".")) return nullptr;
    const auto function = functions_.find(name);
    if (function == functions_.end()) return object;
    if (++calls_ > kMostCalls || depth_ >= kDeepestCall)
      refuse_at(first, "the functions call each other too often to be followed", "write the configuration out");
    ++depth_;
    PythonRef result = run(function->second, parameters(function->second, *object, first));
    --depth_;
    return result;
  }

  PythonRef nested(Cursor& c) {
    ++c.depth;
    PythonRef value = expression(c);
    --c.depth;
    return value;
  }

  /// The parameters of a function, by the arguments of a call and by their defaults.
  PythonNames parameters(std::size_t line, const PythonValue& call, const PythonToken& caller) {
    PythonNames names;
    const std::vector<PythonToken>& tokens = lines_[line].tokens;
    Cursor c{tokens, 3, globals_};
    for (std::size_t n = 0; c.at < tokens.size() && !c.is(")") && !c.is("*"); ++n) {
      const std::string name = tokens[c.at++].text;
      for (int open = 0; c.at < tokens.size() && (open > 0 || (!c.is("=") && !c.is(",") && !c.is(")"))); ++c.at)
        open += c.is("[") ? 1 : c.is("]") ? -1 : 0;
      PythonRef value = c.take("=") ? nested(c) : computed(caller);
      if (n < call.values.size()) value = call.values[n];
      if (const auto given = call.fields.find(name); given != call.fields.end()) value = given->second;
      names[name] = value;
      c.take(",");
    }
    return names;
  }

  /// A literal, a list or an expression in parentheses.
  PythonRef atom(Cursor& c) {
    const PythonToken& first = c.tokens[c.at];
    if (first.kind == PythonToken::Kind::String) {
      std::string text;
      while (c.at < c.tokens.size() && c.tokens[c.at].kind == PythonToken::Kind::String) text += c.tokens[c.at++].text;
      return plain(Json(std::move(text)), first);
    }
    if (first.kind == PythonToken::Kind::Number) return ++c.at, number(first);
    if (!first.is("[") && !first.is("(")) return nullptr;
    ++c.at;
    const char* const closing = first.is("[") ? "]" : ")";
    PythonRef list = plain(Json(Json::Array{}), first);
    bool has_comma = false;
    while (!c.is(closing)) {
      list->values.push_back(nested(c));
      const bool more = c.take(",");
      has_comma = has_comma || more;
      if (!more && !c.is(closing)) return nullptr;
    }
    ++c.at;
    if (first.is("(") && !has_comma && list->values.size() == 1) return list->values.front();
    Json::Array items;
    for (const PythonRef& value : list->values) {
      list->is_computed = list->is_computed || value->is_computed;
      items.push_back(value->plain);
    }
    list->plain = Json(std::move(items));
    return list;
  }

  static PythonRef number(const PythonToken& token) {
    const char *begin = token.text.data(), *end = begin + token.text.size();
    std::int64_t whole = 0;
    if (const auto [at, error] = std::from_chars(begin, end, whole); error == std::errc{} && at == end)
      return plain(Json(whole), token);
    double value = 0;
    const auto [at, error] = std::from_chars(begin, end, value);
    return error == std::errc{} && at == end ? plain(Json(value), token) : computed(token);
  }

  const std::string& file_;
  std::vector<PythonLine> lines_;
  std::vector<std::string> names_;                ///< Functions, in their order.
  std::map<std::string, std::size_t> functions_;  ///< First lines.
  std::map<std::string, std::string> imports_;
  PythonNames globals_;
  int calls_ = 0, depth_ = 0;
};

}  // namespace

std::vector<std::string> python_functions(const std::string& text, const std::string& file) {
  return PythonInterpreter(text, file).functions();
}

PythonFile read_python(const std::string& text, const std::string& file, const std::string& function) {
  return PythonInterpreter(text, file).call(function);
}

}  // namespace stagecraft
