#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/json.hpp"

namespace stagecraft {

/// Receives the values of a JSON text in the order in which they are written. `begin` is the offset of the first byte.
class JsonHandler {
 public:
  virtual ~JsonHandler() = default;
  virtual void scalar(Json value, std::size_t begin) = 0;
  virtual void key(std::string name, std::size_t begin) = 0;
  virtual void open(bool is_object, std::size_t begin) = 0;
  virtual void close() = 0;
};

/// The text is not JSON, or it holds more than its reader keeps.
struct JsonSyntaxError : std::runtime_error {
  JsonSyntaxError(const std::string& message, std::size_t place) : std::runtime_error(message), offset(place) {}
  std::size_t offset;  ///< The byte at which reading ended.
};

/// What is wrong, after the number of its line: "line 3: this is not JSON".
std::string with_line(const JsonSyntaxError&, std::string_view text);

/// Passes each value of the text to the handler and keeps none, so that memory is what the handler keeps. This is the
/// only reader of JSON; JsonSyntaxError where the text is not JSON.
void read_json(std::string_view text, JsonHandler&);

/// Json::parse() with the reason: JsonSyntaxError where the text is not JSON, is nested deeper than 512, or has more
/// than sixteen million keys and values.
Json parse_json(std::string_view text);

/// Builds a Json from what a reader of JSON passes on. Of equal keys in an object the last value counts.
class JsonBuilder : public JsonHandler {
 public:
  void scalar(Json value, std::size_t begin) override;
  void key(std::string name, std::size_t begin) override;
  void open(bool is_object, std::size_t begin) override;
  void close() override;

  bool complete() const { return complete_; }  ///< Whether a whole value is there to take.
  Json take();                                 ///< The builder is then ready for another value.

 private:
  struct OpenValue {
    bool is_object;
    Json::Array items;
    Json::Object members;
  };
  void count(std::size_t begin);
  void put(Json value);

  std::vector<OpenValue> open_;
  Json root_;
  bool complete_ = false;
  std::size_t values_ = 0;  ///< Keys and values of the value that is built.
};

}  // namespace stagecraft
