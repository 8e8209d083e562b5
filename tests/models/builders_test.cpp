#include <doctest/doctest.h>

#include <cmath>

#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::builders_test {
namespace {

ModelGraph make(const std::string& builder, const std::string& yaml) {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", builder);
  return def.build(test::checked(yaml, *def.fields));
}

}  // namespace

TEST_CASE("every builder has a description and documents its fields") {
  test::check_documented(model_builders::catalog());
}

TEST_CASE("mlp: parameters and flops equal those by hand") {
  const ModelGraph model = make("mlp", "{widths: [3, 5, 2]}");
  REQUIRE(model.layers.size() == 4);
  CHECK(model.parameters() == 3 * 5 + 5 + 5 * 2 + 2);
  CHECK(model.layers[LayerId{1}].forward.value == 30);
  CHECK(model.layers[LayerId{1}].input_gradient.value == 30);
  CHECK(model.layers[LayerId{1}].weight_gradient.value == 30);
  CHECK(model.layers[LayerId{1}].stash.value == 12);
  CHECK(model.layers[LayerId{2}].output.value == 8);
  CHECK(model.layers[LayerId{0}].forward.value == 0);
  CHECK(test::input_error_of([] { make("mlp", "{widths: [3]}"); }).find("fewer than two widths") != std::string::npos);
}

TEST_CASE("uniform: a chain divides its backward into halves") {
  const ModelGraph model = make("uniform", "{layers: 3, forward: 1 ms, backward: 2 ms, output: 1 MB, stash: 2 MB}");
  REQUIRE(model.layers.size() == 3);
  CHECK(model.layers[LayerId{2}].inputs == std::vector<LayerId>{LayerId{1}});
  REQUIRE(model.layers[LayerId{0}].times);
  CHECK(model.layers[LayerId{0}].times->forward.value == doctest::Approx(1e-3));
  CHECK(model.layers[LayerId{0}].times->input_gradient.value == doctest::Approx(1e-3));
  CHECK(model.layers[LayerId{0}].times->weight_gradient.value == doctest::Approx(1e-3));
  CHECK(model.layers[LayerId{0}].output.value == 1e6);
  CHECK(model.layers[LayerId{0}].stash.value == 2e6);
}

TEST_CASE("uniform: branches may have a join or none") {
  const std::string times = "forward: 1 ms, input_gradient: 1 ms, weight_gradient: 3 ms";
  const ModelGraph joined = make("uniform", "{layers: 2, branches: 3, " + times + "}");
  REQUIRE(joined.layers.size() == 7);
  CHECK(joined.layers.back().name == "join");
  CHECK(joined.layers.back().inputs == std::vector<LayerId>{LayerId{1}, LayerId{3}, LayerId{5}});
  CHECK(joined.layers.back().times->weight_gradient.value == doctest::Approx(3e-3));
  CHECK(make("uniform", "{layers: 2, branches: 3, join: none, " + times + "}").layers.size() == 6);
}

TEST_CASE("uniform: backward must be given exactly once") {
  CHECK(test::input_error_of([] { make("uniform", "{layers: 2, forward: 1 ms}"); }).find("not clear") !=
        std::string::npos);
  CHECK(test::input_error_of([] {
          make("uniform", "{layers: 2, forward: 1 ms, backward: 2 ms, weight_gradient: 1 ms}");
        }).find("not clear") != std::string::npos);
}

TEST_CASE("transformer: missing fields and sizes that do not divide are reported") {
  const std::string missing =
      test::input_error_of([] { make("transformer", "{kind: gpt, layers: 2, hidden: 10, heads: 3}"); });
  CHECK(missing.find("'sequence' is missing") != std::string::npos);
  CHECK(missing.find("'vocabulary' is missing") != std::string::npos);
  CHECK(missing.find("3 heads do not divide a width of 10") != std::string::npos);
  CHECK(test::input_error_of([] {
          make("transformer", "{kind: vit, layers: 2, hidden: 8, heads: 2, patch: 15}");
        }).find("does not divide an image of 224") != std::string::npos);
}

// Korthikanti et al., MLSys 2023, equations 1 to 4 and table 2, in bytes of s h for a micro-batch of one sample, here
// of all t GPUs of a group together; section 5 has the savings of selective recomputation as 70 % and 65 %.
TEST_CASE("transformer: activations with tensor and sequence parallelism follow the paper") {
  struct Network {
    double h, a, saved;
  };
  constexpr double s = 2048, t = 8;
  for (const Network n : {Network{12288, 96, 0.70}, Network{20480, 128, 0.65}}) {
    const auto units = [&](const std::string& more) {
      const ModelGraph model =
          make("transformer",
               "{kind: gpt, layers: 1, sequence: 2048, vocabulary: 8, precision: mixed, attention_dropout: "
               "true, hidden: " +
                   std::to_string(int(n.h)) + ", heads: " + std::to_string(int(n.a)) + more + "}");
      return model.layers[LayerId{2}].stash.value / (s * n.h);
    };
    const double attention = 5 * n.a * s / n.h;  // 80 and 64, as in the paper.
    const std::string group = ", tensor_parallel: 8", shared = ", sequence_parallel: true";
    CHECK(units("") == doctest::Approx(34 + attention));
    CHECK(units(group) == doctest::Approx(t * (10 + 24 / t + attention / t)));
    CHECK(units(group + shared) == doctest::Approx(34 + attention));
    CHECK(units(group + ", flash_attention: true") == doctest::Approx(t * (10 + 24 / t)));
    CHECK(units(group + shared + ", flash_attention: true") == doctest::Approx(34));
    CHECK(std::round(100 * (1 - 34 / units(""))) == 100 * n.saved);
  }
}

