#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/real/array.hpp"
#include "backends/real/divided_operation.hpp"
#include "backends/real/kernels.hpp"
#include "sim/program/workload.hpp"

// A stage, or the part of it on one device of a group, as a list of operations with the positions of their tensors
// and weights.

namespace stagecraft::real {

/// A tensor of a stage; amounts are for one sample.
struct Value {
  std::int64_t rows = 0, columns = 0;
  bool is_saved = false;  ///< Its own operation or a user needs it again in the backward.
  bool needs_gradient = false;
  int users = 0;         ///< Operations of the stage that read it.
  int routing = -1;      ///< The node that sent these rows to experts, which knows how many there are; -1: `rows`.
  bool is_wide = false;  ///< Words of the data: they would be other ones in 16 bits.

  std::int64_t numbers() const { return rows * columns; }
  NumberWidth number_width() const { return is_wide ? NumberWidth::Wide : NumberWidth::Narrow; }
};

/// What a node does between the devices of a tensor, context or expert group, and its gradient in the backward
/// (Megatron-LM's f and g).
enum class Exchange : std::uint8_t {
  None,
  Copy,         ///< Nothing; gradients are summed.
  GatherRows,   ///< The rows of all devices; gradients are summed, and each device keeps its rows.
  TakeRows,     ///< The rows of this device; gradients are gathered.
  Sum,          ///< The sum over all devices; gradients pass.
  SumRows,      ///< The sum over all devices, of which each keeps its rows; gradients are gathered.
  GatherKeys,   ///< Keys and values of all rows from the context group; gradients are summed, and each keeps its rows.
  RowsToHeads,  ///< From a part of the rows to a part of the heads of the context group; gradients go back.
  HeadsToRows,  ///< The way back after an attention.
  RingKeys,     ///< No copy of an array: an attention, around whose context group keys and values go.
  DividedLoss,  ///< No copy of an array: a cross entropy whose classes are divided.
  SendRows,     ///< Each row goes to the devices of its expert, where rows lie by expert; gradients are summed over the
                ///< devices of an expert and go back.
  ReturnRows,   ///< The way back: the sum over the devices of the expert; gradients go to all of them.
};

/// An operation with the places of what it reads and writes.
struct Node {
  const Operation* operation = nullptr;
  std::vector<int> inputs;              ///< Indices of values.
  int output = -1;                      ///< Index of a value; -1 for a loss.
  int layer = 0, place = 0;             ///< Index of the layer in the model, and of the operation in the layer. Of an
                                        ///< exchange: the layer that needs it.
  int input_number = -1;                ///< For input operations: their number, counted through the model.
  std::int64_t weights = 0, count = 0;  ///< Offset and number of its weights in the stage's weights.
  bool owns_weights = false;            ///< False when tied to the weights of an earlier node.

  // A product next to a GELU of its layer, where nothing else reads the numbers between them; see Kernels::fuses_gelu.
  bool feeds_gelu = false;  ///< The next node is the GELU.
  bool reads_gelu = false;  ///< The node before is the GELU, whose input has no other reader and a gradient.

  Exchange exchange = Exchange::None;
  int routing = -1;  ///< The node that sent the rows to experts that this node works on.

  // What only a device in a group has.
  bool sums_gradient = false;  ///< Each device has other rows but equal weights: the tensor group sums their gradients.
  int all_rows = 0, rows = 0, first_row = 0;  ///< Rows of a sample on all devices and here, and the first one here.
  std::vector<int> blocks = {};               ///< RowsToHeads, HeadsToRows: widths of the blocks of columns.
  int first_word = 0, words = 0;              ///< See Call.
  std::vector<WeightSlice> slices = {};       ///< Offsets within the weights of the undivided and of this node.
};

/// What flows over one edge of the program: tensors, one after the other.
struct Crossing {
  int edge = 0;
  std::vector<int> values;
  std::int64_t numbers = 0;  ///< For one sample.
};

/// A stage as a list of operations, ready to be run in order.
struct StageNet {
  std::vector<Value> values;
  std::vector<Node> nodes;
  std::size_t pass_nodes = 0;      ///< The first nodes, of forwards and backwards. Where the stage has a part of a
                                   ///< vocabulary, its nodes follow, as WordNode numbers them.
  int embedded = -1, scored = -1;  ///< Values that come from the embedding and go to the scores of all ranks, if any.
                                   ///< A tensor group still has to add up the first.
  std::vector<Crossing> inputs;    ///< One for each edge that enters, in the order of the edges.
  std::vector<Crossing> outputs;   ///< One for each edge that leaves, later target stages first: gradients are added in
                                   ///< this order, which is the order of a run without stages.
  std::int64_t weights = 0;        ///< Numbers of all weights, padding included.
  std::int64_t dense_weights = 0;  ///< Numbers before the weights of experts, where copies of experts are on other
                                   ///< devices than copies of dense layers; else all.
  std::size_t width = 8;           ///< Bytes of a number.
  bool counts_losses = true;       ///< False where another device of the group has the whole loss already.
  std::vector<std::shared_ptr<const Operation>> divided;  ///< Operations of nodes that the workload does not have.

  /// The nodes of a part of a vocabulary. ScoresInput gives each device of a tensor group all rows.
  enum WordNode : std::size_t { Tokens, Embedding, ScoresInput, Scores, Loss };
  bool has_words() const { return nodes.size() > pass_nodes; }
  const Node& word_node(WordNode n) const { return nodes[pass_nodes + n]; }
};

/// Bytes of a number, where all numbers of the model have the same; kMixedWidth in mixed precision.
std::size_t width_of(const Workload&);

/// The result points into the workload. `width`: bytes of a number. Throws InputError when a layer is known only by its
/// amounts, or shares its weights with a layer of another stage.
StageNet compile_stage(const Workload&, StageId, std::size_t width);
/// The part of a stage that a device of its tensor and context groups computes, with its part of a vocabulary.
StageNet compile_part(const Workload&, StageId, const GroupPlace&, std::size_t width);
/// The undivided stage with the part of a vocabulary that its rank has.
StageNet compile_rank(const Workload&, StageId, std::size_t width);

}  // namespace stagecraft::real
