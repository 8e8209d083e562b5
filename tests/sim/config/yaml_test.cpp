#include <doctest/doctest.h>

#include <filesystem>

#include "sim/config/value.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::yaml_test {
using config::parse_yaml;
using config::Problems;
using config::Value;

namespace {

struct Bad {
  std::string text;
  int line, column;
  std::string path, message, help;
};

Value good(const std::string& text) {
  Problems problems;
  Value value = parse_yaml(text, "t.yaml", problems);
  REQUIRE_MESSAGE(problems.empty(), render(problems.list()));
  return value;
}

}  // namespace

TEST_CASE("every node knows its place in characters") {
  const Value root = good("é: 'x'\nmap:\n  ñ: [a, \"b\"]\n  empty:\nlast: ~\nlist:\n  -\n  - 1\n");
  CHECK(root.at("é").where == Where{"t.yaml", 1, 4});
  CHECK(root.at("é").quoted);
  CHECK(root.at("map").where == Where{"t.yaml", 3, 3});
  CHECK(root.at("map").at("ñ").items[1].where == Where{"t.yaml", 3, 10});
  CHECK(root.at("map").at("ñ").items[1].quoted);
  CHECK_FALSE(root.at("map").at("ñ").items[0].quoted);
  CHECK(root.members[1].where == Where{"t.yaml", 2, 1});
  // An empty value stands at its key, not on the next line.
  CHECK(root.at("map").at("empty").where == Where{"t.yaml", 4, 3});
  CHECK(root.at("map").at("empty").kind == Value::Kind::Null);
  CHECK(root.at("last").where == Where{"t.yaml", 5, 7});
  CHECK(root.at("list").items[0].where == Where{"t.yaml", 7, 3});
  CHECK_THROWS_AS(root.at("none"), InternalError);
}

TEST_CASE("byte order marks, Windows line ends and block texts are read") {
  CHECK(good("\xEF\xBB\xBF"
             "a: 1\r\nb: x\r\n")
            .at("b")
            .text == "x");
  CHECK(good("a: |\n  two\n  lines\n").at("a").text == "two\nlines\n");
  CHECK(good("a: |\n  12\n").at("a").quoted);
  CHECK(good("{\"a\": [1, {\"b\": null}]}").at("a").items[1].at("b").kind == Value::Kind::Null);
}

TEST_CASE("YAML features that we do not support are refused with their place") {
  const std::string reuse = "use base and override";
  const std::vector<Bad> cases{
      {"link:\n  latency: 1\n  latency: 2\n", 3, 3, "link.latency", "'latency' is written twice",
       "it is already on line 2"},
      {"{a: 1, 'a': 2}", 1, 8, "a", "'a' is written twice", "it is already in column 2"},
      {"a: 1\nb:\n  <<: 1\n", 3, 3, "b.<<", "merging with '<<' is not allowed", reuse},
      {"a: [1, &x 2]", 1, 8, "a[1]", "anchors such as '&x' are not allowed", reuse},
      {"b: *x\n", 1, 4, "b", "aliases are not allowed", reuse},
      {"a: !!int 3\n", 1, 4, "a", "tags such as '!!int' are not allowed", reuse},
      {"a: 1\n---\nb: 2\n", 2, 1, "", "a second document starts here; a file holds one",
       "write it to a file of its own"},
      {"- 1\nb: 2\n", 2, 1, "", "a second document starts here; a file holds one",
       "is this line indented like the lines above?"},
      {"? [a]\n: 1\n", 1, 3, "", "a key has to be one word", ""},
      {": 1\n", 1, 1, "", "a key has to be one word", ""},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.text);
    Problems problems;
    parse_yaml(bad.text, "t.yaml", problems);
    REQUIRE(problems.list().size() == 1);
    const Diagnostic& problem = problems.list().front();
    CHECK(problem.where == Where{"t.yaml", bad.line, bad.column});
    CHECK(problem.path == bad.path);
    CHECK(problem.message == bad.message);
    CHECK(problem.help == bad.help);
  }
}

