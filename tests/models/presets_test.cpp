// Every file of models/ reads, builds and has the number of parameters that it expects.

#include <doctest/doctest.h>

#include <filesystem>

#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

using namespace stagecraft;

TEST_CASE("every model preset has the parameters that it expects") {
  int seen = 0;
  const auto root = std::filesystem::path(__FILE__).parent_path().parent_path().parent_path() / "models";
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    config::Problems problems;
    const config::Value tree = config::parse_yaml_file(entry.path().string(), problems);
    problems.throw_if_any();
    CHECK(tree.at("schema").text == "model/1");
    const ModelBuilder& def = get_from(model_builders::all(), "builder", tree.at("builder").text);
    const config::Value own = test::without(tree, {"schema", "title", "builder", "expect"});
    const config::Value map = config::check(own, *def.fields, "", problems);
    problems.throw_if_any();
    const ModelGraph model = def.build(map);
    CHECK(model.parameters() == config::as_real(tree.at("expect").at("parameters")));
    ++seen;
  }
  CHECK(seen >= 12);
}
