#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::config {

struct Member;

/// A YAML tree that remembers where everything was written. Nothing else in the project knows yaml-cpp.
struct Value {
  enum class Kind { Null, Scalar, List, Map };

  Kind kind = Kind::Null;
  std::string text;     ///< Scalar: the text without quotes.
  bool quoted = false;  ///< Scalar: was written in quotes, so it is never a number.
  Where where;
  std::string origin;           ///< Source of a value that was not written: "default", "computed"; else empty.
  bool unreadable = false;      ///< A stand-in for a value whose problem is already reported; check() adds no other.
  std::vector<Value> items;     ///< List.
  std::vector<Member> members;  ///< Map, in written order; keys are unique.

  bool is_scalar() const { return kind == Kind::Scalar; }
  bool is_list() const { return kind == Kind::List; }
  bool is_map() const { return kind == Kind::Map; }
  const Value* find(std::string_view key) const;  ///< Map member, or nullptr.
  Value* find(std::string_view key);
  const Value& at(std::string_view key) const;  ///< Map member that a check has promised; InternalError if absent.
  bool has(std::string_view key) const { return find(key) != nullptr; }

  static Value scalar(std::string text, Where where, std::string origin = {});
};

struct Member {
  std::string key;
  Where where;  ///< Position of the key; value.where has the position of the value.
  Value value;
};

/// Whether both hold the same data, wherever it comes from.
bool same_content(const Value&, const Value&);

/// Every problem met so far. Reading goes on after a problem with a stand-in value.
class Problems {
 public:
  void add(const Where& where, std::string path, std::string message, std::string help = {}, std::string code = {});
  bool empty() const { return list_.empty(); }
  const std::vector<Diagnostic>& list() const { return list_; }
  void throw_if_any() const;  ///< InputError with all of them.

 private:
  std::vector<Diagnostic> list_;
};

/// Reads YAML text. Refuses duplicate keys, anchors, aliases, tags, `<<`, second documents and nesting over 100.
Value parse_yaml(std::string_view text, const std::string& file, Problems&);
/// Reads a YAML file as parse_yaml() reads text; a missing or binary file is one problem.
Value parse_yaml_file(const std::string& file, Problems&);
/// Reads JSON text, with the same limits; every value knows its place.
Value parse_json(std::string_view text, const std::string& file, Problems&);
/// Writes a tree back as YAML that reads to the same tree; `comments` appends the origin, such as "# default", to
/// values that were not written.
std::string to_yaml(const Value&, bool comments);
/// Writes numbers, true, false and null without quotes where they were written so; each level indents two spaces.
std::string to_json(const Value&);

}  // namespace stagecraft::config
