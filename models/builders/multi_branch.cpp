// The Multi-Modal Transformer of GraphPipe: equal branches of Transformer layers that meet in a concatenation.
// Jeon et al., GraphPipe, ASPLOS 2025, appendix A.2 and figure 10.

#include <fmt/core.h>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

const config::MapSpec kMultiBranchFields{
    "Equal branches of Transformer layers, concatenated at the end.",
    {config::integer("branches", 1, 1024).doc("Number of branches."),
     config::integer("layers", 1, 1e4)
         .doc("Transformer layers of one branch; each becomes attention and two dense layers."),
     config::integer("hidden", 1, 1e6).doc("Width of the model."),
     config::integer("heads", 1, 1e4).doc("Attention heads."),
     config::integer("feed_forward", 1, 1e7)
         .optional()
         .doc("Width inside the dense layers. Default: 4 times `hidden`."),
     config::integer("sequence", 1, 1e7).doc("Tokens of one sample in each branch."), precision_field()}};

struct MultiBranchShape {
  double hidden = 0, heads = 0, feed_forward = 0, sequence = 0;
};

// Four projections of h x h, and scores and context of every pair of tokens. Kept for backward: the input, Q, K, V, the
// context and the probabilities.
LayerAmounts attention(const MultiBranchShape& n) {
  const double h = n.hidden, s = n.sequence;
  LayerAmounts layer = weighted(4 * h * h + 4 * h, 8 * s * h * h + 4 * s * s * h, s * h, 5 * s * h + n.heads * s * s);
  layer.core_forward = 4 * s * s * h, layer.core_stash = n.heads * s * s;
  return layer;
}

ModelGraph build_multi_branch(const config::Value& map) {
  MultiBranchShape n;
  n.hidden = config::as_real(map.at("hidden"));
  n.heads = config::as_real(map.at("heads"));
  n.feed_forward = map.has("feed_forward") ? config::as_real(map.at("feed_forward")) : 4 * n.hidden;
  n.sequence = config::as_real(map.at("sequence"));
  const int branches = config::as_int(map.at("branches")), layers = config::as_int(map.at("layers"));

  const int rows = config::as_int(map.at("sequence")), width = config::as_int(map.at("hidden"));
  const int heads = config::as_int(map.at("heads")), inner = static_cast<int>(n.feed_forward);

  GraphWriter writer(fmt::format("mmt-{}x{}", branches, layers), map);
  std::vector<LayerId> ends;
  for (int b = 0; b < branches; ++b) {
    LayerId last =
        writer.add(fmt::format("in{}", b), "input", {}, source(n.sequence * n.hidden), {source_of(rows, width)});
    for (int l = 0; l < layers; ++l) {
      const std::string name = fmt::format("b{}.l{}", b, l);
      last = writer.add(name + ".mha", "mha", {last}, attention(n), attention_operations(rows, width, heads, false));
      last = writer.add(name + ".ff1", "dense", {last}, dense(n.sequence, n.hidden, n.feed_forward),
                        dense_operations(rows, width, inner));
      last = writer.add(name + ".ff2", "dense", {last}, dense(n.sequence, n.feed_forward, n.hidden),
                        dense_operations(rows, inner, width));
    }
    ends.push_back(last);
  }
  const double joined = branches * n.sequence * n.hidden;
  Operation join{.kind = OperationKind::Concat, .rows = rows, .columns = branches * width};
  for (int b = 0; b < branches; ++b) join.inputs.push_back(-1 - b);
  const LayerId concat = writer.add("concat", "concat", ends, source(joined), {join});
  writer.add("loss", "loss", {concat}, square_error(joined),
             {loss_of(OperationKind::MeanSquare, rows, branches * width)});
  return writer.finish();
}

}  // namespace

extern const ModelBuilder multi_branch{
    .name = "multi_branch",
    .summary = "Equal Transformer branches joined by a concatenation: the Multi-Modal Transformer.",
    .source = "Jeon et al., GraphPipe, ASPLOS 2025",
    .fields = &kMultiBranchFields,
    .build = build_multi_branch,
};

}  // namespace stagecraft::model_builders
