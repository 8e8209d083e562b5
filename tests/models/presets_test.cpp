// Every file of models/ reads, builds and has the number of parameters that it expects.

#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "tests/support/presets.hpp"

namespace stagecraft::presets_test {

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
  CHECK(seen >= 35);
}

namespace {

/// What papers and model cards print, with the last digit that they give. Some round, some cut.
struct Published {
  const char* preset;
  double parameters, last_digit;
  double active = 0, active_digit = 0;
};

constexpr double kBillion = 1e9;

const Published kPublished[] = {
    {"llama-2-7b", 6.74, 0.01},
    {"llama-2-13b", 13.0, 0.1},
    {"llama-2-70b", 69.0, 0.1},
    {"llama-3-8b", 8.03, 0.01},
    {"llama-3-70b", 70.6, 0.1},
    {"llama-3-405b", 405.9, 0.1},
    {"mistral-7b", 7.24, 0.01},
    {"mixtral-8x7b", 46.7, 0.1, 12.9, 0.1},
    {"qwen3-32b", 32.8, 0.1},
    {"qwen3-30b-a3b", 30.5, 0.1, 3.3, 0.1},
    {"qwen3-235b-a22b", 235, 1, 22, 1},
    {"deepseek-v2", 236, 1, 21, 1},
    {"deepseek-v3", 671, 1, 37, 1},
    {"kimi-k2", 1030, 10, 32, 1},
    {"gpt-oss-120b", 116.8, 0.1, 5.1, 0.1},
    {"gpt-13b", 13, 1},
    {"gpt-175b", 175, 1},
};

}  // namespace

TEST_CASE("parameters and active parameters equal the published figures to their last digit") {
  for (const Published& p : kPublished) {
    CAPTURE(p.preset);
    const config::Value tree = test::file_tree("models/" + std::string(p.preset) + ".yaml");
    const ModelGraph model = test::model_of(tree);
    CHECK(std::abs(model.parameters() / kBillion - p.parameters) < p.last_digit);
    const config::Value& expect = tree.at("expect");
    const bool embedding = expect.has("active_embedding") && config::as_bool(expect.at("active_embedding"));
    CHECK(expect.has("active_parameters") == (p.active > 0));
    if (p.active > 0)
      CHECK(std::abs(active_parameters(model, embedding) / kBillion - p.active) < p.active_digit);
    else
      CHECK(active_parameters(model, true) == model.parameters());
  }
}

// README_WEIGHTS of DeepSeek-V3: 11.5 B parameters that are not shared; embedding and scores are.
TEST_CASE("the module of DeepSeek-V3 for the token after next adds 11.5 billion parameters") {
  config::Value tree = test::file_tree("models/deepseek-v3.yaml");
  const double without = test::model_of(tree).parameters();
  tree.members.push_back({"next_tokens", {}, config::Value::scalar("1", {})});
  CHECK((test::model_of(tree).parameters() - without) / kBillion == doctest::Approx(11.5).epsilon(0.01));
}

}  // namespace stagecraft::presets_test
