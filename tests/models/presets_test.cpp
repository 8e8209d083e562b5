// Every file of models/ reads, builds and has the number of parameters that it expects.

#include <doctest/doctest.h>

#include <filesystem>

#include "tests/support/presets.hpp"

using namespace stagecraft;

TEST_CASE("every model preset has the parameters that it expects") {
  int seen = 0;
  const std::filesystem::path root = "models";  // Tests run in the root of the project.
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    const config::Value tree = test::file_tree(entry.path().string());
    CHECK(tree.at("schema").text == "model/1");
    const ModelGraph model = test::model_of(tree);
    CHECK(model.parameters() == config::as_real(tree.at("expect").at("parameters")));
    ++seen;
  }
  CHECK(seen >= 20);
}
