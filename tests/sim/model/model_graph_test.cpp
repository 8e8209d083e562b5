#include "sim/model/model_graph.hpp"

#include <doctest/doctest.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::model_graph_test {
namespace {

Layer layer(std::string name, std::vector<LayerId> inputs = {}) {
  Layer result;
  result.name = std::move(name);
  result.inputs = std::move(inputs);
  result.parameters = 3;
  result.forward.value = 2;
  return result;
}

}  // namespace

TEST_CASE("a model sums its layers and finds them by name") {
  ModelGraph model;
  model.layers = {layer("a"), layer("b", {LayerId{0}})};
  check_graph(model);
  CHECK(model.parameters() == 6);
  CHECK(model.forward().value == 4);
  CHECK(model.find("b") == LayerId{1});
  CHECK_FALSE(model.find("c"));
}

TEST_CASE("a graph with two equal names, or a layer before its input, is a bug") {
  ModelGraph twice;
  twice.layers = {layer("a"), layer("a")};
  CHECK_THROWS_AS(check_graph(twice), InternalError);
  ModelGraph early;
  early.layers = {layer("a", {LayerId{1}}), layer("b")};
  CHECK_THROWS_AS(check_graph(early), InternalError);
  early.layers[LayerId{0}].inputs = {LayerId{0}};
  CHECK_THROWS_AS(check_graph(early), InternalError);
}

}  // namespace stagecraft::model_graph_test