TEST_CASE("an anchor and each of its aliases are reported, and reading goes on") {
  Problems problems;
  const Value root = parse_yaml("a: &x {k: 1}\nb: *x\nb: 2\nc: 3\n", "t.yaml", problems);
  REQUIRE(problems.list().size() == 3);
  CHECK(problems.list()[1].message == "aliases such as '*x' are not allowed");
  CHECK(root.at("b").unreadable);
  CHECK(root.at("c").text == "3");
}

TEST_CASE("syntax errors are worded by us and point at the right place") {
  const std::vector<Bad> cases{
      {"a:\n\tb: 1\n", 2, 1, "", "a tab cannot indent a line", ""},
      {"a:\n  b: 1\n \tc: 2\n", 3, 2, "", "a tab cannot indent a line", ""},
      {"a:\n\t- 1\n", 2, 1, "", "a tab cannot indent a line", ""},
      {"a: [1, 2\nb: 3\n", 1, 4, "", "this '[' is not closed by ']'", ""},
      {"a: {x: 1\n", 1, 4, "", "this '{' is not closed by '}'", ""},
      {"a: b: c\n", 1, 5, "", "a ':' is not expected here", ""},
      {"a: 1\n b: 2\n", 2, 3, "", "a ':' is not expected here", ""},
      {"a: 'x\n", 1, 4, "", "this quote is never closed", ""},
      {"a: 1\nb: \"x\\\"\nc: 2\n", 2, 4, "", "this quote is never closed", ""},
      {"links: [*]\n", 1, 9, "links[0]", "a '*' cannot stand alone here", "put it in quotes: '*'"},
      {"a: @x\n", 1, 4, "", "a value cannot start with this character", ""},
      {"a: \"\\q\"\n", 1, 7, "", "this is no escape in double quotes", ""},
      {"a: \"\\_\"\n", 1, 4, "a", "the escapes \\_ and \\N are not read here", "write \\u00a0 or \\u0085"},
      {"a: [1]]\n", 1, 7, "", "this bracket closes nothing", ""},
      {"a: - 1\n", 1, 4, "", "a '-' of a list is not expected here", ""},
  };
  for (const Bad& bad : cases) {
    CAPTURE(bad.text);
    Problems problems;
    CHECK(parse_yaml(bad.text, "t.yaml", problems).unreadable);
    REQUIRE(problems.list().size() == 1);
    CHECK(problems.list().front().where == Where{"t.yaml", bad.line, bad.column});
    CHECK(problems.list().front().message == bad.message);
  }
}

TEST_CASE("nesting stops at a hundred, and twenty thousand brackets do no harm") {
  CHECK(good(std::string(100, '[') + std::string(100, ']')).is_list());
  for (const std::size_t depth : {std::size_t{101}, std::size_t{20000}}) {
    Problems problems;
    parse_yaml(std::string(depth, '[') + std::string(depth, ']'), "t.yaml", problems);
    REQUIRE(problems.list().size() == 1);
    CHECK(problems.list().front().message == "lists and maps are nested deeper than 100");
    CHECK(problems.list().front().where == Where{"t.yaml", 1, 101});
  }
}

TEST_CASE("brackets that are never closed do no harm either") {
  for (const char* open : {"[", "{", "- ", "? ", "{a: ", "[{"}) {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += open;
    Problems problems;
    CHECK(parse_yaml(text, "t.yaml", problems).unreadable);
    CHECK(problems.list().size() == 1);
  }
}

