// Executes the compute instructions of one stage on one device: forward, backward, update, with its stash and
// gradients.

#include "backends/real/stage_executor.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "backends/real/gradient_buckets.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {

StageExecutor::StageExecutor(const StageNet& net, StagePlace place, const Program& program, DeviceMemory& memory,
                             TransferTensors& transfers, const Dataset& data, std::unique_ptr<WeightStore> weights)
    : net_(net),
      place_(place),
      p_(program),
      memory_(memory),
      transfers_(transfers),
      training_(program.workload->training),
      prepared_(memory.kernels()),
      run_(net, memory, data, nullptr, place.remakes, place.groups,
           {place.shards(StateSharding::Weights) && place.reshard, place.shards(StateSharding::Gradients),
            place.sections},
           place.expert_place),
      module_inputs_(module_inputs(net, *program.workload)) {
  start(std::move(weights));
}

void StageExecutor::start(std::unique_ptr<WeightStore> weights) {
  weights_ = std::move(weights);
  if (training_.evaluate_every > 0) snapshots_[0] = weights_->download();
}

void StageExecutor::let_go() {
  alive_.clear();
  on_host_.clear();
  slots_.clear();
  word_slots_.clear();
  if (net_.has_words()) place_.vocabulary->let_go();
  losses_.clear();
  snapshots_.clear();
  weights_.reset();
  gathered_ = {};
  last_version_ = -1;
}

void StageExecutor::keep_losses(int iteration, int iterations) {
  const int each = p_.micro_batches[place_.stage];
  const std::size_t width = wide_width(memory_.kernels().width());
  for (auto at = losses_.lower_bound(iteration * each); at != losses_.end(); ++at) {
    auto& [micro, loss] = *at;
    for (const Array& number : loss.numbers) loss.places.push_back(number.data());
    const auto count = static_cast<std::int64_t>(loss.places.size());
    if (count == 0) continue;
    if (!kept_losses_) kept_losses_ = Array(prepared_, iterations * each, count, Use::Activations, NumberWidth::Wide);
    for (std::int64_t n = 0; n < count; ++n) {
      void* const to = static_cast<char*>(kept_losses_.data()) + (micro * count + n) * width;
      memory_.kernels().copy(loss.places[n], to, width);
      loss.copies.push_back(to);
    }
    loss.numbers.clear();
  }
}

std::size_t StageExecutor::prepare(int micro) {
  if (!has_samples(micro)) return 0;
  const std::size_t bytes = run_.prepare(samples(micro), prepared_);
  return net_.has_words() ? bytes + place_.vocabulary->prepare(micro, prepared_) : bytes;
}

void StageExecutor::stage(int micro) {
  run_.stage(samples(micro), prepared_);
  if (net_.has_words()) place_.vocabulary->stage(micro, prepared_);
}

bool StageExecutor::note_arrays(std::vector<std::uint64_t>& words) const {
  const bool meets_others =
      std::any_of(place_.sections.begin(), place_.sections.end(), [](const WeightSection& s) { return s.sums_here; });
  if (meets_others || place_.sharding != StateSharding::None || training_.slots) return false;
  if (!alive_.empty() || !weights_->at_rest()) return false;
  if (place_.vocabulary && !(place_.vocabulary->at_rest() && word_slots_.empty())) return false;
  const auto note = [&](const void* data) {
    words.push_back(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(data)));
  };
  note(weights_->newest().data());
  for (const auto& [micro, sum] : slots_) note(sum.data());
  return true;
}

void StageExecutor::repeat(InstructionId id) {
  const Instruction& i = p_.at(id);
  if (i.kind == InstructionKind::Update) return compute(id);
  if (i.kind == InstructionKind::Scores || i.kind == InstructionKind::ScoresGradient) {
    last_version_ = weights_->updates();
    return;
  }
  last_version_ = weights_->read(i).version;
  weights_->done(i);
  if (i.kind != InstructionKind::Forward) return;
  const Loss& before = losses_.at(i.micro_batch() - p_.micro_batches[place_.stage]);
  losses_[i.micro_batch()] = {0, {}, before.places, {}, weights_->updates()};
}

