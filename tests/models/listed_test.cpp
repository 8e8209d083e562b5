#include <doctest/doctest.h>

#include "tests/support/presets.hpp"

namespace stagecraft::listed_test {
namespace {

ModelGraph make(const std::string& yaml) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "listed");
  return def.build(test::checked(yaml, *def.fields));
}

}  // namespace

TEST_CASE("listed: omitted fields follow from the layer and the layer before") {
  const ModelGraph model = make(
      "layers:\n"
      "  - {name: a, forward: 2 MFLOP, parameters: 5, output: 1 KiB}\n"
      "  - {name: b, forward: 3 MFLOP, output: 2 KiB}\n"
      "  - {name: c, forward: 4 MFLOP, inputs: [a, b], input_gradient: 1 MFLOP, weight_gradient: 0, stash: 7 B, tie: "
      "a}\n"
      "precision: mixed\n");
  REQUIRE(model.layers.size() == 3);
  const Layer &a = model.layers[LayerId{0}], &b = model.layers[LayerId{1}], &c = model.layers[LayerId{2}];
  CHECK(a.inputs.empty());
  CHECK(a.forward.value == 2e6);
  CHECK(a.input_gradient.value == 0);  // No layer needs the gradient of the input data.
  CHECK(a.weight_gradient.value == 2e6);
  CHECK(a.parameters == 5);
  CHECK(a.stash.value == 0);
  CHECK(b.inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(b.input_gradient.value == 3e6);
  CHECK(b.stash.value == 1024);
  CHECK(c.inputs == std::vector<LayerId>{LayerId{0}, LayerId{1}});
  CHECK(c.input_gradient.value == 1e6);
  CHECK(c.weight_gradient.value == 0);
  CHECK(c.stash.value == 7);
  CHECK(a.tie.empty());
  CHECK(c.tie == "a");
  CHECK(model.precision.weight == 2);
}

TEST_CASE("listed: layers may be a map of names, and problems are reported with their place") {
  CHECK(make("layers: {a: {forward: 1 FLOP}, b: {forward: 1 FLOP}}").layers[LayerId{1}].name == "b");
  CHECK(test::input_error_of([] { make("layers: []"); }).find("1: layers: there is no layer") == 0);
  CHECK(test::input_error_of([] {
          make("layers: [{name: a, forward: 1 FLOP}, {name: a, forward: 1 FLOP}]");
        }).find("the name 'a' is taken") != std::string::npos);
  const std::string error = test::input_error_of([] {
    make(
        "layers:\n"
        "  - {name: front, forward: 1 FLOP, inputs: [front]}\n"
        "  - {name: back, forward: 1 FLOP, inputs: [frnt, behind]}\n"
        "  - {name: behind, forward: 1 FLOP}\n");
  });
  CHECK(error.find("2: layers[0].inputs[0]: no layer in front of this one is called 'front'") != std::string::npos);
  CHECK(error.find("3: layers[1].inputs[0]: no layer in front of this one is called 'frnt' [did you mean 'front'?]") !=
        std::string::npos);
  CHECK(error.find("3: layers[1].inputs[1]: no layer in front of this one is called 'behind'") != std::string::npos);
}

TEST_CASE("listed: vgg16 has 15,470 million multiplications forward") {
  // The sum of the layers' figures, each to 0.1 million; 15,470.26 without rounding.
  const ModelGraph model = test::model_of(test::file_tree("models/vgg16.yaml"));
  CHECK(model.forward().value == doctest::Approx(2e6 * 15470.2).epsilon(1e-12));
  CHECK(model.layers.front().output.value == 224 * 224 * 64 * 4);
  CHECK(model.layers.back().output.value == 4000);
}

TEST_CASE("listed: the inside of an attention is a part of its layer") {
  const ModelGraph model =
      make("layers: [{name: a, forward: 9 MFLOP, stash: 7 B, core_forward: 4 MFLOP, core_stash: 5 B}]");
  CHECK(model.layers[LayerId{0}].core.forward.value == 4e6);
  CHECK(model.layers[LayerId{0}].core.stash.value == 5);
  CHECK(model.layers[LayerId{0}].stash.value == 7);
  CHECK(test::input_error_of([] {
          make("layers: [{name: a, forward: 1 MFLOP, stash: 7 B, core_forward: 2 MFLOP, core_stash: 5 B}]");
        }) == "1: layers[0].core_forward: 2 MFLOP is more than the whole forward [it is a part of `forward`]\n");
  CHECK(test::input_error_of([] {
          make("layers: [{name: a, forward: 1 MFLOP, stash: 7 B, core_forward: 1 MFLOP, core_stash: 8 B}]");
        }) == "1: layers[0].core_stash: 8 B is more than the whole stash [it is a part of `stash`]\n");
  for (const char* forward : {"", ", core_forward: 0 FLOP"}) {
    CAPTURE(forward);
    CHECK(test::input_error_of([&] {
            make(std::string("layers: [{name: a, forward: 1 MFLOP, stash: 7 B, core_stash: 5 B") + forward + "}]");
          }) == "1: layers[0]: core_stash without core_forward: memory saved for nothing [give both or neither]\n");
  }
  CHECK(test::input_error_of([] { make("layers: [{name: a, forward: 1 MFLOP, core_forward: 1 MFLOP}]"); }) ==
        "1: layers[0]: core_forward without core_stash: work for no memory saved [give both or neither]\n");
}

}  // namespace stagecraft::listed_test
