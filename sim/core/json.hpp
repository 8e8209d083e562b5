#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace stagecraft {

struct JsonMember;

/// The document lacks what is read from it.
struct JsonError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A JSON document as a value. Members of an object keep their order. No header includes the library
/// that parses and prints numbers and strings, because its header takes seconds to compile.
class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<JsonMember>;

  Json();  ///< null
  template <class Number>
  requires std::is_arithmetic_v<Number> Json(Number);
  Json(std::string);
  Json(std::string_view);
  Json(const char*);
  Json(Array);
  Json(Object);
  template <class T>
  Json(const std::vector<T>& values);

  /// Nothing where the text is not JSON or holds too much; parse_json() of json_reader.hpp says why.
  static std::optional<Json> parse(std::string_view text);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_number() const { return is_whole() || std::holds_alternative<double>(value_); }
  bool is_whole() const;  ///< An integer, written without a decimal point.
  bool is_object() const { return std::holds_alternative<Object>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }

  /// These throw JsonError where the value has another type.
  double number() const;
  const std::string& text() const;
  const Array& items() const;
  const Object& members() const;
  const Json& at(std::string_view key) const;

  /// Null where this is not an object or has no such member.
  const Json* find(std::string_view key) const;

  /// The member of an object, which is added where it is missing. Null becomes an object.
  Json& operator[](std::string_view key);
  /// Appends to an array. Null becomes an array.
  void push_back(Json item);

  /// Numbers are equal by value, whatever their type; objects where their members are equal in the same order.
  bool operator==(const Json&) const;

  /// On one line, or with each level indented. Bytes that are not UTF-8 are replaced; what is not finite is null.
  std::string dump(std::optional<int> indent = {}) const;

 private:
  void write(std::string& out, std::optional<int> indent, int depth) const;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, Array, Object> value_;
};

struct JsonMember {
  std::string key;
  Json value;

  bool operator==(const JsonMember&) const = default;
};

// Here and in json.cpp, where JsonMember is complete.
template <class Number>
requires std::is_arithmetic_v<Number> Json::Json(Number value) {
  if constexpr (std::is_same_v<Number, bool>)
    value_ = value;
  else if constexpr (std::is_floating_point_v<Number>)
    value_ = double{value};
  else if constexpr (std::is_signed_v<Number>)
    value_ = std::int64_t{value};
  else
    value_ = std::uint64_t{value};
}

template <class T>
Json::Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}

using JsonArray = Json::Array;
using JsonObject = Json::Object;

}  // namespace stagecraft
