// The part of an operation that one device of a tensor and context group computes, and which of the weights it holds.

#include "backends/real/divided_operation.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

bool divides_words(const Operation& op) { return op.division == Division::Vocabulary; }

/// Elementwise operations and losses read what a divided operation made.
bool is_activation(const Operation& op) {
  return op.kind == OperationKind::Relu || op.kind == OperationKind::Tanh || op.kind == OperationKind::Gelu ||
         op.kind == OperationKind::Silu || op.kind == OperationKind::GatedSilu;
}

[[noreturn]] void refuse(const Operation& op, const std::string& why) {
  throw InputError(fmt::format("'{}' {}", to_text(op), why), "--backend ideal, fluid or simgrid; or another group");
}

class OperationDivider {
 public:
  OperationDivider(const Operation& op, const Degrees& degrees, const GroupPlace& place, std::size_t width)
      : whole_(op), degrees_(degrees), place_(place), width_(width), divided_{op, {}, 1, 0, 0} {}

  DividedOperation run(const std::vector<int>& blocks) {
    Operation& op = divided_.operation;
    const Layout in = input_layout(whole_, degrees_.sequence);
    if (in != Layout::Experts) {  // Rows that were sent to experts are as many as the router says.
      op.rows = part(op.rows, degrees_.context, "row", "context");
      if (in == Layout::Rows) op.rows = part(op.rows, degrees_.tensor, "row", "tensor");
    }
    divided_.rows = op.rows;
    if (op.kind == OperationKind::Embedding) op.rows = whole_.rows;
    if (whole_.division == Division::Experts) {
      divide_experts();
    } else if (degrees_.tensor > 1) {
      divide_columns();
    }
    slices(blocks);
    return std::move(divided_);
  }

 private:
  int part(int amount, int degree, const char* what, const char* field) const {
    if (amount % degree != 0)
      refuse(whole_, fmt::format("has {}, which {} {} does not divide", pluralize(amount, what), field, degree));
    return amount / degree;
  }
  int columns(int amount) const { return part(amount, degrees_.tensor, "column", "tensor"); }
  bool is_first() const { return place_.tensor == 0; }

  void divide_columns() {
    Operation& op = divided_.operation;
    switch (whole_.division) {
      case Division::Replicated:
        return;
      case Division::Column:
        op.columns = columns(op.columns);
        if (op.kind == OperationKind::GatedSilu) op.inner = columns(op.inner);
        if (op.kind != OperationKind::Linear && !is_activation(op)) break;
        return;
      case Division::Row:
        if (op.kind != OperationKind::Linear) break;
        op.inner = columns(op.inner);
        op.bias = op.bias && is_first();
        return;
      case Division::Heads:
        op.head_width = op.kind == OperationKind::Attention ? head_shape(whole_).query : op.head_width;
        op.heads = part(op.heads, degrees_.tensor, "head", "tensor");
        if (op.key_value_heads > 0)
          op.key_value_heads = part(op.key_value_heads, degrees_.tensor, "key-value head", "tensor");
        op.columns = columns(op.columns);
        return;
      case Division::Vocabulary:
        return divide_words();
      case Division::Experts:
        return;  // See divide_experts().
    }
    refuse(whole_, fmt::format("is divided by {}, which real backends do not compute yet", to_text(whole_.division)));
  }

  int expert_columns(int amount) const { return part(amount, degrees_.expert_tensor, "column", "expert_tensor"); }

  /// A Dispatch and a Combine know all experts.
  void divide_experts() {
    if (degrees_.tensor > 1 && !degrees_.sequence)
      refuse(whole_, "gets each row once, which takes sequence parallelism in the tensor group");
    Operation& op = divided_.operation;
    if (op.kind == OperationKind::GroupedLinear) {
      op.experts = part(op.experts, degrees_.expert, "expert", "expert");
      if (op.within_expert == Division::Column) op.columns = expert_columns(op.columns);
      if (op.within_expert != Division::Row) return;
      op.inner = expert_columns(op.inner);
      op.bias = op.bias && place_.expert_tensor == 0;
    } else if (is_activation(op)) {
      op.columns = expert_columns(op.columns);
      if (op.kind == OperationKind::GatedSilu) op.inner = expert_columns(op.inner);
    }
  }

  void divide_words() {
    Operation& op = divided_.operation;
    const bool looks_up = op.kind == OperationKind::Embedding;
    int& count = looks_up ? op.inner : op.columns;
    if (count < degrees_.tensor) refuse(whole_, fmt::format("has too few words for tensor {}", degrees_.tensor));
    divided_.words = count;
    divided_.first_word = word_begin(place_.tensor);
    count = word_begin(place_.tensor + 1) - divided_.first_word;
    if (looks_up) op.positions = op.positions && is_first();
  }
  int word_begin(int rank) const { return static_cast<int>(std::int64_t{divided_.words} * rank / degrees_.tensor); }

  void add(std::int64_t whole, std::int64_t part, std::int64_t count) {
    if (count > 0) divided_.slices.push_back({whole, part, count});
  }

