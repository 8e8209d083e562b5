#include <doctest/doctest.h>

#include <regex>

#include "toy.hpp"

namespace stagecraft::schema_test {
using config::Problems;
using config::Value;

namespace {

// JSON is YAML, so our own reader opens the schema.
Value schema_of(const config::MapSpec& spec) {
  Problems problems;
  Value schema = config::parse_yaml(config::json_schema(spec, "toy"), "schema.json", problems);
  REQUIRE_MESSAGE(problems.empty(), render(problems.list()));
  return schema;
}

}  // namespace

TEST_CASE("the schema holds what the table says") {
  const Value schema = schema_of(toy::root);
  CHECK(schema.at("$schema").text == "https://json-schema.org/draft/2020-12/schema");
  CHECK(config::to_yaml(schema.at("required"), false) == "[\"run\", \"cluster\"]\n");
  CHECK(schema.at("additionalProperties").text == "false");
  CHECK(schema.at("patternProperties").has("^x-"));
  const Value& run = schema.at("properties").at("run").at("properties");
  CHECK(run.at("micro_batches").at("maximum").text == "65536");
  CHECK(run.at("micro_batches").at("description").text == "Micro-batches in one batch.");
  CHECK(run.at("micro_batch_size").at("default").text == "1");
  CHECK_FALSE(run.at("seed").has("maximum"));
  CHECK(run.at("overlap").at("type").text == "boolean");
}

TEST_CASE("a variant is a word or one of several maps") {
  const Value schedule = schema_of(toy::root).at("properties").at("run").at("properties").at("schedule");
  const Value ways = schedule.at("oneOf");
  REQUIRE(ways.items.size() == 5);
  CHECK(config::to_yaml(ways.items[0].at("enum"), false) == "[\"gpipe\", \"1f1b\", \"interleaved\", \"csv\"]\n");
  CHECK(config::to_yaml(ways.items[3].at("required"), false) == "[\"name\", \"chunks\"]\n");
  CHECK(ways.items[4].at("anyOf").items.size() == 2);
}

TEST_CASE("named items do not need the name again") {
  const Value links = schema_of(toy::root).at("properties").at("cluster").at("properties").at("links").at("anyOf");
  CHECK(config::to_yaml(links.items[0].at("items").at("required"), false) == "[\"name\", \"bandwidth\"]\n");
  CHECK(config::to_yaml(links.items[1].at("additionalProperties").at("required"), false) == "[\"bandwidth\"]\n");
}

TEST_CASE("the pattern of a quantity accepts what the reader accepts") {
  const Value schema = schema_of(toy::root);
  CHECK(schema.at("properties").at("run").at("properties").at("timeout").at("$ref").text == "#/$defs/time");
  const std::regex pattern(schema.at("$defs").at("time").at("anyOf").items[1].at("pattern").text);
  for (const char* text : {"10 s", "10s", "1.5 ms", ".5 us", "1e-3 ns", "0 s", "+2 s", "5. s", "010 s", "10", "10 sec",
                           "-1 s", "1  s", "1e s", ". s", "s", "1 m"}) {
    CAPTURE(text);
    std::string why;
    CHECK(std::regex_match(text, pattern) == config::parse_quantity(config::Dimension::Time, text, why).has_value());
  }
}

TEST_CASE("a recursive table has a finite schema and reference") {
  static config::MapSpec tree{"A tree.", {}};
  tree.fields = {config::text("name"), config::list("children", config::map("", tree)).fallback("[]")};
  const Value schema = schema_of(tree);
  CHECK(schema.at("properties").at("children").at("anyOf").items[0].at("items").at("$ref").text == "#/$defs/map");
  CHECK(schema.at("$defs").at("map").at("properties").has("children"));
  CHECK(config::reference(tree, "Tree").find("children") != std::string::npos);
}

}  // namespace stagecraft::schema_test
