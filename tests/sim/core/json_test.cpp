#include "sim/core/json.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

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

}  // namespace stagecraft::json_test
