#include "sim/core/json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sim/core/json_reader.hpp"

namespace stagecraft::json_test {

TEST_CASE("a JSON document is written with its members in order") {
  Json json = JsonObject{{"name", "a \"b\"\n"}, {"count", 3}, {"share", 1.0}, {"small", 1e-7}, {"yes", true}};
  json["list"].push_back(1);
  json["list"].push_back(JsonObject{{"in", Json()}});
  json["none"] = JsonArray();
  json["words"] = std::vector<std::string>{"x", "y"};
  CHECK(json.dump() ==
        R"({"name":"a \"b\"\n","count":3,"share":1.0,"small":1e-07,"yes":true,"list":[1,{"in":null}],"none":[],)"
        R"("words":["x","y"]})");
  CHECK(Json(JsonObject{{"a", JsonArray{1, 2}}, {"b", JsonObject()}}).dump(2) ==
        "{\n  \"a\": [\n    1,\n    2\n  ],\n  \"b\": {}\n}");
}

TEST_CASE("numbers that JSON cannot write are null, and bytes that are not UTF-8 are replaced") {
  CHECK(Json(std::nan("")).dump() == "null");
  CHECK(Json(std::numeric_limits<double>::infinity()).dump() == "null");
  CHECK(Json("\xff").dump() == "\"\xEF\xBF\xBD\"");
}

TEST_CASE("a document that was read is written as it was") {
  const std::string text = R"({"whole":18446744073709551615,"less":-3,"double":0.1,"list":[null,true,"x"],"in":{}})";
  const auto json = Json::parse(text);
  REQUIRE(json);
  CHECK(json->dump() == text);
  CHECK(json->at("less").number() == -3);
  CHECK(json->at("list").items().back().text() == "x");
  CHECK(json->find("missing") == nullptr);
  CHECK(json->at("less") == Json(-3.0));
  CHECK(json->at("less") != Json("-3"));
}

TEST_CASE("a value of another type, or a missing key, is an error with a name") {
  const Json json = JsonObject{{"a", 1}};
  CHECK_THROWS_WITH_AS(json.at("b"), "key 'b' not found", JsonError);
  CHECK_THROWS_WITH_AS(json.at("a").text(), "a value is not a string", JsonError);
  CHECK_THROWS_AS(json.items(), JsonError);
  CHECK_THROWS_AS(json.at("a").at("b"), JsonError);
}

TEST_CASE("text that is not JSON, or nested too deeply, is refused") {
  for (const char* text : {"", "{", "[1,]", "{} {}", "nan"}) CHECK(!Json::parse(text));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  CHECK(!Json::parse(deep));
  CHECK(Json::parse(std::string(100, '[') + std::string(100, ']')));
}

namespace {

/// What a reader passes on, with the text that stands at its place.
struct Recorder : JsonHandler {
  explicit Recorder(std::string_view json) : text(json) {}
  void scalar(Json value, std::size_t begin) override { add(value.dump(), begin); }
  void key(std::string name, std::size_t begin) override { add("key " + name, begin); }
  void open(bool is_object, std::size_t begin) override { add(is_object ? "object" : "list", begin); }
  void close() override { events.push_back("end"); }
  void add(const std::string& event, std::size_t begin) {
    events.push_back(event + "@" + std::string(text.substr(begin, 2)));
  }

  std::string_view text;
  std::vector<std::string> events;
};

std::string refusal(const std::string& text) {
  try {
    parse_json(text);
  } catch (const JsonSyntaxError& error) {
    return with_line(error, text);
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a reader of JSON knows where each value begins") {
  const std::string text = "\xEF\xBB\xBF { \"a\" : 1,\n\"b\":[-2.5 , true,null,\"x\",{}]}\n";
  Recorder recorder(text);
  read_json(text, recorder);
  CHECK(recorder.events == std::vector<std::string>{"object@{ ", "key a@\"a", "1@1,", "key b@\"b", "list@[-", "-2.5@-2",
                                                    "true@tr", "null@nu", "\"x\"@\"x", "object@{}", "end", "end",
                                                    "end"});
}

TEST_CASE("a key that is there twice keeps its place and has the last value") {
  CHECK(parse_json(R"({"a":1,"b":2,"a":3,"c":4,"b":[5]})").dump() == R"({"a":3,"b":[5],"c":4})");
  std::string many = "{", once = "{";
  for (int i = 0; i < 20; ++i) many += "\"k" + std::to_string(i % 10) + "\":" + std::to_string(i) + ",";
  for (int i = 10; i < 20; ++i)
    once += "\"k" + std::to_string(i - 10) + "\":" + std::to_string(i) + (i < 19 ? "," : "}");
  many.back() = '}';
  CHECK(parse_json(many).dump() == once);
}

TEST_CASE("an object of half a million keys is read, and so is one with the same key as often") {
  std::string keys = "{", same = "{";
  for (int i = 0; i < 500'000; ++i) keys += "\"" + std::to_string(i) + "\":0,", same += "\"a\":0,";
  keys.back() = same.back() = '}';
  CHECK(parse_json(keys).members().size() == 500'000);
  CHECK(parse_json(same).members().size() == 1);
}

TEST_CASE("what is wrong with a text has its line") {
  CHECK(refusal("{\n\"a\": 1,\n}") == "line 3: this is not JSON");
  CHECK(refusal("[1,\n2") == "line 2: the text is cut off");
  CHECK(refusal("[1e400]") == "line 1: this number is too large");
  CHECK(refusal(std::string(600, '[')) == "line 1: values are nested deeper than 512");
}

}  // namespace stagecraft::json_test
