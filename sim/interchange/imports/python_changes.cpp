// Refuses what may change an object of a Python file without a trace in its text.

#include "sim/interchange/imports/python_changes.hpp"

#include <cctype>

#include <fmt/core.h>

namespace stagecraft {

PythonRef find_name(const std::string& name, const PythonNames& names, const PythonNames& globals) {
  for (const PythonNames* scope : {&names, &globals})
    if (const auto it = scope->find(name); it != scope->end()) return it->second;
  return nullptr;
}

bool has_attributes(const PythonValue& value) {
  constexpr std::string_view kPlain = " abs bool decoder_vocab_size float int isinstance len round str sum ";
  const bool is_plain = kPlain.find(' ' + value.callee + ' ') != std::string_view::npos;
  return value.is_attribute || (!value.is_computed && !value.callee.empty() && !is_plain);
}

bool changes_nothing(const std::string& name) {
  constexpr std::string_view kReaders =
      " abs asdict bool cast copy decoder_vocab_size deepcopy dict float getattr int isinstance len list max min "
      "model_registry print range replace round set sorted str sum tuple type ";
  const std::string last = name.substr(name.rfind('.') + 1);
  const std::size_t letter = last.find_first_not_of('_');
  return letter == std::string::npos || std::isupper(static_cast<unsigned char>(last[letter])) != 0 ||
         kReaders.find(' ' + last + ' ') != std::string_view::npos;
}

void refuse_change(const std::string& file, const PythonToken& at, const std::string& what) {
  refuse_python(file, at.line, at.column,
                fmt::format("{} may change this object, and only running the file tells how", what),
                "write out what it assigns, or have the function in this file");
}

void refuse_objects(const std::string& file, const PythonCursor& c, std::size_t from) {
  for (std::size_t i = from; i < c.at; ++i) {
    const bool is_attribute = i > 0 && c.tokens[i - 1].is(".");
    const bool is_keyword = i + 1 < c.tokens.size() && c.tokens[i + 1].is("=");
    if (c.tokens[i].kind != PythonToken::Kind::Name || is_attribute || is_keyword) continue;
    const PythonRef value = c.find(c.tokens[i].text);
    if (value && has_attributes(*value)) refuse_change(file, c.tokens[i], "what is computed here");
  }
}

void check_argument(const std::string& file, const std::string& function, const PythonCursor& c, std::size_t begin,
                    const PythonValue& value) {
  const bool is_named = begin < c.tokens.size() && c.tokens[begin].kind == PythonToken::Kind::Name &&
                        c.find(c.tokens[begin].text) != nullptr;
  const bool is_section = c.at - begin <= 3;  // config.training; config.training.steps may be a value.
  if (is_named && is_section && has_attributes(value))
    refuse_change(file, c.tokens[begin], fmt::format("'{}', which is not in this file,", function));
  const bool is_list = begin < c.tokens.size() && (c.tokens[begin].is("[") || c.tokens[begin].is("{"));
  if (is_list) refuse_objects(file, c, begin);
}

}  // namespace stagecraft
