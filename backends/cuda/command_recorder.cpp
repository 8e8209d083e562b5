// Records the work of an iteration as commands that are enqueued later, and as words: `repeat` launches an earlier
// graph where the words are equal.

#include "backends/cuda/command_recorder.hpp"

#include <map>
#include <memory>
#include <optional>

#include "backends/cuda/queues.hpp"
#include "backends/real/kernels.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

void CommandRecorder::wait(int queue, Point point) {
  note(-1);
  note(queue);
  note(point.queue);
  note(static_cast<std::uint64_t>(point.number));
  awaited_.insert(point);
  entries_.push_back({queue, point, {}});
}

void CommandRecorder::end(Point point) {
  note(-2);
  note(point.queue);
  entries_.push_back({point.queue, point, {}});
}

std::set<int> CommandRecorder::queues() const {
  std::set<int> used;
  for (const Entry& e : entries_) used.insert(e.queue);
  return used;
}

void CommandRecorder::play(const Queues& queues, NcclOrder order) const {
  std::map<Point, Event> events;
  std::optional<Event> last_of_nccl;
  int current = -1;
  for (const Entry& e : entries_) {
    if (e.queue != current) queues.select(current = e.queue);
    const cudaStream_t stream = queues.stream(e.queue);
    const bool chained = !e.nccl.empty() && order == NcclOrder::Chained;
    if (chained && last_of_nccl)
      for (const int queue : e.nccl) last_of_nccl->hold_up(queues.stream(queue));
    if (e.play) e.play();
    if (chained) last_of_nccl.emplace().record(stream);
    if (e.play) continue;
    if (e.point.queue != e.queue)
      events.at(e.point).hold_up(stream);
    else if (awaited_.contains(e.point))
      events.try_emplace(e.point).first->second.record(stream);
  }
}

void CommandRecorder::note(const Copied& copied) {
  note(copied.from);
  note(copied.to);
  note(static_cast<std::uint64_t>(copied.bytes));
}

void CommandRecorder::note(const real::Tensor& tensor) {
  note(tensor.data);
  note(tensor.rows);
  note(tensor.columns);
  note(static_cast<int>(tensor.is_wide));
}

void CommandRecorder::note(const real::Call& call) {
  note(static_cast<const void*>(call.operation));
  note(call.samples);
  note(static_cast<std::uint64_t>(call.inputs.size()));
  for (const real::Tensor& input : call.inputs) note(input);
  note(call.weights);
  note(call.output);
  note(call.saved);
  note(call.scale);
  for (const int number : {call.first_row, call.first_word, call.words}) note(number);
  note(static_cast<std::uint64_t>(call.expert_rows.size()));
  for (const std::int64_t row : call.expert_rows) note(row);
}

void CommandRecorder::note(const real::KeyPart& part) {
  note(part.keys);
  note(part.first_row);
  note(part.all_rows);
  for (const bool flag : {part.is_first, part.is_last}) note(static_cast<int>(flag));
}

void CommandRecorder::note(const real::DividedLoss& rows) {
  for (const real::Tensor& tensor : {rows.largest, rows.sums, rows.targets}) note(tensor);
}

void CommandRecorder::note(const real::ScoreRecords& records) {
  note(records.here);
  note(records.joint);
  note(records.width);
}

void CommandRecorder::note(const real::OptimizerState& state) {
  for (const void* const place : {state.first, state.second, state.last, state.bare, state.average, state.counter})
    note(place);
  note(state.steps);
}

void CommandRecorder::note(const real::UpdateOptions& options) {
  note(options.rate_scale);
  note(options.delay);
  note(static_cast<int>(options.spike_compensation));
  note(static_cast<int>(options.reconstruction));
}

