// A number, or an item alone, in the place of a list.

#include <doctest/doctest.h>

#include "sim/config/fields.hpp"
#include "sim/config/override.hpp"

namespace stagecraft::short_list_test {
namespace {

using config::Problems;
using config::Value;

const config::MapSpec kRackFields{
    "Equal racks.",
    {config::text("name").fallback("r").doc("Their name."), config::integer("slots", 1, 64).doc("Slots of one rack."),
     config::integer("count", 1, 1e5).fallback("1").doc("Number of racks.")}};

const config::MapSpec kRoomFields{
    "A room.",
    {config::list("racks", config::map("rack", kRackFields)).counted_by("count").optional().doc("Groups of racks."),
     config::list("sizes", config::integer("size", 1, 100)).or_alone().optional().doc("Sizes."),
     config::list("doors", config::text("door")).optional().doc("Doors."),
     config::list("lamps", config::map("lamp", kRackFields)).optional().doc("Lamps.")}};

Value parse(const std::string& text) {
  Problems problems;
  Value value = config::parse_yaml(text, "t.yaml", problems);
  problems.throw_if_any();
  return value;
}

std::string texts(const Problems& problems) {
  std::string text;
  for (const Diagnostic& d : problems.list())
    text += (text.empty() ? "" : "\n") + d.path + ": " + d.message + (d.help.empty() ? "" : " [" + d.help + "]");
  return text;
}

std::string checked(const std::string& text) {
  Problems problems;
  const Value room = config::check(parse(text), kRoomFields, "", problems);
  if (!problems.empty()) return texts(problems);
  std::string yaml = config::to_yaml(room, false);
  if (!yaml.empty() && yaml.back() == '\n') yaml.pop_back();
  return yaml;
}

/// The room after an override.
std::string overridden(const std::string& base, const std::string& overrides) {
  Problems problems;
  Value root = parse(base);
  const config::Field room = config::map("room", kRoomFields);
  config::apply_overrides(root, room, parse(overrides), "room.override", problems);
  root = config::check(root, kRoomFields, "room", problems);
  return problems.empty() ? config::to_yaml(root, false) : texts(problems);
}

}  // namespace

TEST_CASE("a number in an override is the number of entries, which keep everything else") {
  const std::string base = "racks:\n  - {name: a, slots: 8, count: 2}\n";
  CHECK(overridden(base, "racks: 32") == overridden("racks:\n  - {name: a, slots: 8, count: 32}\n", "{}"));
  CHECK(overridden(base, "racks: 1e3") == overridden("racks:\n  - {name: a, slots: 8, count: 1e3}\n", "{}"));
  CHECK(overridden("racks: [{slots: 8}]\n", "racks: 4") == overridden("racks: [{slots: 8, count: 4}]\n", "{}"));
  CHECK(overridden("racks: {a: {slots: 8}}\n", "racks: 4") ==
        overridden("racks: [{name: a, slots: 8, count: 4}]\n", "{}"));
}

TEST_CASE("a number for several groups keeps their proportions") {
  const std::string base = "racks:\n  - {name: a, slots: 8, count: 2}\n  - {name: b, slots: 4, count: 6}\n";
  const std::string four = "racks:\n  - {name: a, slots: 8, count: 1}\n  - {name: b, slots: 4, count: 3}\n";
  CHECK(overridden(base, "racks: 4") == overridden(four, "{}"));
  CHECK(overridden(base, "racks: 8") == overridden(base, "{}"));
  CHECK(
      overridden(base, "racks: 6") ==
      "room.override.racks: 6 cannot be shared in the proportions of the 2 entries, which are 1 to 3 [write a multiple "
      "of 4, or the count of each entry, such as racks.a.count: 16]");
  const std::string same_name = "racks: [{slots: 8}, {slots: 4}]\n";
  CHECK(
      overridden(same_name, "racks: 3") ==
      "room.override.racks: 3 cannot be shared in the proportions of the 2 entries, which are 1 to 1 [write a multiple "
      "of 2, or the count of each entry, such as racks[0].count: 16]");
}

TEST_CASE("a number that is no count is refused once, with the range") {
  struct Case {
    const char *number, *complaint;
  };
  const Case cases[] = {
      {"0", "0 is outside 1 to 100000"},
      {"-3", "-3 is outside 1 to 100000"},
      {"2147483648", "2147483648 is outside 1 to 100000"},
      {"1e99", "1e99 is outside 1 to 100000"},
      {"1.5", "'1.5' is not a whole number [write a whole number from 1 to 100000]"},
      {"'32'", "'32' is in quotes, so it is a text [write 32 without quotes]"},
      {"many",
       "a list is needed here, not 'many' [write a whole number from 1 to 100000, or a list of maps, such as [{slots: "
       "...}]]"},
  };
  for (const Case& c : cases) {
    CAPTURE(c.number);
    const std::string racks = std::string("racks: ") + c.number;
    CHECK(checked(racks) == std::string("racks: ") + c.complaint);
    const std::string path = std::string(c.number) == "many" ? "room.racks: " : "room.override.racks: ";
    CHECK(overridden("racks: [{slots: 8}]\n", racks) == path + c.complaint);
  }
}

TEST_CASE("without a list before it, a number is one entry, whose required fields are missing") {
  CHECK(checked("racks: 4") == "racks[0].slots: this field is missing [Slots of one rack.]");
}

TEST_CASE("an item alone is a list of one where the field allows it") {
  CHECK(checked("sizes: 4") == checked("sizes: [4]"));
  CHECK(checked("sizes: 400") == "sizes[0]: 400 is outside 1 to 100");
  CHECK(overridden("sizes: [2, 2]\n", "sizes: 4") == checked("sizes: [4]") + "\n");
}

TEST_CASE("the help for a list that is none is what can be written") {
  CHECK(checked("doors: front") == "doors: a list is needed here, not 'front' [write [front]]");
  CHECK(checked("doors: {a: 1}") == "doors: a list is needed here, not a map");
  CHECK(checked("lamps: 4") == "lamps: a list is needed here, not '4' [write a list of maps, such as [{slots: ...}]]");
}

TEST_CASE("explain and the JSON Schema know both ways to write a list") {
  CHECK(config::type_text(kRoomFields.fields[0]) == "list of maps, or map by name, or whole number from 1 to 100000");
  CHECK(config::type_text(kRoomFields.fields[1]) == "list of whole number from 1 to 100, or one alone");
  const std::string schema = config::json_schema(kRoomFields, "room");
  const Value racks = parse(schema).at("properties").at("racks").at("anyOf");
  REQUIRE(racks.items.size() == 3);
  CHECK(racks.items[0].at("type").text == "array");
  CHECK(racks.items[1].at("type").text == "object");
  CHECK(racks.items[2].at("maximum").text == "100000");
  CHECK(parse(schema).at("properties").at("sizes").at("anyOf").items.size() == 2);
}

}  // namespace stagecraft::short_list_test
