// JSON values: look-ups by key, equality, and printing.

#include "sim/core/json.hpp"

#include <algorithm>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "sim/core/json_reader.hpp"

namespace stagecraft {
namespace {

template <class Scalar>
std::string scalar_text(const Scalar& value) {
  return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

template <class T, class Variant>
const T& get_or_throw(const Variant& value, const char* type) {
  if (const T* alternative = std::get_if<T>(&value)) return *alternative;
  throw JsonError(fmt::format("a value is not {}", type));
}

}  // namespace

Json::Json() = default;
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::string_view value) : value_(std::string(value)) {}
Json::Json(const char* value) : value_(std::string(value)) {}
Json::Json(Array value) : value_(std::move(value)) {}
Json::Json(Object value) : value_(std::move(value)) {}

std::optional<Json> Json::parse(std::string_view text) try { return parse_json(text); } catch (const JsonSyntaxError&) {
  return {};
}

bool Json::is_whole() const {
  return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<std::uint64_t>(value_);
}

double Json::number() const {
  if (const auto* whole = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*whole);
  if (const auto* whole = std::get_if<std::uint64_t>(&value_)) return static_cast<double>(*whole);
  return get_or_throw<double>(value_, "a number");
}

const std::string& Json::text() const { return get_or_throw<std::string>(value_, "a string"); }
const JsonArray& Json::items() const { return get_or_throw<Array>(value_, "an array"); }
const JsonObject& Json::members() const { return get_or_throw<Object>(value_, "an object"); }

const Json& Json::at(std::string_view key) const {
  members();
  if (const Json* member = find(key)) return *member;
  throw JsonError(fmt::format("key '{}' not found", key));
}

const Json* Json::find(std::string_view key) const {
  const auto* object = std::get_if<Object>(&value_);
  if (!object) return nullptr;
  const auto it = std::find_if(object->begin(), object->end(), [&](const JsonMember& m) { return m.key == key; });
  return it == object->end() ? nullptr : &it->value;
}

Json& Json::operator[](std::string_view key) {
  if (is_null()) value_ = Object{};
  members();
  if (const Json* member = find(key)) return const_cast<Json&>(*member);
  auto& object = std::get<Object>(value_);
  object.push_back({std::string(key), {}});
  return object.back().value;
}

void Json::push_back(Json item) {
  if (is_null()) value_ = Array{};
  items();
  std::get<Array>(value_).push_back(std::move(item));
}

bool Json::operator==(const Json& other) const {
  if (is_number() && other.is_number() && value_.index() != other.value_.index()) return number() == other.number();
  return value_ == other.value_;
}

std::string Json::dump(std::optional<int> indent) const {
  std::string out;
  write(out, indent, 0);
  return out;
}

void Json::write(std::string& out, std::optional<int> indent, int depth) const {
  const auto new_line = [&](int level) {
    if (indent) out.append(1, '\n').append(level * *indent, ' ');
  };
  const auto list = [&](char open, char close, const auto& entries, auto&& write_entry) {
    out += open;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (i > 0) out += ',';
      new_line(depth + 1);
      write_entry(entries[i]);
    }
    if (!entries.empty()) new_line(depth);
    out += close;
  };
  if (is_array()) {
    list('[', ']', items(), [&](const Json& item) { item.write(out, indent, depth + 1); });
  } else if (is_object()) {
    list('{', '}', members(), [&](const JsonMember& member) {
      out += scalar_text(member.key) + (indent ? ": " : ":");
      member.value.write(out, indent, depth + 1);
    });
  } else {
    std::visit(
        [&]<class T>(const T& value) {
          if constexpr (std::is_same_v<T, std::monostate>)
            out += "null";
          else if constexpr (!std::is_same_v<T, Array> && !std::is_same_v<T, Object>)
            out += scalar_text(value);
        },
        value_);
  }
}

}  // namespace stagecraft
