#include "backends/cuda/repeat.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "backends/real/clocks.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::cuda {
namespace {

constexpr std::size_t kMostGraphs = 4;

/// Records work on the tape while it lives.
class Writing {
 public:
  Writing(Yard& yard, Tape& tape) : yard_(yard) { yard_.write_to(&tape); }
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() { yard_.write_to(nullptr); }

 private:
  Yard& yard_;
};

}  // namespace

std::vector<Iteration> iterations_of(const Program& p, bool updates_apart, std::string& why_not) {
  std::vector<Iteration> all(p.iterations);
  IdVector<InstructionId, bool> behind(p.size(),
                                       false);  // Updates that are apart, and what waits for them in their iteration.
  for (const InstructionId id : p.instructions.ids()) {
    const Instruction& i = p.instructions[id];
    const int iteration = p.iteration_of(i);
    behind[id] = updates_apart && i.kind == InstructionKind::Update;
    for (const InstructionId w : p.waits_for(id)) {
      const int other = p.iteration_of(p.at(w));
      if (other > iteration) return why_not = "an iteration begins before the one before it has ended", all = {};
      if (other == iteration && behind[w]) behind[id] = true;
    }
    if (behind[id] && i.kind != InstructionKind::Update)
      return why_not = "evaluations look at weights behind updates that are in the middle of an iteration", all = {};
    Iteration& own = all[iteration];
    (behind[id] ? own.updates : own.body).push_back(id);
  }
  return all;
}

void Repeater::run(real::Session& session, Marks& marks, std::size_t count, bool makes) {
  told_ = {};
  enqueuer_.open(session, marks);
  marks.iterations = {marks.gates[yard_.queues().gpu(0)]};
  for (std::size_t k = 0; k < count; ++k) {
    const Iteration& iteration = iterations_[k];
    enqueuer_.keep_up(0);
    const double waited = enqueuer_.waited(), begin = real::steady_seconds();
    const int made = told_.made;
    session.begin_iteration(iteration.body);
    bool launched = false;
    if (k == 0)  // The only one that takes memory which stays.
      for (const InstructionId id : iteration.body) enqueuer_.put(id);
    else
      launched = body(iteration, makes);
    for (const InstructionId id : iteration.updates) enqueuer_.put(id);
    session.end_iteration(static_cast<int>(k));
    marks.iterations.push_back(enqueuer_.barrier(true));
    const double seconds = real::steady_seconds() - begin - (enqueuer_.waited() - waited);
    if (told_.made == made) (launched ? told_.by_graph : told_.by_calls).push_back(seconds);
  }
}

bool Repeater::body(const Iteration& iteration, bool makes) {
  enqueuer_.barrier(false);
  Tape tape;
  {
    const Writing writing(yard_, tape);
    for (const InstructionId id : iteration.body) enqueuer_.put(id);
  }
  const bool launched = play(tape, makes);
  enqueuer_.barrier(false);
  return launched;
}

bool Repeater::play(const Tape& tape, bool makes) {
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.words == tape.words(); });
  const Kept* kept = found != kept_.end() ? &*found : nullptr;
  if (!kept && makes && told_.why_not.empty()) {
    try {
      capture(tape);
      kept = &kept_.back();
      ++told_.made;
    } catch (const BackendError& e) {  // From the driver, or no memory during capture.
      told_.why_not = fmt::format("an iteration could not be captured: {}", e.what());
    }
  }
  if (!kept) return tape.play(yard_.queues()), false;
  yard_.queues().select(0);
  kept->graph.launch(yard_.queues().stream(0));
  ++told_.launched;
  return true;
}

/// Captures on the first stream, which forks to all streams that have anything to do and joins them at the end.
void Repeater::capture(const Tape& tape) {
  if (kept_.size() == kMostGraphs) throw CudaError(fmt::format("no iteration was like one of {} before", kMostGraphs));
  const Queues& queues = yard_.queues();
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
    for (const int q : tape.queues())
      if (q != 0) wait(0, q);
    tape.play(queues);
    for (const int q : tape.queues())
      if (q != 0) wait(q, 0);
    queues.select(0);
  });
  graph.upload(first);
  kept_.push_back({tape.words(), std::move(graph)});
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
    s.yard.stop_growing();
  }
  double seconds = 0;
  s.play([&] {
    const double begin = real::steady_seconds(), waited = s.enqueuer.waited();
    s.enqueuer.run(s.session, s.marks, s.program.size());
    seconds = real::steady_seconds() - begin - (s.enqueuer.waited() - waited);
  });
  Enqueued told;
  told.by_calls = {seconds / s.program.iterations};
  return told;
}

Enqueued play_by_graphs(const Stage& s, Repeater& repeater, bool warm_up) {
  constexpr std::size_t kFirst = 2;
  constexpr int kMostRounds = 4;
  const auto enqueue = [&](std::size_t count, bool makes) {
    s.play([&] { repeater.run(s.session, s.marks, count, makes); });
  };
  bool more = warm_up;
  for (int round = 0; more && round < kMostRounds; ++round) {
    const std::size_t held = s.yard.held();
    enqueue(kFirst, false);
    s.session.rewind(true);
    more = round == 0 || s.yard.held() > held;  // Memory is laid out again after the first.
  }
  if (warm_up) {
    s.yard.stop_growing();
    enqueue(kFirst, true);
    s.session.rewind(false);
  }
  enqueue(repeater.size(), true);
  const Repeater::Told& told = repeater.told();
  return {Seconds{median(told.by_calls)}, Seconds{median(told.by_graph)}, told.made, told.launched, told.why_not};
}

}  // namespace stagecraft::cuda
