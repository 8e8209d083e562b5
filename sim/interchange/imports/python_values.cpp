// Evaluates Python files that say values, such as configurations: assignments, literals and calls.
// torchtitan_python.cpp calls it.

#include "sim/interchange/imports/python_values.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"
#include "sim/interchange/imports/python_changes.hpp"
#include "sim/interchange/imports/python_tokens.hpp"

namespace stagecraft {
namespace {

constexpr int kMostCalls = 1000, kDeepestCall = 20, kDeepestValue = 50, kMostElements = 100'000, kMostObjects = 2000;

int elements_of(const Json& value) {
  int count = 1;
  if (value.is_array())
    for (const Json& item : value.items()) count += elements_of(item);
  return count;
}

class PythonInterpreter {
 public:
  PythonInterpreter(const std::string& text, const std::string& file) : file_(file), lines_(python_lines(text, file)) {
    for (std::size_t i = 0; i < lines_.size(); i = end_of_block(i)) {
      const std::vector<PythonToken>& line = lines_[i].tokens;
      if (!line[0].is("def") || line.size() < 2) continue;
      if (functions_.insert_or_assign(line[1].text, i).second && !line[1].text.starts_with('_'))
        names_.push_back(line[1].text);
    }
    for (std::size_t i = 0; i < lines_.size(); i = end_of_block(i)) {
      const std::vector<PythonToken>& line = lines_[i].tokens;
      if (line[0].is("def")) continue;
      if (line[0].is("from"))
        read_import(line, globals_);
      else if (end_of_block(i) == i + 1 && assignment_target(line) > 0)
        assign(line, globals_);
      else
        for (std::size_t inner = i; inner < end_of_block(i); inner = after_scope(inner))
          pass_over(lines_[inner].tokens);
    }
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
  [[noreturn]] void refuse_at(const PythonToken& token, std::string message, std::string help) const {
    refuse_python(file_, token.line, token.column, std::move(message), std::move(help));
  }

  /// The first line after this one that its block does not have.
  std::size_t end_of_block(std::size_t line) const {
    std::size_t next = line + 1;
    while (next < lines_.size() && lines_[next].indent > lines_[line].indent) ++next;
    return next;
  }

  /// The next line, and after a function or a class, whose names are their own, the first one that it does not have.
  std::size_t after_scope(std::size_t line) const {
    const PythonToken& first = lines_[line].tokens[0];
    return first.is("def") || first.is("class") ? end_of_block(line) : line + 1;
  }

  void read_import(const std::vector<PythonToken>& line, PythonNames& names) {
    std::string module;
    std::size_t i = 1;
    for (; i < line.size() && !line[i].is("import"); ++i) module += line[i].text;
    for (++i; i < line.size(); ++i) {
      const bool is_renamed = i + 2 < line.size() && line[i + 1].is("as");
      if (line[i].kind != PythonToken::Kind::Name) continue;
      const PythonToken& name = line[is_renamed ? i += 2 : i];
      imports_[name.text] = module;
      if (find_name(name.text, names, globals_)) names[name.text] = python_computed(name);
    }
  }

  /// A statement at the top of a file, or in a block there, that is not followed: only running it tells what the names
  /// are that it binds, and the objects that it names.
  void pass_over(const std::vector<PythonToken>& line) {
    if (line[0].is("from")) return read_import(line, globals_);
    const bool is_import = line[0].is("import");
    std::size_t targets = last_assignment(line);
    if (targets == line.size() && !line[0].is("del")) targets = line[0].is("def") || line[0].is("class") ? 2 : 0;
    for (std::size_t i = 0; line[0].is("for") && i < line.size() && !line[i].is("in"); ++i) targets = i + 1;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string& name = line[i].text;
      if (line[i].kind != PythonToken::Kind::Name || (i > 0 && line[i - 1].is("."))) continue;
      const PythonRef value = find_name(name, globals_, globals_);
      if (value && (!value->callee.empty() || value->plain.is_array())) value->is_computed = true;
      const bool is_bound = is_import ? value != nullptr : i < targets || (i > 0 && line[i - 1].is("as"));
      if (is_bound) functions_.erase(name), std::erase(names_, name), globals_[name] = python_computed(line[i]);
    }
  }

