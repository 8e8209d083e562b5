// Plays a program that is set up, with its warm-up: call by call, or iteration by iteration, with a CUDA graph where an
// iteration equals an earlier one; run.cpp calls it.

#include "backends/cuda/repeat.hpp"

#include <fmt/core.h>
#include <algorithm>
#include <bit>

#include "backends/real/clocks.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostGraphs = 4;

/// Records work while it lives.
class Writing {
 public:
  Writing(GpuRuntime& runtime, CommandRecorder& recorder) : runtime_(runtime) { runtime_.write_to(&recorder); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() { runtime_.write_to(nullptr); }

 private:
  GpuRuntime& runtime_;
};

}  // namespace

void Repeater::run(real::Session& session, InstructionEvents& events, std::size_t count, bool makes) {
  stats_ = {};
  session_ = &session;
  last_ = nullptr, twice_ = false, before_last_ = {};
  enqueuer_.open(session, events);
  for (std::size_t k = 0; k < count; ++k) {
    const Iteration& iteration = iterations_[k];
    enqueuer_.keep_up(0);
    const double waited = enqueuer_.waited() + waited_, begin = real::steady_seconds();
    const std::int64_t calls_before = runtime_.launch_limit().calls();
    const int graphs_before = stats_.instantiated;
    session.begin_iteration(iteration.body);
    if (k == 0 && session.divides_vocabulary()) enqueuer_.barrier(false);  // Other queues read the data, too.
    bool launched = false;
    if (k == 0)  // The only one that takes memory which stays.
      enqueuer_.put(iteration.body);
    else
      launched = body(k, makes);
    enqueuer_.put(iteration.updates);
    session.end_iteration(static_cast<int>(k));
    enqueuer_.barrier(true);
    enqueuer_.read_finished();
    const double seconds = real::steady_seconds() - begin - (enqueuer_.waited() + waited_ - waited);
    stats_.calls = std::max(stats_.calls, static_cast<double>(runtime_.launch_limit().calls() - calls_before));
    if (stats_.instantiated == graphs_before) (launched ? stats_.by_graph : stats_.by_calls).push_back(seconds);
  }
}

bool Repeater::body(std::size_t k, bool makes) {
  const Iteration& iteration = iterations_[k];
  enqueuer_.barrier(false);
  HostState before = host_state();
  const bool counts = runtime_.most_steps() >= iteration.updates_done;
  const bool same = last_ && twice_ && before && before == before_last_ && iteration.repeats && counts;
  const bool in_series = k + 1 < iterations_.size() && iterations_[k + 1].repeats && k % kCompareEvery != 0;
  if (everywhere(same && in_series)) {
    repeat(k);
    enqueuer_.barrier(false);
    return true;
  }
  CommandRecorder recorder;
  {
    const Writing writing(runtime_, recorder);
    enqueuer_.put(iteration.body);
  }
  const CachedGraph* const expected = same ? last_ : nullptr;
  const CachedGraph* const previous = last_;
  const bool launched = play(recorder, makes);
  if (expected && expected->words != recorder.words())
    throw InternalError(fmt::format("iteration {} differs from those before it, which were not recorded", k));
  enqueuer_.barrier(false);
  twice_ = last_ && last_ == previous;
  before_last_ = std::move(before);
  updates_ = recorder.update_words();
  stats_.recorded += launched;
  return launched;
}

/// Launches the graph of the iteration before.
void Repeater::repeat(std::size_t k) {
  CommandRecorder recorder;
  {
    const Writing writing(runtime_, recorder);
    for (const InstructionId id : iterations_[k].body) enqueuer_.repeat(id);
  }
  if (recorder.update_words() != updates_)
    throw InternalError(fmt::format("an update of iteration {} differs from the one before it", k));
  launch();
}

Repeater::HostState Repeater::host_state() const {
  HostState arrays = session_->lasting_arrays();
  if (!arrays) return arrays;
  const std::vector<std::uint64_t> layout = runtime_.layout();
  arrays->insert(arrays->end(), layout.begin(), layout.end());
  return arrays;
}

bool Repeater::play(const CommandRecorder& recorder, bool makes) {
  std::uint64_t equal = 0;
  for (std::size_t g = 0; g < graphs_.size(); ++g)
    if (graphs_[g].words == recorder.words()) equal |= std::uint64_t{1} << g;
  equal = common_bits(equal);
  last_ = equal != 0 ? &graphs_[std::countr_zero(equal)] : nullptr;
  if (!last_ && makes && stats_.why_not.empty()) make(recorder);
  if (!last_) return recorder.play(runtime_.queues()), false;
  launch();
  return true;
}

