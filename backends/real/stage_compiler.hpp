#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backends/real/stage_net.hpp"

namespace stagecraft::real {

/// Makes the StageNet of a stage, or of the part of it on one device of a group.
class StageCompiler {
 public:
  /// `word_parts`: how many parts the words of a vocabulary have that all ranks divide.
  StageCompiler(const Workload& workload, StageId stage, std::size_t width, const Degrees& degrees,
                const GroupPlace& place, int word_parts)
      : workload_(workload),
        own_(workload.stages[stage]),
        stage_(stage),
        width_(width),
        degrees_(degrees),
        place_(place),
        word_parts_(word_parts) {}

  StageNet run();

 private:
  const WorkloadLayer& layer_of(int id) const { return workload_.layers[LayerId{id}]; }
  bool is_divided() const { return degrees_.divides(); }
  static bool is_latent(const Operation& op) { return op.kind == OperationKind::Attention && op.inputs.size() == 3; }
  bool sequence() const { return degrees_.sequence && degrees_.tensor > 1; }

  void inputs();
  void outputs();
  void add_layer(LayerId);
  /// Marks what the node reads, and makes its output.
  void read(Node&);
  int add_value(const Operation& op, bool needs_gradient) {
    net_.values.push_back({op.rows, op.columns, false, needs_gradient, 0, -1});
    layouts_.push_back(Layout::Whole);
    return static_cast<int>(net_.values.size()) - 1;
  }
  /// A value that another stage made, in the layout that its last operation leaves.
  int add_arriving(const Operation&);
  /// Whether an embedding anywhere in the model looks up what this operation gives.
  bool gives_words(LayerId, std::size_t place) const;
  void require_narrow_inputs(const Node&, const WorkloadLayer&) const;
  void require_operations(const WorkloadLayer&) const;
  int number_of_input(LayerId layer, int place) const;

  // Weights.
  void place_weights(Node&, const WorkloadLayer&);
  /// Whether these weights are of experts, whose copies are on other devices than the copies of dense layers.
  bool is_apart(const Node& node) const {
    const bool experts_differ = degrees_.tensor > 1 || degrees_.expert > 1 || degrees_.expert_tensor > 1;
    return experts_differ && node.operation->division == Division::Experts;
  }
  void put_experts_last();
  /// The word of operations that share their weights.
  static const std::string& tie_of(const WorkloadLayer& layer, const Operation& op) {
    return op.kind == OperationKind::Tensor ? op.tensor->tie : layer.tie;
  }
  static bool has_tie(const WorkloadLayer&, const std::string& tie);
  void require_ties_here(const WorkloadLayer&, const std::string& tie) const;

  // In stage_compiler_groups.cpp.
  /// Replaces the operation by the part of this device, and its inputs by what that part reads.
  void divide_node(Node&, const WorkloadLayer&);
  void divide_attention(Node&);
  /// The attention gets all rows of a part of the heads; leave() gives back the rows of all heads.
  void exchange_heads(Node&);
  int return_heads(const Operation&, int value);
  /// Keys and values of all rows of a sample.
  int add_keys(int value, const Operation& attention);
  /// Copies of rows, one for each active expert, go to the devices of these experts.
  int send_rows(int copies, int scores, const Operation& dispatch);
  int return_rows(int value, int active);
  static void require_whole_rows(const Operation& op, const WorkloadLayer&);
  /// Padding up to a capacity, and rows that are dropped above it, are for simulations alone.
  void require_all_rows(const Node&, const WorkloadLayer&) const;
  /// The value in the layout that an operation reads; several that read it so share what is made for them.
  int enter(const Operation&, const WorkloadLayer&, int value, Layout wanted);
  /// Adds up the partial sums of an operation.
  int leave(const Operation&, int value);
  int add_exchange(int value, Exchange, Layout);
  int add_exchange(int value, Exchange, const Operation&, Layout);
  const Operation* keep(Operation op) {
    return net_.divided.emplace_back(std::make_shared<const Operation>(std::move(op))).get();
  }
  int rows_in(Layout layout, int rows) const {
    return rows / degrees_.context / (layout == Layout::Rows ? degrees_.tensor : 1);
  }

  // In stage_compiler_vocabulary.cpp.
  /// The value that the first stage reads in place of the output of an embedding.
  void read_embedding();
  void leave_for_scores();
  /// Tokens, embedding, scores and loss. Ranks exchange what flows between these, so the scores do not read the output
  /// of a node but a value that arrives.
  void add_vocabulary();
  /// Gives its output.
  int add_words(LayerId, int input);

  const Workload& workload_;
  const StageWorkload& own_;
  StageId stage_;
  std::size_t width_;
  int layer_ = 0;                             ///< The layer that is being added.
  std::map<LayerId, int> output_of_;          ///< Value of each layer.
  std::map<std::string, std::int64_t> tied_;  ///< Tie to place of weights.
  Degrees degrees_;
  GroupPlace place_;
  int word_parts_;
  std::vector<Layout> layouts_;                    ///< By value; all are whole without a tensor group.
  std::map<std::pair<int, Layout>, int> entered_;  ///< The value in another layout, by value and layout.
  std::int64_t expert_weights_ = 0;                ///< Numbers of weights of experts that lie apart.
  StageNet net_;
};

}  // namespace stagecraft::real
