// Short labels of points.

#include <doctest/doctest.h>

#include "sim/sweep/table.hpp"

namespace stagecraft::short_labels_test {
namespace {

std::vector<std::string> labels(const std::vector<std::string>& settings) {
  SweepTable table;
  for (const std::string& s : settings) {
    table.rows.push_back({});
    table.rows.back().label = "as written";
    table.rows.back().settings = s;
  }
  return short_labels(table);
}

}  // namespace

TEST_CASE("short labels of maps have the fields that differ") {
  CHECK(labels({R"({"plan": {"planner": "balanced", "stages": 2}, "run.seed": 1})",
                R"({"plan": {"planner": "balanced", "stages": 4}, "run.seed": 1})"}) ==
        std::vector<std::string>{"plan=2,seed=1", "plan=4,seed=1"});
  CHECK(labels({R"({"cluster": {"generator": "torus", "sizes": [4, 4], "link": {"latency": "1 us"}}})",
                R"({"cluster": {"generator": "star", "link": {"latency": "1 us"}}})", R"({"run.seed": 3})"}) ==
        std::vector<std::string>{"cluster=torus [4, 4]", "cluster=star", "as written"});
  CHECK(labels({R"({"a.link": {"b": 1}, "c.link": {"b": 1}})", R"({"a.link": {"b": 2}, "c.link": {"b": 3}})"}) ==
        std::vector<std::string>{"a.link=1,c.link=1", "a.link=2,c.link=3"});
}

TEST_CASE("labels stay as they are if values are no maps, or short labels would be ambiguous") {
  const std::vector<std::string> same = {"as written", "as written"};
  CHECK(labels({R"({"plan": {"stages": 2}})", R"({"plan": "auto"})"}) == same);
  CHECK(labels({R"({"run.seed": 1})", R"({"run.seed": 2})"}) == same);
  CHECK(labels({R"({"plan": {"a": 1}})", R"({"plan": {"b": 1}})"}) == same);          // Both would be called 1.
  CHECK(labels({R"({"plan": {"a": 1}})", R"({"plan": {"a": 1, "b": 2}})"}) == same);  // One would have no name.
  CHECK(labels({R"({"plan": {"a": 1}})", R"({"plan": {"a": 1}})"}) == same);
}

}  // namespace stagecraft::short_labels_test
