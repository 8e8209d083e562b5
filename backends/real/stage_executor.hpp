#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "backends/real/host_copies.hpp"
#include "backends/real/net_run.hpp"
#include "backends/real/transfer_tensors.hpp"
#include "backends/real/vocabulary_rank.hpp"
#include "backends/real/weight_store.hpp"

namespace stagecraft::real {

/// Where a stage runs, and how.
struct StagePlace {
  StageId stage;
  int replica = 0;
  bool keeps = true;  ///< Keeps activations for the backward: false without training, and with recomputation.
  bool learns = true;
  bool queued = false;        ///< Kernels may return before they are done: losses are read only when asked for.
  bool remakes = false;       ///< Selective recomputation: the backward recomputes what attentions keep.
  double gradient_scale = 1;  ///< Turns a mean over an iteration into a mean over the samples of one update.
  MemberGroups groups;
  std::vector<WeightSection> sections;
  ExpertPlace expert_place;
  StateSharding sharding = StateSharding::None;  ///< What the data group divides; nothing without one.
  bool reshard = false;                  ///< Divided weights are gathered for each operation; else once for a version.
  VocabularyRank* vocabulary = nullptr;  ///< Its rank's; null: no vocabulary is divided.

  bool shards(StateSharding level) const { return sharding >= level; }
};

/// One stage on one device: does what each compute instruction says.
class StageExecutor {
 public:
  StageExecutor(const StageNet&, StagePlace, const Program&, DeviceMemory&, TransferTensors&, const Dataset&,
                std::unique_ptr<WeightStore>);

  /// Called in a backward when the gradients of dense weights from this number on are complete.
  using SummedFrom = std::function<void(std::int64_t number)>;
  /// `summed_from` is empty unless something waits for a part of a backward.
  void compute(InstructionId, const SummedFrom& summed_from = {});
  /// Between a forward and its backward: moves what the backward needs to the memory of a host, as many arrays as come
  /// closest to this part of it, and back; or all inputs of Workload::offload_modules and no other array. Another
  /// thread than that of compute() may do it.
  void offload(int micro, const StashPart&, DeviceMemory& host);
  void fetch(int micro);
  /// Asks the data set now for what the forward of a micro-batch will need; gives the bytes.
  std::size_t prepare(int micro);
  /// Copies the data of a micro-batch to the address from which every iteration reads it.
  void stage(int micro);
  /// Copies the losses of an iteration into a block for all `iterations`, so that the next iteration finds memory as
  /// this one did.
  void keep_losses(int iteration, int iterations);
  /// Between two iterations: whether the next one finds only arrays that stay, which it then notes. Without that, or in
  /// a group of devices, an iteration may do more than the one before it.
  bool note_arrays(std::vector<std::uint64_t>& words) const;
  /// Takes note of an instruction that does the same work as an iteration ago, in the same memory, without doing it.
  /// Only an update is computed, because its work may depend on the number of updates.
  void repeat(InstructionId);
  /// Forgets everything but the data; `start` is to follow, when all stages have done so.
  void let_go();
  void start(std::unique_ptr<WeightStore>);
  /// Divided weights of an embedding that its ranks look words up in stay gathered, because these may look at any time.
  void start_words(std::span<const double>);
  /// The newest weights of an embedding whose words all ranks divide, for any thread.
  const void* words() const;
  /// Where queues order the work: adds the gradients of an embedding in the queue that brought them.
  void add_queued_embedding_gradients() {
    if (place_.queued) add_embedding_gradients();
  }
  /// The gradient of the weights, summed over all micro-batches so far; for the sum over replicas. Where gradients are
  /// divided, it is the part of this device, and that sum is in it.
  Tensor gradient();
  /// The sum while a backward goes on, which still adds gradients of other layers to it.
  Tensor growing_gradient() { return slots_.begin()->second.tensor(); }
  /// Whether the gradients of a backward are complete before it ends, with nothing left to be added to them.
  bool sums_in_place() const { return !training_.slots && !has_divided_gradients(); }
  bool has_divided_gradients() const { return place_.shards(StateSharding::Gradients); }