  /// Assigns to a name, or to an attribute of an object that the file makes.
  void assign(const std::vector<PythonToken>& line, PythonNames& names) {
    const std::size_t size = assignment_target(line);
    std::size_t begin = size;
    while (!line[begin].is("=")) ++begin;
    PythonCursor cursor{line, begin + 1, names, globals_};
    PythonRef value = expression(cursor);
    if (cursor.at < line.size()) value = python_computed(line[begin]);
    if (size == 1) return names[line[0].text] = value, void();
    PythonRef object = find_name(line[0].text, names, globals_);
    for (std::size_t i = 2; object && i + 1 < size; i += 2) object = attribute(*object, line[i]);
    if (!object || !has_attributes(*object))
      refuse_at(line[0], "only running the file tells what this object is, and whether others have it too",
                "assign to attributes of objects that this file makes");
    PythonRef& field = object->fields[line[size - 1].text];
    if (field != value) field = without_attribute(value);
  }

  /// Objects within objects are freed by recursion.
  void count_object(const PythonToken& at) {
    if (++objects_ > kMostObjects)
      refuse_at(at, fmt::format("the file makes more than {} objects", kMostObjects), "write the configuration out");
  }
  /// An attribute that the file did not assign is what its object has there.
  PythonRef attribute(PythonValue& object, const PythonToken& name) {
    if (!has_attributes(object)) return python_computed(name);
    PythonRef& field = object.fields[name.text];
    if (!field) count_object(name), field = python_computed(name), field->is_attribute = true;
    return field;
  }
  /// The result of the function that begins at a line.
  PythonRef run(std::size_t line, PythonNames names) {
    const std::size_t end = end_of_block(line);
    for (std::size_t i = line + 1; i < end; i = end_of_block(i)) {
      const std::vector<PythonToken>& tokens = lines_[i].tokens;
      if (tokens[0].is("return")) {
        PythonCursor cursor{tokens, 1, names, globals_};
        PythonRef value = tokens.size() > 1 ? expression(cursor) : python_literal(Json(), tokens[0]);
        return cursor.at < tokens.size() ? python_computed(tokens[0]) : value;
      }
      execute(i, names);
    }
    return python_literal(Json(), lines_[line].tokens[0]);
  }

  void execute(std::size_t line, PythonNames& names) {
    const std::vector<PythonToken>& tokens = lines_[line].tokens;
    const auto begins = [&](std::initializer_list<const char*> words) {
      return std::any_of(words.begin(), words.end(), [&](const char* word) { return tokens[0].is(word); });
    };
    const bool is_text = std::all_of(tokens.begin(), tokens.end(),
                                     [](const PythonToken& token) { return token.kind == PythonToken::Kind::String; });
    if (is_text || begins({"pass", "assert", "import"})) return;
    if (tokens[0].is("from")) return read_import(tokens, names);
    if (begins({"def", "class"}) && tokens.size() > 1)
      return names[tokens[1].text] = python_computed(tokens[1]), void();
    if (end_of_block(line) == line + 1 && assignment_target(tokens) > 0) return assign(tokens, names);
    refuse_at(tokens[0], fmt::format("the configuration is computed here, by '{}'", tokens[0].text),
              "write out what it makes, in assignments");
  }

  /// An expression up to a comma, a closing bracket or the end of the line; what is not literal is computed.
  PythonRef expression(PythonCursor& c) {
    const std::size_t begin = c.at;
    if (begin >= c.tokens.size()) refuse_at(c.tokens.back(), "this is no Python: a value is missing", "write it");
    PythonRef value = c.depth > kDeepestValue ? nullptr : sum(c);
    const auto is_end = [&] { return c.at >= c.tokens.size() || c.is(",") || c.is(")") || c.is("]") || c.is("}"); };
    if (value && is_end()) return value;
    const std::size_t stop = c.at;
    c.at = begin;
    bool has_call = false;
    for (int open = 0; c.at < c.tokens.size() && (open > 0 || !is_end()); ++c.at) {
      open += c.is("(") || c.is("[") || c.is("{");
      open -= c.is(")") || c.is("]") || c.is("}");
      has_call = has_call || c.is("(");
    }
    if (has_call) refuse_objects(file_, c, stop);
    return python_computed(c.tokens[begin]);
  }

