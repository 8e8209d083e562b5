// Layer by layer against amounts that were worked out apart from this program.

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

#include "sim/core/text.hpp"
#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

using namespace stagecraft;

namespace {

double number(const std::string& text) { return std::stod(text); }

std::string names(const ModelGraph& model, const Layer& layer) {
  std::vector<std::string> inputs;
  for (LayerId id : layer.inputs) inputs.push_back(model.layers[static_cast<std::size_t>(id)].name);
  return join(inputs, ";");
}

void compare(const std::string& file, const std::string& builder, const std::string& yaml) {
  const std::string folder = test::reference_data();
  if (folder.empty()) return;
  const ModelBuilder& def = get_from(model_builders::all(), "builder", builder);
  const ModelGraph model = def.build(test::checked(yaml, *def.fields));
  std::vector<std::string> lines = split(read_file(folder + "/graphpipe/models/" + file + ".csv"), '\n');
  if (trim(lines.back()).empty()) lines.pop_back();
  REQUIRE(lines.size() == model.layers.size() + 1);
  const double bytes = model.precision.activation;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    const std::vector<std::string> row = split(trim(lines[i + 1]), ',');
    CAPTURE(file);
    CAPTURE(layer.name);
    REQUIRE(row.size() == 11);
    CHECK(layer.name == row[1]);
    CHECK(layer.type == row[2]);
    CHECK(names(model, layer) == row[3]);
    CHECK(layer.output.value / bytes == number(row[5]));
    CHECK(layer.parameters == number(row[6]));
    CHECK(layer.forward.value == number(row[7]));
    CHECK(layer.input_gradient.value + layer.weight_gradient.value == number(row[8]));
    CHECK(layer.stash.value / bytes == number(row[9]));
    CHECK(layer.tie == row[10]);
    if (layer.parameters > 0 && layer.type != "embedding") CHECK(layer.input_gradient == layer.weight_gradient);
  }
}

std::string gpt(int layers, int hidden, int heads, int sequence) {
  return "{kind: gpt, layers: " + std::to_string(layers) + ", hidden: " + std::to_string(hidden) +
         ", heads: " + std::to_string(heads) + ", sequence: " + std::to_string(sequence) +
         ", vocabulary: 50257, precision: mixed}";
}

}  // namespace

TEST_CASE("transformers equal the reference layer by layer") {
  compare("gpt2_small", "transformer", gpt(12, 768, 12, 1024));
  compare("gpt2_medium", "transformer", gpt(24, 1024, 16, 1024));
  compare("gpt2_xl", "transformer", gpt(48, 1600, 25, 1024));
  compare("gpt3_1p3b", "transformer", gpt(24, 2048, 32, 2048));
  compare("gpt3_6p7b", "transformer", gpt(32, 4096, 32, 2048));
  compare("bert_base", "transformer",
          "{kind: bert, layers: 12, hidden: 768, heads: 12, sequence: 512, vocabulary: 30522}");
  compare("bert_large", "transformer",
          "{kind: bert, layers: 24, hidden: 1024, heads: 16, sequence: 512, vocabulary: 30522}");
  compare("vit_b16", "transformer", "{kind: vit, layers: 12, hidden: 768, heads: 12}");
  compare("vit_l16", "transformer", "{kind: vit, layers: 24, hidden: 1024, heads: 16}");
}

TEST_CASE("the multi-modal transformer equals the reference layer by layer") {
  compare("mmt4x8", "multi_branch", "{branches: 4, layers: 8, hidden: 1024, heads: 16, sequence: 256}");
  compare("mmt2x8", "multi_branch", "{branches: 2, layers: 8, hidden: 1024, heads: 16, sequence: 256}");
  compare("mmt2x4_case", "multi_branch", "{branches: 2, layers: 4, hidden: 1024, heads: 16, sequence: 256}");
}
