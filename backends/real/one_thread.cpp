// The interpreter for one thread, which makes copies to host memory between the other instructions.

#include "backends/real/one_thread.hpp"

#include <algorithm>
#include <deque>
#include <utility>

#include "backends/real/clocks.hpp"
#include "backends/real/host_copies.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"

namespace stagecraft::real {
namespace {

/// Executes instructions by number: each has a higher number than all that it waits for. Copies of stashes, which go
/// next to other work, do not keep to their numbers: each is made as soon as it may be.
class OneThreadExecutor {
 public:
  OneThreadExecutor(const Program& p, Actions& actions)
      : p_(p), actions_(actions), copies_(p.streams.size()), ended_(p.size()) {
    for (const InstructionId n : p.instructions.ids())
      if (is_host_copy(p, p.at(n))) copies_[p.at(n).stream].push_back(n);
    times_.start.resize(p.size());
    times_.end.resize(p.size());
    times_.origin = steady_seconds();
  }

  Times run() {
    for (const InstructionId n : p_.instructions.ids()) {
      stop_point();
      if (!is_host_copy(p_, p_.at(n))) execute(n);
      for (std::deque<InstructionId>& stream : copies_)
        for (; !stream.empty() && may_start(stream.front()); stream.pop_front()) execute(stream.front());
    }
    return std::move(times_);
  }

 private:
  bool may_start(InstructionId n) const {
    const auto waits = p_.waits_for(n);
    return std::all_of(waits.begin(), waits.end(), [&](InstructionId w) { return ended_[w]; });
  }
  void execute(InstructionId n) {
    STAGECRAFT_CHECK(may_start(n));
    const Instruction& i = p_.at(n);
    times_.start[n] = steady_seconds() - times_.origin;
    if (i.is_compute()) actions_.compute(n);
    if (i.kind == InstructionKind::Send) actions_.carry(i.transfer());
    if (i.kind == InstructionKind::Collective) {
      const CollectiveCall& c = p_.collective(i);
      if (n == c.member(c.members - 1)) actions_.collective(i.collective());
    }
    times_.end[n] = steady_seconds() - times_.origin;
    ended_[n] = true;
  }

  const Program& p_;
  Actions& actions_;
  IdVector<StreamId, std::deque<InstructionId>> copies_;  ///< Copies that have not been made yet.
  IdVector<InstructionId, char> ended_;
  Times times_;
};

}  // namespace

Times run_on_one_thread(const Program& program, Actions& actions) { return OneThreadExecutor(program, actions).run(); }

}  // namespace stagecraft::real