bool StageExecutor::has_samples(int micro) const {
  const Workload& w = *p_.workload;
  return w.packs.empty() || !w.pack(micro, place_.replica).empty();
}

void StageExecutor::skip(const Instruction& i, const SummedFrom& summed_from) {
  last_version_ = weights_->read(i).version;
  weights_->done(i);
  if (summed_from) summed_from(0);
}

void StageExecutor::compute(InstructionId id, const SummedFrom& summed_from) {
  const Instruction& i = p_.at(id);
  const bool is_of_samples = i.kind != InstructionKind::Update && i.kind != InstructionKind::Predict;
  if (is_of_samples && !has_samples(i.micro_batch())) return skip(i, summed_from);
  if (!place_.queued) add_embedding_gradients();
  switch (i.kind) {
    case InstructionKind::Forward:
      return forward(i, false);
    case InstructionKind::Recompute:
      return forward(i, true);
    case InstructionKind::Backward:
    case InstructionKind::InputGradient:
    case InstructionKind::WeightGradient:
      return backward(i, summed_from);
    case InstructionKind::Update:
      update(i);
      last_version_ = weights_->updates();
      return;
    case InstructionKind::Predict:
      weights_->predict(id, p_.prediction(i));
      last_version_ = weights_->updates();
      return;
    case InstructionKind::Scores:
      place_.vocabulary->compute_scores(i.micro_batch(), newest_numbers());
      last_version_ = weights_->updates();
      return;
    case InstructionKind::ScoresGradient:
      return scores_gradient(i);
    case InstructionKind::Send:
    case InstructionKind::Receive:
    case InstructionKind::Collective:
      break;  // These are no computation.
  }
}

Samples StageExecutor::samples(int micro) const {
  const RowRange range = p_.workload->stages[place_.stage].samples(micro, place_.replica);
  Samples s{range.first, range.count, p_.mini_batch, false};
  const Workload& w = *p_.workload;
  if (w.packs.empty()) return s;
  s.sequences = w.pack(micro, place_.replica);
  s.tokens_of_sample = w.tokens_of_sample;
  s.tokens_of_iteration = w.tokens_of_iteration(micro);
  return s;
}

Activations& StageExecutor::begin(int micro) {
  const std::lock_guard lock(alive_mutex_);
  return alive_[micro];
}

Activations& StageExecutor::alive(int micro) {
  const std::lock_guard lock(alive_mutex_);
  return alive_.at(micro);
}

void StageExecutor::end_of(int micro) {
  const std::lock_guard lock(alive_mutex_);
  alive_.erase(micro);
}

void StageExecutor::forward(const Instruction& i, bool again) {
  Activations& a = begin(i.micro_batch());
  a.values.resize(net_.values.size());
  if (!again)
    for (const Crossing& c : net_.inputs) {
      const auto arrived = transfers_.collect(c.edge, place_.stage, i.micro_batch(), place_.replica, false);
      for (std::size_t n = 0; n < arrived.size(); ++n) a.values[c.values[n]] = arrived[n];
    }
  if (!again && net_.embedded >= 0) a.values[net_.embedded] = place_.vocabulary->take_embedding(i.micro_batch());
  const bool keep = again || place_.keeps;
  std::map<int, Array> received;  // By value.
  if (!keep) {
    for (const Crossing& c : net_.inputs)
      for (const int v : c.values) received[v] = a.values[v];
    if (net_.embedded >= 0) received[net_.embedded] = a.values[net_.embedded];
  }

  const Weights weights = weights_->read(i);
  last_version_ = weights.version;
  run_.forward(samples(i.micro_batch()), numbers_of(weights), keep, a);
  weights_->done(i);

  if (!again) {
    losses_[i.micro_batch()] = {0, std::move(a.losses), {}, {}, weights_->updates()};
    if (!place_.queued) require_finite(i, a);
    std::vector<Array> values = a.values;
    post(i, false, values);
    if (net_.scored >= 0) place_.vocabulary->give_input(i.micro_batch(), a.values[net_.scored]);
  }
  const auto leave = [&](std::size_t v) {
    if (!keep || !net_.values[v].is_saved) a.values[v] = {};
  };
  for (const Crossing& c : net_.outputs)
    for (const int v : c.values) leave(v);
  if (net_.scored >= 0) leave(net_.scored);
  if (keep) return;
  if (!place_.learns) {
    end_of(i.micro_batch());
    return;
  }
  for (auto& [value, array] : received) a.values[value] = std::move(array);  // What came in waits for recomputation.
}

