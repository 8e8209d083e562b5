// Any bytes as graph.txt of PipeDream: read, written as a model file and read again to the same, or refused. The first
// byte is the number of samples.

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "models/pipedream_graph.hpp"
#include "sim/config/fields.hpp"
#include "sim/model/builder.hpp"
#include "tests/fuzz/tree.hpp"

namespace stagecraft::model_builders {
extern const ModelBuilder timed;
}

using namespace stagecraft;

namespace {

ModelGraph again(const ModelGraph& model) {
  config::Value tree = fuzz::read_back(timed_model_yaml(model, "Any bytes"));
  std::erase_if(tree.members, [](const config::Member& m) { return m.key != "layers"; });
  config::Problems problems;
  const config::Value checked = config::check(tree, *model_builders::timed.fields, "", problems);
  if (!problems.empty()) std::abort();
  return model_builders::timed.build(checked);
}

bool same(const Layer& a, const Layer& b) {
  return a.name == b.name && a.inputs == b.inputs && a.times->forward == b.times->forward &&
         a.times->input_gradient == b.times->input_gradient && a.times->weight_gradient == b.times->weight_gradient &&
         a.output == b.output && a.stash == b.stash && a.parameters == b.parameters;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    const ModelGraph model = read_pipedream_graph(text, "graph.txt", 1 + data[0]);
    const ModelGraph read = again(model);
    if (read.layers.size() != model.layers.size()) std::abort();
    for (const LayerId l : model.layers.ids())
      if (!same(model.layers[l], read.layers[l]) || !std::isfinite(model.layers[l].stash.value)) std::abort();
  } catch (const InputError& error) {
    if (error.problems().empty()) std::abort();
  }
  return 0;
}
