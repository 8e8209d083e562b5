// Changes of a configuration in the words of its framework.

#include <doctest/doctest.h>

#include "sim/interchange/framework_changes.hpp"

namespace stagecraft::framework_changes_test {

TEST_CASE("arguments, TOML and JSON") {
  const std::string arguments = "--tensor-model-parallel-size 4\n--sequence-parallel\n--bf16\n";
  CHECK(framework_changes(arguments, arguments).empty());
  CHECK(framework_changes(arguments, arguments + "--tp-comm-overlap\n") == "--tp-comm-overlap");
  CHECK(framework_changes(arguments, "--tensor-model-parallel-size 2\n--context-parallel-size 2\n--bf16\n") ==
        "--tensor-model-parallel-size 2 --context-parallel-size 2, without --sequence-parallel");
  CHECK(framework_changes("# 0.2.2\n[a]\nx = 1\n[b]\nx = 1\n", "[a]\nx = 1\n[b]\nx = 2\ny = \"z\"\n") ==
        "b.x = 2, b.y = \"z\"");
  CHECK(framework_changes("{\"z\": {\"stage\": 1}, \"a\": 1}", "{\"z\": {\"stage\": 3}, \"a\": 1}") == "z.stage: 3");
}

}  // namespace stagecraft::framework_changes_test
