#include "sim/config/value.hpp"

#include <doctest/doctest.h>

#include "sim/core/random.hpp"

namespace stagecraft::value_test {
using config::Problems;
using config::Value;

namespace {

Value parse(const std::string& text) {
  Problems problems;
  Value value = config::parse_yaml(text, "t.yaml", problems);
  REQUIRE_MESSAGE(problems.empty(), text << '\n' << render(problems.list()));
  return value;
}

bool same(const Value& a, const Value& b) {
  if (a.kind != b.kind || a.text != b.text || a.quoted != b.quoted) return false;
  if (a.items.size() != b.items.size() || a.members.size() != b.members.size()) return false;
  for (std::size_t i = 0; i < a.items.size(); ++i)
    if (!same(a.items[i], b.items[i])) return false;
  for (std::size_t i = 0; i < a.members.size(); ++i)
    if (a.members[i].key != b.members[i].key || !same(a.members[i].value, b.members[i].value)) return false;
  return true;
}

Value random_tree(Rng& random, int depth) {
  static const std::vector<std::string> texts{
      "1f1b", "25 GB/s", "a: b", "a #b", "- x",        "-1",    "null", "~",   "",     " x",   "x:",    "[a]",
      "a, b", "{",       "'q'",  "\"",   "two\nlines", "\\n\t", "é",    "---", "...x", "?",    "? x",   ":x",
      "yes",  "<<x",     "*a",   "&a",   "!t",         "%d",    "@m",   "`",   "a]",   "\x01", "10:20", "\xEF\xBB\xBF"};
  Value value;
  const int kind = depth > 3 ? 3 : random.integer(0, 5);
  if (kind == 0) return value;
  if (kind == 1 || kind == 2) {
    value.kind = kind == 1 ? Value::Kind::List : Value::Kind::Map;
    for (int i = random.integer(0, 3); i > 0; --i) {
      Value inner = random_tree(random, depth + 1);
      if (kind == 1) value.items.push_back(inner);
      if (kind == 2) value.members.push_back({texts[i] + std::to_string(i), {}, inner});
    }
    return value;
  }
  value = Value::scalar(texts[random.integer(0, static_cast<int>(texts.size()) - 1)], {});
  value.quoted = random.integer(0, 1) == 1;
  return value;
}

// What had to be quoted comes back quoted; from then on nothing changes.
Value quoted_where_needed(Value value) {
  if (value.is_scalar() && !value.quoted) value.quoted = config::to_yaml(value, false).starts_with('"');
  for (Value& item : value.items) item = quoted_where_needed(item);
  for (config::Member& member : value.members) member.value = quoted_where_needed(member.value);
  return value;
}

}  // namespace

TEST_CASE("a tree is written as people write it") {
  const std::string text =
      "schema: scenario/2\n"
      "run:\n"
      "  schedule: 1f1b\n"
      "  sizes: [1, 2, \"3\"]\n"
      "links:\n"
      "  - name: a\n"
      "    latency: 2 us\n"
      "  - name: b\n"
      "none: {}\n"
      "empty: []\n"
      "nothing: null\n";
  CHECK(config::to_yaml(parse(text), false) == text);
}

TEST_CASE("values that are not from the file carry a note of their origin") {
  Value value = parse("a: 1\nb:\n  c: 2\n");
  value.members[0].value.origin = "default";
  value.members[1].value.origin = "computed";
  CHECK(config::to_yaml(value, true) == "a: 1  # default\nb:  # computed\n  c: 2\n");
  CHECK(config::to_yaml(value, false) == "a: 1\nb:\n  c: 2\n");
}

TEST_CASE("random trees read back the same") {
  Rng random(7, "value_test");
  for (int round = 0; round < 3000; ++round) {
    Value tree;
    tree.kind = Value::Kind::Map;
    tree.members.push_back({"root", {}, random_tree(random, 0)});
    tree.members.push_back({"list", {}, random_tree(random, 0)});
    const std::string text = config::to_yaml(tree, round % 2 == 0);
    CAPTURE(text);
    const Value once = parse(text);
    // Inside a flow list more texts need quotes than outside, so the second reading is the fixed point.
    CHECK(config::to_yaml(parse(config::to_yaml(once, false)), false) == config::to_yaml(once, false));
    CHECK(same(parse(config::to_yaml(once, false)), once));
    CHECK(config::to_json(quoted_where_needed(once)) == config::to_json(once));
  }
}

TEST_CASE("JSON keeps numbers and booleans, and nothing else, without quotes") {
  const Value value =
      parse("{a: 1, b: +1.5e3, c: .5, d: '1', e: 010, f: true, g: yes, h: ~, i: [], j: {}, k: \"\\u0001\\\"\"}");
  CHECK(config::to_json(value) ==
        "{\n  \"a\": 1,\n  \"b\": 1.5e3,\n  \"c\": 0.5,\n  \"d\": \"1\",\n  \"e\": \"010\",\n  \"f\": true,\n"
        "  \"g\": \"yes\",\n  \"h\": null,\n  \"i\": [],\n  \"j\": {},\n  \"k\": \"\\u0001\\\"\"\n}");
  CHECK(config::to_json(parse("[[1], 5.]")) == "[\n  [\n    1\n  ],\n  5.0\n]");
}

}  // namespace stagecraft::value_test