  PythonRef sum(PythonCursor& c) {
    PythonRef value = product(c);
    while (value && (c.is("+") || c.is("-"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = python_arithmetic(value, product(c), mark);
    }
    return value;
  }
  PythonRef product(PythonCursor& c) {
    PythonRef value = power(c);
    while (value && (c.is("*") || c.is("/") || c.is("//"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = python_arithmetic(value, power(c), mark);
    }
    return value;
  }
  PythonRef power(PythonCursor& c) {
    if (c.depth > kDeepestValue) return nullptr;
    ++c.depth;
    const bool is_negative = c.is("-");
    PythonRef value = is_negative ? python_literal(Json(0), c.tokens[c.at]) : postfix(c);
    if (value && (is_negative || c.is("**"))) {
      const PythonToken& mark = c.tokens[c.at++];
      value = python_arithmetic(value, power(c), mark);
    }
    --c.depth;
    return value;
  }

  /// A name with its attributes and calls, or another operand. Null where it is neither.
  PythonRef postfix(PythonCursor& c) {
    if (c.at >= c.tokens.size()) return nullptr;
    const PythonToken& first = c.tokens[c.at];
    if (first.kind != PythonToken::Kind::Name || first.is("not") || first.is("lambda") || first.is("await"))
      return atom(c);
    if (const std::optional<Json> constant = python_constant(first)) return ++c.at, python_literal(*constant, first);
    ++c.at;
    std::string name = first.text;
    PythonRef value = c.find(name);
    while (c.is(".") && c.at + 1 < c.tokens.size()) {
      name += "." + c.tokens[c.at + 1].text;
      if (value) value = attribute(*value, c.tokens[c.at + 1]);
      c.at += 2;
    }
    if (c.is("(")) return call_of(name, first, c);
    return value ? value : python_computed(first);
  }

  PythonRef call_of(const std::string& name, const PythonToken& first, PythonCursor& c) {
    const PythonRef owner = name == first.text ? nullptr : c.find(first.text);
    if (owner && (has_attributes(*owner) || owner->plain.is_array()))
      refuse_change(file_, first, fmt::format("'{}()'", name));
    const bool is_followed = functions_.contains(name) || changes_nothing(name);
    const std::size_t open = c.at;
    auto object = std::make_shared<PythonValue>();
    object->callee = name, object->line = first.line, object->column = first.column;
    bool is_unpacked = false;
    for (c.take("("); !c.is(")");) {
      is_unpacked = is_unpacked || c.is("*") || c.is("**");
      const bool is_named = c.at + 1 < c.tokens.size() && c.tokens[c.at + 1].is("=");
      const std::string key = is_named ? c.tokens[c.at].text : "";
      if (is_named) c.at += 2;
      const std::size_t begin = c.at;
      PythonRef value = nested(c);
      if (!is_followed) check_argument(file_, name, c, begin, *value);
      if (is_named && !object->fields.emplace(key, value).second)
        refuse_at(first, fmt::format("this is no Python: '{}' is given twice", key), "correct the file");
      if (!is_named) object->values.push_back(value);
      if (!c.take(",") && !c.is(")")) return nullptr;
    }
    c.take(")");
    if (is_unpacked && !changes_nothing(name)) refuse_objects(file_, c, open);
    if (is_unpacked || c.is("(") || c.is(".")) return nullptr;
    if (c.find(first.text)) return nullptr;  // The file itself assigned it.
    const auto function = functions_.find(name);
    if (function == functions_.end()) {
      count_object(first);
      for (PythonRef& value : object->values) value = without_attribute(value);
      for (auto& [key, value] : object->fields) value = without_attribute(value);
      return object;
    }
    if (++calls_ > kMostCalls || depth_ >= kDeepestCall)
      refuse_at(first, "the functions call each other too often to be followed", "write the configuration out");
    ++depth_;
    PythonRef result = run(function->second, parameters(function->second, *object, first));
    --depth_;
    return result;
  }

  PythonRef nested(PythonCursor& c) {
    ++c.depth;
    PythonRef value = expression(c);
    --c.depth;
    return value;
  }

  /// The parameters of a function, by the arguments of a call and by their defaults. InputError where they do not fit.
  PythonNames parameters(std::size_t line, const PythonValue& call, const PythonToken& caller) {
    PythonNames names;
    const std::vector<PythonToken>& tokens = lines_[line].tokens;
    PythonCursor c{tokens, 3, globals_, globals_};
    std::size_t places = 0, named = 0;
    bool is_keyword = false, takes_all = false, takes_names = false;
    for (; c.at < tokens.size() && !c.is(")"); c.take(",")) {
      if (c.take("/")) continue;
      const bool is_rest = c.take("*"), is_names = !is_rest && c.take("**");
      is_keyword = is_keyword || is_rest;
      if (is_rest && c.is(",")) continue;
      const PythonToken& name = tokens[c.at++];
      for (int open = 0; c.at < tokens.size() && (open > 0 || (!c.is("=") && !c.is(",") && !c.is(")"))); ++c.at)
        open += c.is("[") ? 1 : c.is("]") ? -1 : 0;
      PythonRef value = c.take("=") ? nested(c) : nullptr;
      takes_all = takes_all || is_rest, takes_names = takes_names || is_names;
      const auto given = call.fields.find(name.text);
      const bool has_place = !is_keyword && !is_names && places < call.values.size();
      if (is_rest || is_names)
        value = python_computed(caller);
      else if (given != call.fields.end() && !has_place)
        value = given->second, ++named;
      else if (has_place)
        value = call.values[places++];
      if (!value)
        refuse_at(caller, fmt::format("'{}' needs a value for '{}'", tokens[1].text, name.text), "give it one");
      names[name.text] = value;
    }
    if ((places < call.values.size() && !takes_all) || (named < call.fields.size() && !takes_names))
      refuse_at(caller, fmt::format("'{}' does not take these values", tokens[1].text),
                "values that its parameters have");
    return names;
  }

  /// A literal, a list or an expression in parentheses.
  PythonRef atom(PythonCursor& c) {
    const PythonToken& first = c.tokens[c.at];
    if (first.kind == PythonToken::Kind::String) {
      std::string text;
      while (c.at < c.tokens.size() && c.tokens[c.at].kind == PythonToken::Kind::String) text += c.tokens[c.at++].text;
      return python_literal(Json(std::move(text)), first);
    }
    if (first.kind == PythonToken::Kind::Number) return ++c.at, python_number(first);
    if (!first.is("[") && !first.is("(")) return nullptr;
    ++c.at;
    const char* const closing = first.is("[") ? "]" : ")";
    PythonRef list = python_literal(Json(Json::Array{}), first);
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
      elements_ += elements_of(value->plain);
      if (elements_ > kMostElements)
        refuse_at(first, fmt::format("the lists of the file have more than {} elements", kMostElements),
                  "write the configuration out");
      list->is_computed = list->is_computed || value->is_computed;
      items.push_back(value->plain);
    }
    list->plain = Json(std::move(items));
    return list;
  }

  const std::string& file_;
  std::vector<PythonLine> lines_;
  std::vector<std::string> names_;                ///< Functions, in their order.
  std::map<std::string, std::size_t> functions_;  ///< First lines.
  std::map<std::string, std::string> imports_;
  PythonNames globals_;
  int calls_ = 0, depth_ = 0, objects_ = 0, elements_ = 0;  ///< Elements are counted in each list that has them.
};

}  // namespace

std::vector<std::string> python_functions(const std::string& text, const std::string& file) {
  return PythonInterpreter(text, file).functions();
}

PythonFile read_python(const std::string& text, const std::string& file, const std::string& function) {
  return PythonInterpreter(text, file).call(function);
}

}  // namespace stagecraft
