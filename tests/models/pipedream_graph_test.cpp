#include <doctest/doctest.h>

#include "models/pipedream_graph.hpp"
#include "sim/model/builder.hpp"
#include "tests/support/checked.hpp"

namespace stagecraft::pipedream_graph_test {
namespace {

const std::string kGraph =
    "node3 -- LSTM(2048, 1024) -- forward_compute_time=3.0, backward_compute_time=6.0, activation_size=[600.0; 40.0], "
    "parameter_size=80.000\n"
    "node1 -- Input0 -- forward_compute_time=99.000, backward_compute_time=0.000, activation_size=0.0, "
    "parameter_size=0.000\n"
    "node2 -- Embedding(7, 9) -- forward_compute_time=1.000, backward_compute_time=2.000, activation_size=800.000, "
    "parameter_size=400.000\n"
    "node4 -- __getitem__(1) -- forward_compute_time=0.000, backward_compute_time=0.000, activation_size=8.000, "
    "parameter_size=0.000\n"
    "node5 -- ReLU(inplace) -- forward_compute_time=0.500, backward_compute_time=0.250, activation_size=8.000, "
    "parameter_size=0.000 -- stage_id=1\n"
    "\tnode1 -- node2\n\tnode2 -- node3\n\tnode3 -- node4\n\tnode3 -- node5\n";

std::string problem_of(const std::string& text) {
  return test::input_error_of([&] { read_pipedream_graph(text, "graph.txt", 1); });
}

}  // namespace

TEST_CASE("graph.txt: layers have the amounts of one sample, without inputs and unread parts of tuples") {
  const ModelGraph model = read_pipedream_graph(kGraph, "graph.txt", 2);
  REQUIRE(model.layers.size() == 3);
  const Layer &embedding = model.layers[LayerId{0}], &lstm = model.layers[LayerId{1}], &relu = model.layers[LayerId{2}];
  CHECK(embedding.name == "node2");
  CHECK(embedding.inputs.empty());
  CHECK(embedding.times->forward.value == 0.0005);
  CHECK(embedding.times->input_gradient.value == 0);
  CHECK(embedding.times->weight_gradient.value == 0.001);
  CHECK(embedding.parameters == 100);
  CHECK(embedding.output.value == 400);
  CHECK(lstm.inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(lstm.times->input_gradient.value == 0.0015);
  CHECK(lstm.times->weight_gradient.value == 0.0015);
  CHECK(lstm.output.value == 320);
  CHECK(lstm.stash.value == 400);
  CHECK(relu.times->input_gradient.value == 0.000125);
  CHECK(relu.times->weight_gradient.value == 0);
}

TEST_CASE("graph.txt: the model file reads back to the same model") {
  ModelGraph model = read_pipedream_graph(kGraph, "graph.txt", 3);
  model.layers[LayerId{0}].name = "a, \"b\": [c\\";
  model.layers[LayerId{1}].name = "null";
  config::Problems problems;
  const config::Value tree = config::parse_yaml(timed_model_yaml(model, "By hand"), "model.yaml", problems);
  problems.throw_if_any();
  CHECK(tree.at("schema").text == "model/1");
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", tree.at("builder").text);
  const config::Value map =
      config::check(test::without(tree, {"schema", "title", "builder"}), *def.fields, "", problems);
  problems.throw_if_any();
  const ModelGraph again = def.build(map);
  REQUIRE(again.layers.size() == model.layers.size());
  for (const LayerId l : model.layers.ids()) {
    const Layer &a = model.layers[l], &b = again.layers[l];
    CHECK(a.name == b.name);
    CHECK(a.inputs == b.inputs);
    CHECK(a.times->forward == b.times->forward);
    CHECK(a.times->input_gradient == b.times->input_gradient);
    CHECK(a.times->weight_gradient == b.times->weight_gradient);
    CHECK(a.output == b.output);
    CHECK(a.stash == b.stash);
    CHECK(a.parameters == b.parameters);
  }
}

TEST_CASE("graph.txt: problems are reported with their line") {
  CHECK(problem_of("").find("there is no layer") != std::string::npos);
  CHECK(problem_of("node\x01").find("byte 5 is not UTF-8 text") != std::string::npos);  // no YAML holds it as it is
  CHECK(problem_of("node\xff").find("byte 5 is not UTF-8 text") != std::string::npos);
  CHECK(problem_of("node1 -- ReLU\n").find("1: : a layer is a name") == 0);
  CHECK(problem_of(kGraph + "\tnode5 -- node9\n").find("10: : no layer is called 'node9'") == 0);
  CHECK(problem_of(kGraph + "\tnode5 -- node3\n").find("circle") != std::string::npos);
  CHECK(problem_of(kGraph + kGraph).find("two layers 'node3'") != std::string::npos);
  CHECK(problem_of("n -- x -- forward_compute_time=a, backward_compute_time=0, activation_size=0, parameter_size=0\n")
            .find("is not a number") != std::string::npos);
  CHECK(
      problem_of("n -- x -- forward_compute_time=1, backward_compute_time=0, activation_size=0, parameter_size=5e15\n")
          .find("5000000000000000 bytes of parameters are more than 4000000000000000") != std::string::npos);
  CHECK(problem_of("n -- x -- forward_compute_time=1, activation_size=0, parameter_size=0\n")
            .find("no backward_compute_time=") != std::string::npos);
  CHECK(problem_of("n -- Input -- forward_compute_time=1, backward_compute_time=0, activation_size=0, "
                   "parameter_size=0\n")
            .find("inputs only") != std::string::npos);
}

TEST_CASE("timed: inputs are given by name, or are the layer before") {
  const ModelBuilder& def = get_from(model_builders::catalog(), "builder", "timed");
  const auto make = [&](const std::string& yaml) { return def.build(test::checked(yaml, *def.fields)); };
  const ModelGraph model = make("layers: [{name: a, inputs: [], forward: 2 ms}, {name: b, inputs: [a], forward: 1 s}]");
  CHECK(model.layers[LayerId{0}].times->forward.value == 0.002);
  CHECK(model.layers[LayerId{1}].inputs == std::vector<LayerId>{LayerId{0}});
  const ModelGraph chain = make("layers: [{name: a, forward: 2 ms}, {name: b, forward: 1 s}]");
  CHECK(chain.layers[LayerId{0}].inputs.empty());
  CHECK(chain.layers[LayerId{1}].inputs == std::vector<LayerId>{LayerId{0}});
  CHECK(test::input_error_of([&] {
          make("layers: [{name: a, inputs: [b], forward: 2 ms}]");
        }).find("no layer in front of this one is called 'b'") != std::string::npos);
  CHECK(test::input_error_of([&] { make("layers: []"); }).find("there is no layer") != std::string::npos);
}

}  // namespace stagecraft::pipedream_graph_test
