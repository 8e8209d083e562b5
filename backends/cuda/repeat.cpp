#include "backends/cuda/repeat.hpp"

#include <fmt/core.h>
#include <algorithm>

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

std::vector<Iteration> iterations_of(const Program& p, bool updates_apart, std::string& why_not) {
  std::vector<Iteration> iterations(p.iterations);
  IdVector<InstructionId, bool> after_update(
      p.size(),
      false);  // Updates that are apart, and what waits for them in their iteration.
  for (const InstructionId id : p.instructions.ids()) {
    const Instruction& i = p.instructions[id];
    const int iteration = p.iteration_of(i);
    after_update[id] = updates_apart && i.kind == InstructionKind::Update;
    for (const InstructionId w : p.waits_for(id)) {
      const int other = p.iteration_of(p.at(w));
      if (other > iteration) return why_not = "an iteration begins before the one before it has ended", iterations = {};
      if (other == iteration && after_update[w]) after_update[id] = true;
    }
    if (after_update[id] && i.kind != InstructionKind::Update)
      return why_not = "evaluations look at weights after updates that are in the middle of an iteration",
             iterations = {};
    Iteration& current = iterations[iteration];
    (after_update[id] ? current.updates : current.body).push_back(id);
  }
  return iterations;
}

void Repeater::run(real::Session& session, Marks& marks, std::size_t count, bool makes) {
  stats_ = {};
  enqueuer_.open(session, marks);
  marks.iterations = {marks.gates[runtime_.queues().gpu(0)]};
  for (std::size_t k = 0; k < count; ++k) {
    const Iteration& iteration = iterations_[k];
    enqueuer_.keep_up(0);
    const double waited = enqueuer_.waited(), begin = real::steady_seconds();
    const std::int64_t calls_before = runtime_.meter().calls();
    const int graphs_before = stats_.instantiated;
    session.begin_iteration(iteration.body);
    bool launched = false;
    if (k == 0)  // The only one that takes memory which stays.
      enqueuer_.put(iteration.body);
    else
      launched = body(iteration, makes);
    enqueuer_.put(iteration.updates);
    session.end_iteration(static_cast<int>(k));
    marks.iterations.push_back(enqueuer_.barrier(true));
    const double seconds = real::steady_seconds() - begin - (enqueuer_.waited() - waited);
    stats_.calls = std::max(stats_.calls, static_cast<double>(runtime_.meter().calls() - calls_before));
    if (stats_.instantiated == graphs_before) (launched ? stats_.by_graph : stats_.by_calls).push_back(seconds);
  }
}

bool Repeater::body(const Iteration& iteration, bool makes) {
  enqueuer_.barrier(false);
  CommandRecorder recorder;
  {
    const Writing writing(runtime_, recorder);
    enqueuer_.put(iteration.body);
  }
  const bool launched = play(recorder, makes);
  enqueuer_.barrier(false);
  return launched;
}

bool Repeater::play(const CommandRecorder& recorder, bool makes) {
  const auto it =
      std::find_if(graphs_.begin(), graphs_.end(), [&](const CachedGraph& k) { return k.words == recorder.words(); });
  const CachedGraph* cached = it != graphs_.end() ? &*it : nullptr;
  if (!cached && makes && stats_.why_not.empty()) {
    try {
      capture(recorder);
      cached = &graphs_.back();
      ++stats_.instantiated;
    } catch (const BackendError& e) {  // From the driver, or no memory during capture.
      stats_.why_not = fmt::format("an iteration could not be captured: {}", e.what());
    }
  }
  if (!cached) return recorder.play(runtime_.queues()), false;
  runtime_.queues().select(0);
  cached->graph.launch(runtime_.queues().stream(0));
  ++stats_.launched;
  return true;
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
    recorder.play(queues);
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
  const auto enqueue = [&](std::size_t count) { s.play([&] { s.enqueuer.run(s.session, s.marks, count); }); };
  if (warm_up) {
    enqueue(first_iteration(s.program));
    s.session.rewind(false);
    s.runtime.stop_growing();
  }
  double seconds = 0, calls = 0;
  s.play([&] {
    const double begin = real::steady_seconds(), waited = s.enqueuer.waited();
    const std::int64_t calls_before = s.runtime.meter().calls();
    s.enqueuer.run(s.session, s.marks, s.program.size());
    calls = static_cast<double>(s.runtime.meter().calls() - calls_before) / s.program.iterations;
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
    s.play([&] { repeater.run(s.session, s.marks, count, makes); });
  };
  bool more = warm_up;
  for (int round = 0; more && round < kMostRounds; ++round) {
    const std::size_t reserved_before = s.runtime.reserved();
    enqueue(kFirst, false);
    s.session.rewind(true);
    more = round == 0 || s.runtime.reserved() > reserved_before;  // Memory is laid out again after the first.
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
  result.no_graph = stats.why_not;
  result.calls = stats.calls;
  return result;
}

}  // namespace stagecraft::cuda
