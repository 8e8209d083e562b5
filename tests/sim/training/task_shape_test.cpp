#include <doctest/doctest.h>

#include "tests/sim/training/shapes.hpp"

namespace stagecraft::task_shape_test {
using namespace stagecraft::test;
using enum OperationKind;

namespace {

Layer layer(std::string name, std::vector<LayerId> inputs, std::vector<Operation> operations) {
  Layer l;
  l.name = std::move(name);
  l.inputs = std::move(inputs);
  l.operations = std::move(operations);
  return l;
}

Operation from(Operation op, std::vector<int> inputs) { return op.inputs = std::move(inputs), op; }

}  // namespace

TEST_CASE("inputs and losses are in layer order, with the vocabulary of the embeddings they feed") {
  ModelGraph model;
  model.layers = {
      layer("picture", {}, {operation(Input, 2, 8)}),
      layer("text", {}, {operation(Input, 5, 1)}),
      layer("large", {LayerId{1}}, {from(operation(Embedding, 5, 4, 100), {-1})}),
      layer("small", {LayerId{1}}, {from(operation(Embedding, 5, 4, 30), {-1})}),
      layer("both", {LayerId{2}, LayerId{3}}, {from(operation(Add, 5, 4), {-1, -2})}),
      layer("own", {}, {operation(Input, 3, 1), from(operation(Embedding, 3, 4, 60), {0})}),
      layer("amounts", {LayerId{0}}, {}),
      layer("loss", {LayerId{4}}, {from(operation(MeanSquare, 5, 4), {-1})}),
  };
  const TaskShape s = task_shape(model, 12);
  CHECK(s.mini_batch == 12);
  CHECK(s.inputs ==
        std::vector<Operation>{operation(Input, 2, 8), operation(Input, 5, 1, 30), operation(Input, 3, 1, 60)});
  CHECK(s.losses == std::vector<Operation>{from(operation(MeanSquare, 5, 4), {-1})});
  CHECK(s.words == 30);
}

TEST_CASE("a model may have no embedding and no loss") {
  ModelGraph model;
  model.layers = {layer("in", {}, {operation(Input, 1, 8)}),
                  layer("out", {LayerId{0}}, {from(operation(Linear, 1, 2, 8), {-1})})};
  const TaskShape s = task_shape(model, 1);
  CHECK(s.inputs == std::vector<Operation>{operation(Input, 1, 8)});
  CHECK(s.losses.empty());
  CHECK(s.words == 0);
}

}  // namespace stagecraft::task_shape_test