  void slices(const std::vector<int>& blocks) {
    const Operation& op = divided_.operation;
    const Blocks part = real::blocks(op, width_);
    if (part.total == 0) return;
    const std::int64_t second_whole = second_block(whole_, width_), second_part = second_block(op, width_);
    const std::int64_t inner = whole_.inner, part_inner = op.inner;
    if (whole_.division == Division::Experts) {
      expert_slices(blocks, second_whole, second_part);
    } else if (degrees_.tensor == 1 || whole_.division == Division::Replicated ||
               whole_.kind == OperationKind::HeadNorm) {
      add(0, 0, part.first);
      add(second_whole, second_part, part.second);
    } else if (whole_.kind == OperationKind::Embedding) {
      add(std::int64_t{divided_.first_word} * op.columns, 0, part.first);
      add(second_whole, second_part, part.second);
    } else if (whole_.division == Division::Row) {
      for (std::int64_t row = 0; row < op.columns; ++row)
        add(row * inner + place_.tensor * part_inner, row * part_inner, part_inner);
      add(second_whole, second_part, part.second);
    } else if (divides_words(whole_)) {
      add(divided_.first_word * inner, 0, part.first);
      add(second_whole + divided_.first_word, second_part, part.second);
    } else {
      column_slices(blocks, degrees_.tensor, place_.tensor, {0, 0}, second_whole, second_part);
    }
  }

  /// The first column of a matrix, counted through all matrices of the operation, there and here.
  struct FirstColumn {
    std::int64_t whole = 0, part = 0;
  };

  void expert_slices(const std::vector<int>& blocks, std::int64_t second_whole, std::int64_t second_part) {
    const Operation& op = divided_.operation;
    const std::int64_t inner = whole_.inner, part_inner = op.inner;
    for (std::int64_t e = 0; e < op.experts; ++e) {
      const std::int64_t there = place_.expert * op.experts + e;
      const FirstColumn first{there * whole_.columns, e * op.columns};
      if (whole_.within_expert != Division::Row) {
        column_slices(blocks, degrees_.expert_tensor, place_.expert_tensor, first, second_whole, second_part);
        continue;
      }
      for (std::int64_t row = 0; row < op.columns; ++row)
        add((first.whole + row) * inner + place_.expert_tensor * part_inner, (first.part + row) * part_inner,
            part_inner);
      if (op.bias) add(second_whole + first.whole, second_part + first.part, op.columns);
    }
  }

  void column_slices(const std::vector<int>& blocks, int ranks, int rank, const FirstColumn& matrix,
                     std::int64_t second_whole, std::int64_t second_part) {
    const std::int64_t inner = whole_.inner;
    std::int64_t begin = matrix.whole, next = matrix.part;
    for (const int block : blocks) {
      const std::int64_t each = part(block, ranks, "column", "the group of"), first = begin + rank * each;
      add(first * inner, next * inner, each * inner);
      if (whole_.bias) add(second_whole + first, second_part + next, each);
      begin += block;
      next += each;
    }
  }

  const Operation& whole_;
  const Degrees& degrees_;
  const GroupPlace& place_;
  std::size_t width_;
  DividedOperation divided_;
};

}  // namespace

bool makes_partial_sums(const Operation& op) {
  return op.division == Division::Row || (divides_words(op) && op.kind == OperationKind::Embedding);
}

Layout input_layout(const Operation& op, bool sequence) {
  switch (op.division) {
    case Division::Replicated:
      return op.kind != OperationKind::Input && sequence ? Layout::Rows : Layout::Whole;
    case Division::Column:
      return is_activation(op) ? Layout::Columns : Layout::Whole;
    case Division::Vocabulary:
      return op.is_loss() ? Layout::Columns : Layout::Whole;
    case Division::Row:
    case Division::Heads:
      return Layout::Columns;
    case Division::Experts:
      break;
  }
  const bool has_tokens = op.kind == OperationKind::Dispatch || op.kind == OperationKind::Combine;
  if (!has_tokens) return Layout::Experts;
  return sequence ? Layout::Rows : Layout::Whole;
}

Layout output_layout(const Operation& op, bool sequence) {
  if (op.division == Division::Replicated || op.division == Division::Experts) return input_layout(op, sequence);
  if (makes_partial_sums(op)) return sequence ? Layout::Rows : Layout::Whole;
  return Layout::Columns;
}

DividedOperation divide(const Operation& op, const std::vector<int>& blocks, const Degrees& degrees,
                        const GroupPlace& place, std::size_t width) {
  return OperationDivider(op, degrees, place, width).run(blocks);
}

std::vector<int> column_blocks(const std::vector<Operation>& operations, int place) {
  const Operation& op = operations[place];
  for (std::size_t reader = place + 1; reader < operations.size(); ++reader) {
    const Operation& other = operations[reader];
    if (std::find(other.inputs.begin(), other.inputs.end(), place) == other.inputs.end()) continue;
    if (other.kind == OperationKind::GatedSilu) return {other.columns, other.columns};
    if (other.kind == OperationKind::Rotary || other.kind == OperationKind::HeadNorm)
      return column_blocks(operations, static_cast<int>(reader));
    if (other.kind != OperationKind::Attention || other.inputs.size() != 1) continue;
    const HeadShape s = head_shape(other);
    return {s.heads * s.query, s.key_value_heads * s.query, s.key_value_heads * s.value};
  }
  return {op.columns};
}

}  // namespace stagecraft::real
