#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "sim/core/catalog.hpp"
#include "sim/model/model_graph.hpp"

namespace stagecraft {

/// Samples to learn from and their targets. The seed alone decides them, not who asks or in which order. May be
/// asked by several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;
  /// Numbers that Input operation `input` (counted through the model) gives for one sample of one iteration, or, for
  /// iteration < 0, sample `sample` of the fixed evaluation set. `out` has rows x columns numbers.
  virtual void input(int input, int iteration, std::int64_t sample, std::span<double> out) const = 0;
  /// What the loss compares with: a class for each row of a cross entropy, else rows x columns numbers.
  virtual void target(int iteration, std::int64_t sample, std::span<double> out) const = 0;
  virtual std::int64_t evaluation_samples() const { return 0; }
};

/// Inputs and loss of a model, which a task must fit.
struct TaskShape {
  std::vector<Operation> inputs;  ///< Input operations in layer order; `inner`: the words that the embeddings it feeds
                                  ///< know, 0 where it feeds numbers.
  std::vector<Operation> losses;  ///< Loss operations; a task serves models with exactly one.
  std::int64_t mini_batch = 1;    ///< Samples of an iteration.
  int words = 0;                  ///< Words that every embedding knows; 0: there is none.
};
TaskShape task_shape(const ModelGraph&, std::int64_t mini_batch);

/// One file in sim/training/tasks/.
struct TaskDef {
  std::string_view name, summary, source;
  /// Throws InputError when the model's inputs and loss do not fit the task.
  std::unique_ptr<Dataset> (*make)(const TaskShape&, std::uint64_t seed);
};

namespace tasks {
Catalog<TaskDef> catalog();
}

}  // namespace stagecraft