  const WeightStore& weights() const { return *weights_; }
  /// The samples of a micro-batch of this replica.
  Samples samples(int micro) const;
  /// The number of updates in the weights that the newest instruction used.
  std::int32_t last_version() const { return last_version_; }
  const StageNet& net() const { return net_; }
  /// Loss of each micro-batch so far; zero for stages without a loss.
  std::map<int, double> losses() const;
  /// Infeasible "diverged" for the first loss that is not a finite number.
  void require_finite_losses() const;
  /// The initial weights, and the newest weights after every `evaluate_every` updates.
  const std::map<int, std::vector<double>>& snapshots() const { return snapshots_; }

 private:
  /// Takes note of an op on a micro-batch in which this replica has no part.
  void skip(const Instruction&, const SummedFrom&);
  void forward(const Instruction&, bool again);
  void backward(const Instruction&, const SummedFrom&);
  void update(const Instruction&);
  void scores_gradient(const Instruction&);
  /// Where the stage has a part of a vocabulary.
  void add_embedding_gradients();
  void require_finite(const Instruction&, const Activations&);
  [[noreturn]] void diverged(int micro, int updates, const std::string& where) const;
  void post(const Instruction&, bool gradient, std::vector<Array>& values);
  /// The sum that a micro-batch adds its gradients to, of zeros at first.
  Array& sum_in(std::map<int, Array>& sums, int micro, std::int64_t numbers);
  Array& slot(int micro) {
    return sum_in(slots_, micro, has_divided_gradients() ? part_numbers(place_.sections) : net_.weights);
  }
  Activations& begin(int micro);
  Activations& alive(int micro);
  void end_of(int micro);
  const void* numbers_of(const Weights&);
  const void* newest_numbers() { return numbers_of({weights_->newest_computed(), weights_->updates()}); }
  bool sums_words_apart() const;
  void add_sum_of_words(int micro, const Array& sum);
  void gather_updated();
  void gather_words();
  void sum_section(const WeightSection&, const Tensor& sum);
  void gather_section(const WeightSection&, const Tensor& numbers);
  /// Numbers of an array from number `first` on.
  Tensor range(const Tensor& array, std::int64_t first, std::int64_t count) const {
    const auto width = static_cast<std::int64_t>(width_of(memory_.kernels(), array));
    return {static_cast<char*>(array.data) + first * width, 1, count, array.is_wide};
  }
  /// Whether this replica has a part in the micro-batch.
  bool has_samples(int micro) const;
  std::vector<Array*> movable(Activations&) const;
  double bytes(const Array& a) const { return static_cast<double>(bytes_of(memory_.kernels(), a.tensor())); }

  const StageNet& net_;
  StagePlace place_;
  const Program& p_;
  DeviceMemory& memory_;
  TransferTensors& transfers_;
  const Training& training_;
  std::unique_ptr<WeightStore> weights_;
  DeviceMemory prepared_;  ///< Not part of the measured memory.
  NetRun run_;
  std::mutex alive_mutex_;            ///< For the next two maps, not for what is in them.
  std::map<int, Activations> alive_;  ///< By micro-batch.
  ModuleInputs module_inputs_;
  std::map<int, std::vector<Array*>> on_host_;  ///< Arrays of `alive_` that are on the host, by micro-batch.
  std::map<int, Array> slots_;                  ///< Sums of gradients: one, or one for each micro-batch.
  /// Sums for the embedding alone, whose gradients come at any time between instructions. They are added to `slots_` at
  /// the end where the scores share its weights, because bits depend on the order of additions; where gradients are
  /// divided, because the devices that divide them meet in instructions; and where queues order the work, because no
  /// instruction before an update waits for them.
  std::map<int, Array> word_slots_;
  Weights gathered_;  ///< All numbers of weights that the data group divides.
  Array words_;       ///< All numbers of the weights of an embedding; see start_words().
  struct Loss {
    double value = 0;
    std::vector<Array> numbers;       ///< Parts of the loss that are still on the device.
    std::vector<const void*> places;  ///< Where they are or, after keep_losses(), were.
    std::vector<const void*> copies;  ///< Their copies in kept_losses_, after keep_losses().
    int updates = 0;                  ///< Updates before this forward.
  };
  std::map<int, Loss> losses_;
  Array kept_losses_;
  std::map<int, std::vector<double>> snapshots_;
  std::int32_t last_version_ = -1;
};

}  // namespace stagecraft::real