/// Only what leaves the stage is handed on; the rest of `values` is let go.
void StageExecutor::post(const Instruction& i, bool gradient, std::vector<Array>& values) {
  std::vector<Array> leaving(values.size());
  for (const Crossing& c : gradient ? net_.inputs : net_.outputs)
    for (const int v : c.values) leaving[v] = values[v];
  transfers_.post(place_.stage, i.micro_batch(), place_.replica, gradient, std::move(leaving));
}

void StageExecutor::backward(const Instruction& i, const SummedFrom& summed_from) {
  Activations& a = alive(i.micro_batch());
  const bool input_side = i.kind != InstructionKind::WeightGradient;
  const bool weight_side = i.kind != InstructionKind::InputGradient;
  a.gradients.resize(net_.values.size());
  if (input_side)
    for (const Crossing& c : net_.outputs) {
      const auto arrived = transfers_.collect(c.edge, place_.stage, i.micro_batch(), place_.replica, true);
      for (std::size_t n = 0; n < arrived.size(); ++n) {
        Array& sum = a.gradients[c.values[n]];
        if (sum)
          memory_.kernels().add(arrived[n].tensor(), sum.tensor());
        else
          sum = arrived[n];
      }
    }
  if (input_side && net_.scored >= 0)
    a.gradients[net_.scored] = place_.vocabulary->take_input_gradient(i.micro_batch());
  const Weights weights = weights_->read(i);
  last_version_ = weights.version;
  void* const sum = weight_side ? slot(i.micro_batch()).data() : nullptr;
  std::function<void(std::size_t)> after_node;
  if (summed_from) after_node = [&](std::size_t n) { summed_from(real::summed_from(net_, n)); };
  run_.backward(samples(i.micro_batch()), numbers_of(weights), input_side, sum, a, after_node);
  weights_->done(i);
  if (input_side) {
    for (const Crossing& c : net_.inputs)
      for (const int v : c.values) {
        Array& gradient = a.gradients[v];
        if (gradient) continue;
        const Value& value = net_.values[v];
        gradient = Array(memory_, samples(i.micro_batch()).rows(value.rows), value.columns, Use::Activations);
        memory_.kernels().zero(gradient.data(), bytes_of(memory_.kernels(), gradient.tensor()));
      }
    post(i, true, a.gradients);
    if (net_.embedded >= 0)
      place_.vocabulary->give_embedding_gradient(i.micro_batch(), std::exchange(a.gradients[net_.embedded], {}));
  }
  if (weight_side) end_of(i.micro_batch());
}

namespace {

/// Moves arrays to another memory; those that share their numbers still do afterwards.
void move_arrays(const std::vector<Array*>& arrays, DeviceMemory& to) {
  std::map<const void*, Array> moved;  // By where they were.
  for (Array* const array : arrays) {
    const Tensor from = array->tensor();
    Array& copy = moved[from.data];
    if (!copy) {
      copy =
          Array(to, from.rows, from.columns, Use::Activations, from.is_wide ? NumberWidth::Wide : NumberWidth::Narrow);
      to.kernels().copy(from.data, copy.data(), bytes_of(to.kernels(), from));
    }
    *array = copy;
  }
}

}  // namespace

/// What a stash may move: all of it, or the inputs of modules with every other name of the same numbers.
std::vector<Array*> StageExecutor::movable(Activations& a) const {
  std::vector<Array*> arrays;
  std::set<const void*> named;
  for (const int v : module_inputs_.values) named.insert(a.values[v].data());
  for (const int n : module_inputs_.norms) named.insert(a.saved[n].data());
  const bool takes_all = p_.workload->offload_modules.empty();
  for (std::vector<Array>* const list : {&a.values, &a.saved})
    for (Array& array : *list)
      if (array && (takes_all || named.contains(array.data()))) arrays.push_back(&array);
  return arrays;
}