namespace {

/// Says which function it was.
enum class RecordedCall : std::uint8_t {
  Copy,
  CopyRows,
  Zero,
  Forward,
  InputGradient,
  WeightGradient,
  ForwardWithGelu,
  InputGradientWithGelu,
  Add,
  Scale,
  Narrow,
  Maximum,
  AttentionPart,
  AttentionPartGradient,
  DividedLoss,
  DividedScores,
  Update,
  Predict,
  Reconstruct
};

std::uint64_t word(RecordedCall kind) { return static_cast<std::uint64_t>(kind); }

/// Reduces the state to what the formulas depend on: most only check whether this is the first step, and with a counter
/// the host passes no step.
real::OptimizerState as_seen(const OptimizerRule& rule, real::OptimizerState state) {
  const bool counts = rule.kind == OptimizerKind::Adam || rule.kind == OptimizerKind::AdamW;
  if (!counts || state.counter) state.steps = std::min(state.steps, 1);
  return state;
}

class RecordedKernels final : public real::Kernels {
 public:
  RecordedKernels(CommandRecorder& recorder, int queue, real::Kernels& inner)
      : recorder_(recorder), queue_(queue), inner_(inner) {}

  std::size_t width() const override { return inner_.width(); }
  void* allocate(std::size_t) override { throw InternalError("memory of a stream is taken while work is recorded"); }
  void release(void*, std::size_t) override {
    throw InternalError("memory of a stream is given while work is recorded");
  }
  void upload(std::span<const double>, void*) override { throw InternalError("an upload is recorded"); }
  void download(const void*, std::span<double>) override { throw InternalError("a download is recorded"); }
  bool finite(real::Tensor) override { throw InternalError("numbers are looked at while work is recorded"); }