TEST_CASE("files that are empty, binary or absent are one problem") {
  for (const char* text : {"", "# only a note\n", "---\n"}) {
    Problems problems;
    CHECK(parse_yaml(text, "t.yaml", problems).unreadable);
    REQUIRE(problems.list().size() == 1);
    CHECK(problems.list().front().message == "the file is empty");
  }
  for (const std::string& text :
       {std::string("a: \xFF\n"), std::string("a: \0b", 5), std::string("a: \x04"), std::string("a: \xC3"),
        std::string("\xFF\xFE"
                    "a")}) {
    Problems problems;
    CHECK(parse_yaml(text, "t.yaml", problems).unreadable);
    REQUIRE(problems.list().size() == 1);
    CHECK(problems.list().front().message.starts_with("this is not a text file: byte "));
  }
  Problems problems;
  CHECK(config::parse_yaml_file("no/such/file.yaml", problems).unreadable);
  config::parse_yaml_file(std::filesystem::temp_directory_path(), problems);
  REQUIRE(problems.list().size() == 2);
  CHECK(problems.list()[0].message == "'no/such/file.yaml' cannot be read: No such file or directory");
  CHECK_THROWS_AS(problems.throw_if_any(), InputError);
}

TEST_CASE("many values on one line, after a long indentation, do no harm") {
  std::string text = std::string(100000, ' ') + "[";
  for (int i = 0; i < 100000; ++i) text += "{a: 1},";
  CHECK(good("k:\n" + text + "]").at("k").items.size() == 100000);
}

TEST_CASE("a file with too many values is refused") {
  std::string text = "[";
  for (int i = 0; i < 1000001; ++i) text += "1,";
  Problems problems;
  CHECK(parse_yaml(text + "]", "t.yaml", problems).unreadable);
  REQUIRE(problems.list().size() == 1);
  CHECK(problems.list().front().message == "a file holds at most 1000000 keys and values, and here is one more");
}

TEST_CASE("many empty values on one line do no harm") {
  CHECK(good("k: [" + std::string(500000, ',') + "]").at("k").items.size() == 500000);
}

TEST_CASE("a map of many keys is read in reasonable time") {
  std::string text;
  for (int i = 0; i < 50000; ++i) text += "k" + std::to_string(i) + ": 1\n";
  CHECK(good(text).members.size() == 50000);
}

TEST_CASE("values of JSON know their places, and numbers their digits") {
  Problems problems;
  const Value root =
      config::parse_json("{\n\t\"a\": [1.50, \"2\", null, true],\n\t\"é\": {\"b\": -1e3}\n}\n", "t.json", problems);
  REQUIRE_MESSAGE(problems.empty(), render(problems.list()));
  const Value& list = root.at("a");
  CHECK(list.where == Where{"t.json", 2, 7});
  CHECK(list.items[0].text == "1.50");
  CHECK(list.items[0].where == Where{"t.json", 2, 8});
  CHECK(list.items[1].quoted);
  CHECK_FALSE(list.items[0].quoted);
  CHECK(list.items[2].kind == Value::Kind::Null);
  CHECK(list.items[3].text == "true");
  CHECK(root.at("é").at("b").text == "-1e3");
  CHECK(root.at("é").at("b").where == Where{"t.json", 3, 13});
}

TEST_CASE("JSON that is cut off, repeats a key or is nested too deep is one problem with its place") {
  const auto complaint = [](const std::string& text) {
    Problems problems;
    config::parse_json(text, "t.json", problems);
    REQUIRE(problems.list().size() == 1);
    const Diagnostic& d = problems.list().front();
    return std::to_string(d.where.line) + ":" + std::to_string(d.where.column) + " " + d.path + ": " + d.message;
  };
  CHECK(complaint("{\"a\": [1,\n2") == "2:2 a[2]: the text is cut off");
  CHECK(complaint("{\"a\": 1,\n \"a\": 2}") == "2:2 a: 'a' is written twice");
  CHECK(complaint(std::string(200, '[')) == "1:101 : lists and maps are nested deeper than 100");
  CHECK(complaint("{\"a\": 'x'}") == "1:7 a: this is not JSON");
}

}  // namespace stagecraft::yaml_test