void StageExecutor::offload(int micro, const StashPart& part, DeviceMemory& host) {
  std::vector<Array*> arrays = movable(alive(micro));
  const bool takes_all = p_.workload->offload_modules.empty();
  double total = 0, before = 0;
  for (const Array* array : arrays) total += bytes(*array);
  const double wanted = takes_all ? part.share * total : p_.workload->offload_differs_by_rank ? part.bytes : total;
  std::erase_if(arrays, [&](const Array* array) {
    const double middle = before + bytes(*array) / 2;
    before += bytes(*array);
    return middle > wanted;
  });
  move_arrays(arrays, host);
  const std::lock_guard lock(alive_mutex_);
  on_host_[micro] = std::move(arrays);
}

void StageExecutor::fetch(int micro) {
  std::vector<Array*> arrays;
  {
    const std::lock_guard lock(alive_mutex_);
    arrays = std::move(on_host_.extract(micro).mapped());
  }
  move_arrays(arrays, memory_);
}

/// Divided weights that stay gathered are gathered by all members in the first instruction that reads a version.
const void* StageExecutor::numbers_of(const Weights& weights) {
  if (!place_.shards(StateSharding::Weights) || place_.reshard) return weights.numbers.data();
  if (!gathered_.numbers || gathered_.version != weights.version) {
    gathered_ = {};
    gathered_ = {Array(memory_, 1, net_.weights, Use::Weights, NumberWidth::Narrow), weights.version};
    for (const WeightSection& s : place_.sections)
      gather_range(s.group, memory_, s.count, range(weights.numbers.tensor(), s.part, s.shard.count), {0, s.count},
                   range(gathered_.numbers.tensor(), s.first, s.count).data);
  }
  return gathered_.numbers.data();
}

Array& StageExecutor::sum_in(std::map<int, Array>& sums, int micro, std::int64_t numbers) {
  Array& array = sums[training_.slots ? micro : 0];
  if (!array) {
    array = Array(memory_, 1, numbers, Use::Gradients);
    memory_.kernels().zero(array.data(), bytes_of(memory_.kernels(), array.tensor()));
  }
  return array;
}

/// Where states are divided, each device needs the sum of its part alone.
void StageExecutor::sum_section(const WeightSection& s, const Tensor& sum) {
  scatter_sum(s.group, memory_, range(sum, s.first, s.count));
  if (!place_.shards(StateSharding::Optimizer)) gather_section(s, sum);
}

/// Every device with these weights has its part of an array; now it gets the parts of the others.
void StageExecutor::gather_section(const WeightSection& s, const Tensor& numbers) {
  const Tensor whole = range(numbers, s.first, s.count);
  const ShardRange part = shard_of(s.count, s.ranks, s.rank);
  gather_range(s.group, memory_, s.count, range(whole, part.first, part.count), {0, s.count}, whole.data);
}

void StageExecutor::gather_updated() {
  if (!place_.shards(StateSharding::Optimizer) || place_.shards(StateSharding::Weights)) return;
  for (const WeightSection& s : place_.sections) gather_section(s, weights_->newest_computed().tensor());
}

void StageExecutor::scores_gradient(const Instruction& i) {
  const int micro = i.micro_batch();
  Array number = place_.vocabulary->compute_gradient(micro, newest_numbers(), slot(micro).data());
  last_version_ = weights_->updates();
  if (!net_.counts_losses) return;
  Loss& loss = losses_[micro];
  loss.numbers.push_back(std::move(number));
  if (place_.queued) return;
  loss.value = run_.loss(std::exchange(loss.numbers, {}));
  if (!std::isfinite(loss.value)) diverged(micro, weights_->updates(), {});
}

bool StageExecutor::sums_words_apart() const {
  return place_.queued || has_divided_gradients() || !net_.word_node(StageNet::Scores).owns_weights;
}

void StageExecutor::add_embedding_gradients() {
  if (!net_.has_words()) return;
  const Node& words = net_.word_node(StageNet::Embedding);
  place_.vocabulary->add_embedding_gradients([&](int micro) {
    return sums_words_apart() ? sum_in(word_slots_, micro, words.count).data()
                              : range(slot(micro).tensor(), words.weights, words.count).data;
  });
}