TEST_CASE("transformer: flash attention keeps no probabilities, mixed precision halves the bytes") {
  const std::string shape = "layers: 1, hidden: 8, heads: 2, sequence: 4, vocabulary: 10";
  const ModelGraph plain = make("transformer", "{" + shape + "}");
  const ModelGraph flash = make("transformer", "{" + shape + ", flash_attention: true}");
  const ModelGraph mixed = make("transformer", "{" + shape + ", precision: mixed}");
  CHECK(plain.layers[LayerId{2}].stash.value - flash.layers[LayerId{2}].stash.value == 4 * 2 * 4 * 4);
  CHECK(plain.layers[LayerId{2}].stash.value == 2 * mixed.layers[LayerId{2}].stash.value);
  CHECK(mixed.precision.weight + mixed.precision.gradient + mixed.precision.optimizer == 16);
}

TEST_CASE("branched_mlp: layers and parameters equal those by hand") {
  const ModelGraph model =
      make("branched_mlp",
           "{dense: {a: {count: 2, input: 3, widths: [5]}}, bags: {w: {words: 7, width: 4, bag: 2}}, top: [1]}");
  REQUIRE(model.layers.size() == 2 * 2 + 2 + 3);
  CHECK(model.parameters() == 2 * (3 * 5 + 5) + 7 * 4 + (2 * 5 + 2 * 4) + 1);
  const Layer& join = model.layers[LayerId{6}];
  CHECK(join.inputs == std::vector<LayerId>{LayerId{1}, LayerId{3}, LayerId{5}});
  CHECK(join.output.value == 4 * (2 * 5 + 2 * 4));
  CHECK(model.layers[LayerId{0}].name == "a0.in");
  CHECK(model.layers[LayerId{5}].name == "w.emb");
  CHECK(model.layers[LayerId{5}].operations.empty());
}

TEST_CASE("branched_mlp: problems are reported with their place") {
  const auto wrong = [](const std::string& yaml) { return test::input_error_of([&] { make("branched_mlp", yaml); }); };
  CHECK(wrong("{top: [1]}").find("the model has no branch [give some under") != std::string::npos);
  CHECK(wrong("{dense: {a: {input: 1}}, top: []}").find("top: there is no layer after") != std::string::npos);
  CHECK(wrong("dense: [{name: a, count: 2, input: 1}]\nbags: [{name: a1, words: 1, width: 1, bag: 1}]\ntop: [1]\n")
            .find("2: bags: two branches are called 'a1'") != std::string::npos);
  CHECK(wrong("{bags: {a: {count: 2, words: 1, width: 1e6, bag: 1e6}}, top: [1]}").find("wider than") !=
        std::string::npos);
}

TEST_CASE("convnet: shapes and flops equal those by hand") {
  const ModelGraph model = make("convnet",
                                "{image: 7, channels: 2, layers: [{conv: 3, stride: 2, repeat: 2}, {pool: max, kernel: "
                                "2, stride: 3}, {pool: mean}, {dense: 5}]}");
  REQUIRE(model.layers.size() == 7);
  CHECK(model.layers[LayerId{1}].output.value == 4 * (4 * 4 * 3));  // 7 over 2, rounded up.
  CHECK(model.layers[LayerId{1}].forward.value == 2 * 9 * 2 * 3 * 4 * 4);
  CHECK(model.layers[LayerId{2}].output.value == 4 * (4 * 4 * 3));  // Only the first convolution strides.
  CHECK(model.layers[LayerId{3}].output.value == 4 * (2 * 2 * 3));
  CHECK(model.layers[LayerId{3}].forward.value == 4 * 2 * 2 * 3);
  CHECK(model.layers[LayerId{4}].output.value == 4 * 3);
  CHECK(model.layers[LayerId{4}].forward.value == 2 * 2 * 3);
  CHECK(model.parameters() == (9 * 2 * 3 + 3) + (9 * 3 * 3 + 3) + (3 * 5 + 5));
}

TEST_CASE("convnet: a block has its own shortcut only if the shape changes") {
  const auto layers = [](const std::string& list) {
    return make("convnet", "{image: 8, channels: 4, batch_norm: true, layers: [" + list + "]}").layers.size();
  };
  CHECK(layers("{bottleneck: 1}") == 2 + 4);
  CHECK(layers("{bottleneck: 1, stride: 2}") == 2 + 5);
  CHECK(layers("{bottleneck: 2, repeat: 3}") == 2 + 5 + 4 + 4);
  CHECK(test::input_error_of([&] { layers(""); }).find("layers: there is no layer") != std::string::npos);
  CHECK(test::input_error_of([&] { layers("{conv: 3, kernal: 5}"); }).find("layers[0].kernal") != std::string::npos);
  CHECK(test::input_error_of([&] { layers("{pool: mean, stride: 2}"); }).find("takes no step") != std::string::npos);
}

TEST_CASE("lstm: two layers have no sum around them; one is refused") {
  const ModelGraph model = make("lstm", "{layers: 2, hidden: 3, vocabulary: 5, sequence: 7}");
  REQUIRE(model.layers.size() == 2 + 2 + 2 + 1 + 2 + 2);
  const double narrow = 4 * 3 * 6 + 24, wide = 4 * 3 * 9 + 24;  // The first reads both ways.
  CHECK(model.parameters() == 5 * 3 + 2 * narrow + wide + narrow + wide + (2 * 9 + 7) + (3 * 5 + 5));
  CHECK(test::input_error_of([] {
          make("lstm", "{layers: 1, hidden: 3, vocabulary: 5, sequence: 7}");
        }).find("layers") != std::string::npos);
}

}  // namespace stagecraft::builders_test
