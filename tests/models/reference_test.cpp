// Layers compared with amounts that were computed outside this program.

#include <doctest/doctest.h>

#include "tests/support/presets.hpp"
#include "tests/support/reference.hpp"

namespace stagecraft::reference_test {
namespace {

std::string names(const IdVector<LayerId, std::string>& layer_names, const Layer& layer) {
  std::vector<std::string> inputs;
  for (LayerId id : layer.inputs) inputs.push_back(layer_names[id]);
  return join(inputs, ";");
}

enum class Names { Equal, Own };

void compare(const std::string& file, const ModelGraph& model, Names name) {
  std::vector<test::ReferenceRow> rows = test::reference_rows("layer_graphs.csv");
  std::erase_if(rows, [&](const test::ReferenceRow& row) { return row.text("model") != file; });
  REQUIRE(rows.size() == model.layers.size());
  IdVector<LayerId, std::string> layer_names;
  for (const test::ReferenceRow& row : rows) layer_names.push_back(row.text("name"));
  const double bytes = model.precision.activation;
  for (const LayerId i : model.layers.ids()) {
    const Layer& layer = model.layers[i];
    const test::ReferenceRow& row = rows[i.value];
    CAPTURE(layer.name);
    CAPTURE(row.line);
    if (name == Names::Equal) CHECK(layer.name == row.text("name"));
    CHECK(layer.type == row.text("type"));
    CHECK(names(layer_names, layer) == row.text("inputs"));
    CHECK(layer.output.value / bytes == row.number("output"));
    CHECK(layer.parameters == row.number("parameters"));
    CHECK(layer.forward.value == row.number("forward"));
    CHECK(layer.input_gradient.value + layer.weight_gradient.value == row.number("backward"));
    CHECK(layer.stash.value / bytes == row.number("stash"));
    CHECK(layer.tie == row.text("tie"));
    if (layer.parameters > 0 && !layer.type.starts_with("embedding"))
      CHECK(layer.input_gradient == layer.weight_gradient);
  }
}

void compare(const std::string& file, const std::string& builder, const std::string& yaml) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", builder);
  compare(file, def.build(test::checked(yaml, *def.fields)), Names::Equal);
}

/// Compares a preset of models/ whose layer names differ from the reference's.
void compare_preset(const std::string& file, const std::string& preset) {
  compare(file, test::model_of(test::file_tree("models/" + preset + ".yaml")), Names::Own);
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
  compare_preset("bert48", "bert-48");
  compare("vit_b16", "transformer", "{kind: vit, layers: 12, hidden: 768, heads: 12}");
  compare("vit_l16", "transformer", "{kind: vit, layers: 24, hidden: 1024, heads: 16}");
}

TEST_CASE("the multi-modal transformer equals the reference layer by layer") {
  compare("mmt4x8", "multi_branch", "{branches: 4, layers: 8, hidden: 1024, heads: 16, sequence: 256}");
  compare("mmt2x8", "multi_branch", "{branches: 2, layers: 8, hidden: 1024, heads: 16, sequence: 256}");
  compare("mmt2x4_case", "multi_branch", "{branches: 2, layers: 4, hidden: 1024, heads: 16, sequence: 256}");
}

TEST_CASE("branches of dense layers and embeddings equal the reference layer by layer") {
  compare_preset("dlrm_gpp", "dlrm");
  compare_preset("candle_uno_gpp", "candle-uno");
  compare_preset("candle_uno_flexflow", "candle-uno-flexflow");
}

TEST_CASE("convolutional networks equal the reference layer by layer") {
  compare_preset("resnet50", "resnet50");
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "convnet");
  compare("vgg16",
          def.build(test::checked("layers:\n"
                                  "  - {conv: 64, repeat: 2}\n  - {pool: max, kernel: 2, stride: 2}\n"
                                  "  - {conv: 128, repeat: 2}\n  - {pool: max, kernel: 2, stride: 2}\n"
                                  "  - {conv: 256, repeat: 3}\n  - {pool: max, kernel: 2, stride: 2}\n"
                                  "  - {conv: 512, repeat: 3}\n  - {pool: max, kernel: 2, stride: 2}\n"
                                  "  - {conv: 512, repeat: 3}\n  - {pool: max, kernel: 2, stride: 2}\n"
                                  "  - {dense: 4096}\n  - {dense: 4096}\n  - {dense: 1000}\n",
                                  *def.fields)),
          Names::Own);
}

TEST_CASE("GNMT equals the reference layer by layer") {
  compare_preset("gnmt8", "gnmt-8");
  compare_preset("gnmt16", "gnmt-16");
}

}  // namespace stagecraft::reference_test