void StageExecutor::add_sum_of_words(int micro, const Array& sum) {
  const Node& words = net_.word_node(StageNet::Embedding);
  const Tensor total = slot(micro).tensor();
  if (!has_divided_gradients()) return memory_.kernels().add(sum.tensor(), range(total, words.weights, words.count));
  const WeightSection& s = section_at(place_.sections, words.weights);
  scatter_range(s.group, memory_, s.count, sum.tensor(), {words.weights - s.first, words.count},
                range(total, s.part, s.shard.count));
}

const void* StageExecutor::words() const {
  if (words_) return words_.data();
  const Node& words = net_.word_node(StageNet::Embedding);
  return range(weights_->newest_computed().tensor(), words.weights, words.count).data;
}

void StageExecutor::start_words(std::span<const double> numbers) {
  const Array wide(memory_, 1, std::ssize(numbers), Use::Weights);
  memory_.kernels().upload(numbers, wide.data());
  words_ = rounded(memory_, wide, Use::Weights);
}

void StageExecutor::gather_words() {
  if (!words_) return;
  const Node& words = net_.word_node(StageNet::Embedding);
  const WeightSection& s = section_at(place_.sections, words.weights);
  gather_range(s.group, memory_, s.count, range(weights_->newest_computed().tensor(), s.part, s.shard.count),
               {words.weights - s.first, words.count}, words_.data());
}

Tensor StageExecutor::gradient() {
  add_embedding_gradients();
  for (const auto& [micro, sum] : std::exchange(word_slots_, {})) add_sum_of_words(micro, sum);
  Array& sum = slots_.empty() ? slot(0) : slots_.begin()->second;
  for (auto next = std::next(slots_.begin()); next != slots_.end(); next = slots_.erase(next))
    memory_.kernels().add(next->second.tensor(), sum.tensor());
  return sum.tensor();
}

void StageExecutor::update(const Instruction& i) {
  const Tensor sum = gradient();
  for (const WeightSection& s : place_.sections)
    if (s.sums_here && !has_divided_gradients()) sum_section(s, sum);
  if (place_.gradient_scale != 1) memory_.kernels().scale(place_.gradient_scale, sum);
  weights_->update(i, sum.data);
  gathered_ = {};
  gather_updated();
  gather_words();
  if (training_.slots)
    slots_.clear();
  else
    memory_.kernels().zero(sum.data, bytes_of(memory_.kernels(), sum));
  if (training_.evaluate_every > 0 && weights_->updates() % training_.evaluate_every == 0)
    snapshots_[weights_->updates()] = weights_->download();
}

std::map<int, double> StageExecutor::losses() const {
  std::map<int, double> losses;
  for (const auto& [micro, loss] : losses_) {
    double& sum = losses[micro] = loss.numbers.empty() ? loss.value : run_.loss(loss.numbers);
    for (const void* const copy : loss.copies) {
      double number = 0;
      memory_.kernels().download(copy, {&number, 1});
      sum += number;
    }
  }
  return losses;
}

void StageExecutor::require_finite_losses() const {
  for (const auto& [micro, loss] : losses())
    if (!std::isfinite(loss)) diverged(micro, losses_.at(micro).updates, {});
}

void StageExecutor::require_finite(const Instruction& i, const Activations& a) {
  Loss& loss = losses_[i.micro_batch()];
  loss.value = run_.loss(loss.numbers);
  loss.numbers.clear();
  bool finite = std::isfinite(loss.value);
  for (const Crossing& c : net_.outputs)
    for (const int v : c.values) finite = finite && memory_.kernels().finite(a.values[v].tensor());
  if (!finite) diverged(i.micro_batch(), weights_->updates(), run_.not_finite(a, *p_.workload));
}

void StageExecutor::diverged(int micro, int updates, const std::string& where) const {
  const int iteration = micro / p_.micro_batches[place_.stage];
  throw Infeasible(
      "diverged",
      fmt::format("stage {} in the forward of micro-batch {} (iteration {}, updates done: {}): {}", place_.stage.value,
                  micro, iteration, updates, where.empty() ? "the loss is not a finite number" : where),
      weights_->delay() > 0
          ? "a smaller training.learning_rate, or another weights policy: stale weights lower the largest stable rate"
          : "a smaller training.learning_rate");
}

}  // namespace stagecraft::real