std::uint64_t Repeater::common_bits(std::uint64_t local) {
  const double begin = real::steady_seconds();
  const std::uint64_t common = common_bits_(local);
  waited_ += real::steady_seconds() - begin;
  return common;
}

/// A graph that only some processes could capture is dropped by all.
void Repeater::make(const CommandRecorder& recorder) {
  const std::size_t before = graphs_.size();
  try {
    capture(recorder);
  } catch (const BackendError& e) {  // From the driver, or no memory during capture.
    stats_.why_not = fmt::format("an iteration could not be captured: {}", e.what());
  }
  if (everywhere(stats_.why_not.empty())) {
    last_ = &graphs_.back();
    ++stats_.instantiated;
    return;
  }
  if (graphs_.size() > before) graphs_.pop_back();
  if (stats_.why_not.empty()) stats_.why_not = "an iteration could not be captured by another process";
}

void Repeater::launch() {
  runtime_.queues().select(0);
  last_->graph.launch(runtime_.queues().stream(0));
  ++stats_.launched;
}

/// Captures on the first stream, which forks to all streams that have anything to do and joins them at the end.
void Repeater::capture(const CommandRecorder& recorder) {
  if (graphs_.size() == kMostGraphs)
    throw CudaError(fmt::format("no iteration was like one of {} before", kMostGraphs));
  const Queues& queues = runtime_.queues();
  const cudaStream_t first = queues.stream(0);
  std::deque<Event> events;
  const auto wait = [&](int earlier, int later) {
    queues.select(earlier);
    const Event& event = events.emplace_back();
    event.record(queues.stream(earlier));
    queues.select(later);
    event.hold_up(queues.stream(later));
  };
  queues.select(0);
  Graph graph(first, [&] {
    for (const int q : recorder.queues())
      if (q != 0) wait(0, q);
    recorder.play(queues, CommandRecorder::NcclOrder::Chained);
    for (const int q : recorder.queues())
      if (q != 0) wait(q, 0);
    queues.select(0);
  });
  graph.upload(first);
  graphs_.push_back({recorder.words(), std::move(graph)});
}

namespace {

std::size_t first_iteration(const Program& program) {
  std::size_t count = 0;
  for (const InstructionId n : program.instructions.ids())
    if (program.iteration_of(program.instructions[n]) == 0) count = n.value + 1;
  return count;
}

}  // namespace

Enqueued play_by_calls(const Stage& s, bool warm_up) {
  const auto enqueue = [&](std::size_t count) { s.play([&] { s.enqueuer.run(s.session, s.events, count); }); };
  if (warm_up) {
    enqueue(first_iteration(s.program));
    s.session.rewind(false);
    s.runtime.stop_growing();
  }
  double seconds = 0, calls = 0;
  s.play([&] {
    const double begin = real::steady_seconds(), waited = s.enqueuer.waited();
    const std::int64_t calls_before = s.runtime.launch_limit().calls();
    s.enqueuer.run(s.session, s.events, s.program.size());
    calls = static_cast<double>(s.runtime.launch_limit().calls() - calls_before) / s.program.iterations;
    seconds = real::steady_seconds() - begin - (s.enqueuer.waited() - waited);
  });
  Enqueued result;
  result.by_calls = {seconds / s.program.iterations};
  result.calls = calls;
  return result;
}

Enqueued play_by_graphs(const Stage& s, Repeater& repeater, bool warm_up) {
  constexpr std::size_t kFirst = 2;
  constexpr int kMostRounds = 4;
  const auto enqueue = [&](std::size_t count, bool makes) {
    s.play([&] { repeater.run(s.session, s.events, count, makes); });
  };
  bool more = warm_up;
  for (int round = 0; more && round < kMostRounds; ++round) {
    const std::size_t reserved_before = s.runtime.reserved();
    enqueue(kFirst, false);
    s.session.rewind(true);
    // Memory is laid out again after the first.
    more = round == 0 || !repeater.everywhere(s.runtime.reserved() == reserved_before);
  }
  if (warm_up) {
    s.runtime.stop_growing();
    enqueue(kFirst, true);
    s.session.rewind(false);
  }
  enqueue(repeater.size(), true);
  const Repeater::RepeatStats& stats = repeater.stats();
  Enqueued result;
  result.by_calls = Seconds{median(stats.by_calls)};
  result.by_graph = Seconds{median(stats.by_graph)};
  result.graphs = stats.instantiated;
  result.launches = stats.launched;
  result.recorded = stats.recorded;
  result.no_graph = stats.why_not;
  result.calls = stats.calls;
  return result;
}

}  // namespace stagecraft::cuda
