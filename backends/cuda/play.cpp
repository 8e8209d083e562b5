#include "backends/cuda/play.hpp"

#include <algorithm>

#include "backends/real/pause.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::cuda {
namespace {

std::size_t first_iteration(const Program& program) {
  std::size_t count = 0;
  for (std::size_t n = 0; n < program.size(); ++n)
    if (program.iteration_of(program.instructions[n]) == 0) count = n + 1;
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
    more = round == 0 || s.yard.held() > held;  // Memory is laid out anew behind the first.
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