  void copy(const void* from, void* to, std::size_t bytes) override {
    record([=](real::Kernels& k) { k.copy(from, to, bytes); }, RecordedCall::Copy, from, to,
           static_cast<std::uint64_t>(bytes));
  }
  void copy_rows(const void* from, std::int64_t from_stride, void* to, std::int64_t to_stride, std::int64_t rows,
                 std::int64_t columns) override {
    record([=](real::Kernels& k) { k.copy_rows(from, from_stride, to, to_stride, rows, columns); },
           RecordedCall::CopyRows, from, from_stride, to, to_stride, rows, columns);
  }
  void zero(void* to, std::size_t bytes) override {
    record([=](real::Kernels& k) { k.zero(to, bytes); }, RecordedCall::Zero, to, static_cast<std::uint64_t>(bytes));
  }
  std::int64_t saved_numbers(const Operation& op, std::int64_t samples) override {
    return inner_.saved_numbers(op, samples);
  }
  void forward(const real::Call& call) override {
    record([saved_call = real::KeptCall(call)](real::Kernels& k) { k.forward(saved_call.call()); },
           RecordedCall::Forward, call);
  }
  void input_gradient(const real::Call& call, real::Tensor d, std::span<const real::Gradient> d_inputs) override {
    record([saved_call = real::KeptCall(call), d, to = std::vector<real::Gradient>(d_inputs.begin(), d_inputs.end())](
               real::Kernels& k) { k.input_gradient(saved_call.call(), d, to); },
           RecordedCall::InputGradient, call, d);
    for (const real::Gradient& g : d_inputs) {
      recorder_.note(g.tensor);
      recorder_.note(static_cast<int>(g.add));
    }
  }
  void weight_gradient(const real::Call& call, real::Tensor d, void* d_weights) override {
    record([saved_call = real::KeptCall(call), d,
            d_weights](real::Kernels& k) { k.weight_gradient(saved_call.call(), d, d_weights); },
           RecordedCall::WeightGradient, call, d, d_weights);
  }
  bool fuses_gelu() const override { return inner_.fuses_gelu(); }
  void forward_with_gelu(const real::Call& product, const real::Call& gelu) override {
    record([first = real::KeptCall(product),
            second = real::KeptCall(gelu)](real::Kernels& k) { k.forward_with_gelu(first.call(), second.call()); },
           RecordedCall::ForwardWithGelu, product, gelu);
  }
  void input_gradient_with_gelu(const real::Call& product, real::Tensor d, const real::Gradient& between,
                                const real::Call& gelu, const real::Gradient& d_input) override {
    record([first = real::KeptCall(product), d, between, second = real::KeptCall(gelu), d_input](
               real::Kernels& k) { k.input_gradient_with_gelu(first.call(), d, between, second.call(), d_input); },
           RecordedCall::InputGradientWithGelu, product, d, between.tensor, static_cast<int>(between.add), gelu,
           d_input.tensor, static_cast<int>(d_input.add));
  }
  void add(real::Tensor from, real::Tensor to) override {
    record([=](real::Kernels& k) { k.add(from, to); }, RecordedCall::Add, from, to);
  }
  void scale(double factor, real::Tensor t) override {
    record([=](real::Kernels& k) { k.scale(factor, t); }, RecordedCall::Scale, factor, t);
  }
  void narrow(real::Tensor from, real::Tensor to) override {
    record([=](real::Kernels& k) { k.narrow(from, to); }, RecordedCall::Narrow, from, to);
  }
  void maximum(real::Tensor from, real::Tensor to) override {
    record([=](real::Kernels& k) { k.maximum(from, to); }, RecordedCall::Maximum, from, to);
  }
  void attention_part(const real::Call& call, const real::KeyPart& part) override {
    record([saved_call = real::KeptCall(call), part](real::Kernels& k) { k.attention_part(saved_call.call(), part); },
           RecordedCall::AttentionPart, call, part);
  }
  void attention_part_gradient(const real::Call& call, const real::KeyPart& part, real::Tensor d_output,
                               real::Tensor d_input, real::Tensor d_keys) override {
    record([saved_call = real::KeptCall(call), part, d_output, d_input, d_keys](
               real::Kernels& k) { k.attention_part_gradient(saved_call.call(), part, d_output, d_input, d_keys); },
           RecordedCall::AttentionPartGradient, call, part, d_output, d_input, d_keys);
  }
  void divided_loss(real::DividedLossStep step, const real::Call& call, const real::DividedLoss& rows) override {
    record([step, saved_call = real::KeptCall(call),
            rows](real::Kernels& k) { k.divided_loss(step, saved_call.call(), rows); },
           RecordedCall::DividedLoss, static_cast<int>(step), call, rows);
  }
  void divided_scores(real::ScoreStep step, const real::Call& call, const real::ScoreRecords& records) override {
    record([step, saved_call = real::KeptCall(call),
            records](real::Kernels& k) { k.divided_scores(step, saved_call.call(), records); },
           RecordedCall::DividedScores, static_cast<int>(step), call, records);
  }
  void update(const OptimizerRule& rule, const real::UpdateOptions& options, std::int64_t count, const void* gradient,
              real::OptimizerState& state, const void* from, void* to) override {
    const std::size_t from_word = recorder_.words().size();
    record(
        [=, &rule](real::Kernels& k) {
          real::OptimizerState now = as_seen(rule, state);
          k.update(rule, options, count, gradient, now, from, to);
        },
        RecordedCall::Update, static_cast<const void*>(&rule), options, count, gradient, as_seen(rule, state), from,
        to);
    recorder_.end_update(from_word);
    ++state.steps;
  }
  void predict(const OptimizerRule& rule, Direction direction, int horizon, std::int64_t count,
               const real::OptimizerState& state, const void* from, void* to) override {
    record([=, &rule](real::Kernels& k) { k.predict(rule, direction, horizon, count, state, from, to); },
           RecordedCall::Predict, static_cast<const void*>(&rule), static_cast<int>(direction), horizon, count, state,
           from, to);
  }
  void reconstruct(const OptimizerRule& rule, Reconstruction kind, int delay, std::int64_t count,
                   const real::OptimizerState& state, const void* from, void* to) override {
    record([=, &rule](real::Kernels& k) { k.reconstruct(rule, kind, delay, count, state, from, to); },
           RecordedCall::Reconstruct, static_cast<const void*>(&rule), static_cast<int>(kind), delay, count, state,
           from, to);
  }

 private:
  template <class Work, class... Facts>
  void record(Work work, RecordedCall kind, const Facts&... facts) {
    recorder_.work(
        queue_, [&inner = inner_, work = std::move(work)] { work(inner); }, word(kind), facts...);
  }

  CommandRecorder& recorder_;
  int queue_;
  real::Kernels& inner_;
};

}  // namespace

std::unique_ptr<real::Kernels> recorded_kernels(CommandRecorder& recorder, int queue, real::Kernels& inner) {
  return std::make_unique<RecordedKernels>(recorder, queue, inner);
}

}  // namespace stagecraft::cuda
