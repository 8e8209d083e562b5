// Branches of dense layers and bags of embeddings that meet in a concatenation with dense layers after it: DLRM
// (Naumov et al., 2019) and CANDLE-Uno (Wozniak et al., BMC Bioinformatics 2018) as FlexFlow and GraphPipe train them.

#include <fmt/core.h>

#include <set>

#include "models/graph_writer.hpp"

namespace stagecraft::model_builders {
namespace {

using config::Value;

const config::MapSpec kBranchedMlpDenseFields{
    "Equal branches of dense layers.",
    {config::text("name").doc("Name of the branches; several branches get a number each."),
     config::integer("count", 1, 1e5).fallback("1").doc("Number of them."),
     config::integer("input", 1, 1e7).doc("Input numbers of a sample for each branch."),
     config::list("widths", config::integer("width", 1, 1e7))
         .optional()
         .doc("Width of each dense layer. Default: no layers; the input goes straight into the concatenation.")}};

const config::MapSpec kBagFields{
    "Equal tables of embeddings, of which a sample looks up a bag of words.",
    {config::text("name").doc("Name of the branches; several branches get a number each."),
     config::integer("count", 1, 1e5).fallback("1").doc("Number of them."),
     config::integer("words", 1, 1e9).doc("Words that the table knows: its rows."),
     config::integer("width", 1, 1e6).doc("Numbers for each word: the columns of the table."),
     config::integer("bag", 1, 1e6).doc("Words that a sample looks up. Their rows are concatenated.")}};

const config::MapSpec kBranchedMlpFields{
    "Branches of dense layers and of embeddings, concatenated, with dense layers after them.",
    {config::list("dense", config::map("branch", kBranchedMlpDenseFields))
         .optional()
         .doc("Branches whose input is numbers."),
     config::list("bags", config::map("branch", kBagFields))
         .optional()
         .doc("Branches whose input is words: embedding tables."),
     config::list("top", config::integer("width", 1, 1e7)).doc("Width of each dense layer after the concatenation."),
     config::boolean("bias").fallback("true").doc("Whether dense layers have a bias."), precision_field()}};

class BranchedMlpWriter {
 public:
  explicit BranchedMlpWriter(const Value& map)
      : map_(map), bias_(config::as_bool(map.at("bias"))), writer_("branches", map) {
    writer_.set_without_tokens();
  }

  ModelGraph build() {
    each("dense", [&](const Value& group, const std::string& name) { add_dense_branch(group, name); });
    each("bags", [&](const Value& group, const std::string& name) { add_bag(group, name); });
    if (names_.empty())
      problems_.add(map_.where, {}, "the model has no branch", "give some under `dense` or `bags`", "branches");
    if (map_.at("top").items.empty())
      problems_.add(map_.at("top").where, "top", "there is no layer after the concatenation", "such as [512, 1]",
                    "top");
    problems_.throw_if_any();
    Operation join{.kind = OperationKind::Concat, .columns = joined_};
    for (std::size_t b = 0; b < ends_.size(); ++b) join.inputs.push_back(-1 - static_cast<int>(b));
    LayerId last = writer_.add("concat", "concat", ends_, source(joined_), {join});
    const int numbers = add_dense_layers("top", map_.at("top"), last, joined_, true);
    writer_.add("loss", "loss", {last}, square_error(numbers), {loss_of(OperationKind::MeanSquare, 1, numbers)});
    return writer_.finish();
  }

 private:
  template <class Add>
  void each(const char* key, Add add) {
    const Value* groups = map_.find(key);
    if (!groups) return;
    for (const Value& group : groups->items) {
      const Value& name = group.at("name");
      const int count = config::as_int(group.at("count"));
      for (int i = 0; i < count; ++i) {
        const std::string branch = count > 1 ? fmt::format("{}{}", name.text, i) : name.text;
        if (names_.insert(branch).second)
          add(group, branch);
        else
          problems_.add(name.where, key, fmt::format("two branches are called '{}'", branch), {}, "duplicate");
      }
    }
  }

  void add_dense_branch(const Value& group, const std::string& name) {
    int width = config::as_int(group.at("input"));
    LayerId last = writer_.add(name + ".in", "input", {}, source(width), {source_of(1, width)});
    if (const Value* widths = group.find("widths")) width = add_dense_layers(name + ".ff", *widths, last, width, false);
    add_end(last, width);
  }

  // A row of the table costs no arithmetic; its gradient is written once for each number.
  void add_bag(const Value& group, const std::string& name) {
    const double bag = config::as_real(group.at("bag")), width = config::as_real(group.at("width"));
    const double words = config::as_real(group.at("words"));
    const LayerId in = writer_.add(name + ".in", "input", {}, source(bag));
    add_end(writer_.add(name + ".emb", "embedding_bag", {in}, {words * width, 0, 0, bag * width, bag * width, bag}),
            bag * width);
  }

  /// Adds dense layers, each with a ReLU after it unless it ends the network. Returns the width of the last one.
  int add_dense_layers(const std::string& name, const Value& widths, LayerId& last, int width, bool ends) {
    for (std::size_t i = 0; i < widths.items.size(); ++i) {
      const int next = config::as_int(widths.items[i]);
      LayerAmounts amounts = dense(1, width, next);
      Operations operations = dense_operations(1, width, next, ends && i + 1 == widths.items.size() ? "none" : "relu");
      if (!bias_) amounts.parameters -= next;
      operations.front().bias = bias_;
      last = writer_.add(fmt::format("{}{}", name, i), "dense", {last}, amounts, operations);
      width = next;
    }
    return width;
  }

  void add_end(LayerId last, double width) {
    ends_.push_back(last);
    if (joined_ + width > kWidest)
      throw InputError({{map_.where, {}, fmt::format("the concatenation is wider than {}", kWidest), {}, "width"}});
    joined_ += static_cast<int>(width);
  }

  static constexpr int kWidest = 1'000'000'000;

  const Value& map_;
  bool bias_;
  GraphWriter writer_;
  config::Problems problems_;
  std::set<std::string> names_;
  std::vector<LayerId> ends_;
  int joined_ = 0;
};

ModelGraph build_branched_mlp(const Value& map) { return BranchedMlpWriter(map).build(); }

}  // namespace

extern const ModelBuilder branched_mlp{
    .name = "branched_mlp",
    .summary = "Branches of dense layers and embedding tables, concatenated: DLRM, CANDLE-Uno.",
    .source = "Naumov et al., 2019; Wozniak et al., 2018; Jeon et al., GraphPipe, ASPLOS 2025",
    .fields = &kBranchedMlpFields,
    .build = build_branched_mlp,
};

}  // namespace stagecraft::model_builders
