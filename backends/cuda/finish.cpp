#include "backends/cuda/finish.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/real/program_executor.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

Watch::Watch(const Program& program, const Marks& marks, double timeout)
    : p_(program), marks_(marks), timeout_(timeout) {}

bool Watch::poll(std::size_t queue) {
  next_.resize(std::max(next_.size(), marks_.of_queue.size()), 0);
  const std::vector<int>& list = marks_.of_queue[queue];
  bool moved = false;
  while (next_[queue] < list.size() && marks_.end[list[next_[queue]]]->over()) {
    ++next_[queue];
    moved = true;
  }
  return moved;
}

void Watch::until(const std::function<bool()>& done) {
  real::Nap nap;
  double since = real::steady_seconds();
  while (!done()) {
    bool moved = false;
    for (std::size_t q = 0; q < marks_.of_queue.size(); ++q) moved = poll(q) || moved;
    if (moved) nap.reset();
    const ProgressEvent news = beat_(moved);
    throw_if_over(news);
    if (moved || news == ProgressEvent::Moved)
      since = real::steady_seconds();
    else if (news == ProgressEvent::Alone && real::steady_seconds() - since > timeout_)
      stuck();
    if (!moved) nap();
  }
}

void Watch::throw_if_over(ProgressEvent news) const {
  if (news == ProgressEvent::Stuck) stuck();
  if (news == ProgressEvent::Stop) throw BackendError("told to stop in the middle of the run:\n" + whereabouts());
  if (news == ProgressEvent::Silent)
    throw BackendError(fmt::format("another process has not answered for {:.3g} s:\n{}", timeout_, whereabouts()));
}

void Watch::keep_up(int queue, std::size_t max_marks) {
  const std::size_t q = queue;
  if (marks_.of_queue[q].size() <= max_marks) return;
  poll(q);
  until([&] { return marks_.of_queue[q].size() - next_[q] <= max_marks; });
}

void Watch::finish() {
  for (std::size_t q = 0; q < marks_.of_queue.size(); ++q) poll(q);
  until([&] {
    for (std::size_t q = 0; q < marks_.of_queue.size(); ++q)
      if (next_[q] < marks_.of_queue[q].size()) return false;
    return true;
  });
}

void Watch::stuck() const {
  throw BackendError(fmt::format("nothing has ended for {:.3g} s, so the GPU is stuck:\n{}", timeout_, whereabouts()));
}

std::string Watch::whereabouts() const {
  std::vector<bool> ended(p_.size(), true);
  for (std::size_t n = 0; n < p_.size(); ++n) ended[n] = marks_.end[n] && marks_.end[n]->over();
  return real::waiting(p_, ended, here_);
}

namespace {

/// The clock of one GPU. Milliseconds come as floats, which are fine over one iteration and coarse over a run, so each
/// iteration is measured from the start of the one before.
struct DeviceClock {
  std::vector<const Event*> anchors;  ///< The gate, then the first instruction of each iteration but the first.
  std::vector<double> base;           ///< Seconds from the gate to each anchor.

  void reach(std::size_t iteration, const Event& start) {
    while (anchors.size() <= iteration) {
      base.push_back(base.back() + 1e-3 * start.milliseconds_since(*anchors.back()));
      anchors.push_back(&start);
    }
  }
  double at(std::size_t iteration, const Event& event) const {
    const std::size_t from = iteration == 0 ? 0 : iteration - 1;
    return base[from] + 1e-3 * event.milliseconds_since(*anchors[from]);
  }
};

}  // namespace

void read_times(const Program& p, const Marks& marks, IdVector<InstructionId, double>& start,
                IdVector<InstructionId, double>& end) {
  std::vector<DeviceClock> clocks;
  for (const Event* const gate : marks.gates) clocks.push_back({{gate}, {0}});
  start.resize(p.size());
  end.resize(p.size());
  for (const InstructionId n : p.instructions.ids()) {
    if (!marks.start[n.value]) continue;  // It runs in another process.
    const std::size_t iteration = p.iteration_of(p.at(n));
    DeviceClock& clock = clocks[marks.gpu[n.value]];
    clock.reach(iteration, *marks.start[n.value]);
    start[n] = clock.at(iteration, *marks.start[n.value]);
    end[n] = clock.at(iteration, *marks.end[n.value]);
  }
}

namespace {

/// Seconds since the gate, event by event: floats are fine from each to the next.
class Steps {
 public:
  explicit Steps(const Event* gate) : last_(gate) {}
  double to(const Event& event) {
    const double now = seconds_ + 1e-3 * event.milliseconds_since(*last_);
    if (now > seconds_) seconds_ = now, last_ = &event;
    return now;
  }

 private:
  const Event* last_;
  double seconds_ = 0;
};

}  // namespace

IdVector<InstructionId, double> read_iteration_ends(const Program& p, const Marks& marks,
                                                    const std::vector<EndEvent>& ends) {
  IdVector<InstructionId, double> end(p.size(), 0);
  if (!marks.iterations.empty()) {
    std::vector<double> last;
    Steps steps(marks.iterations.front());
    for (const Event* const event : marks.iterations) last.push_back(steps.to(*event));
    for (const InstructionId n : p.instructions.ids())
      end[n] = last[static_cast<std::size_t>(p.iteration_of(p.at(n))) + 1];
  } else {
    std::vector<Steps> clocks;
    for (const Event* const gate : marks.gates) clocks.emplace_back(gate);
    for (const InstructionId n : p.instructions.ids())
      if (ends[n.value] == EndEvent::Timed && marks.end[n.value])
        end[n] = clocks[marks.gpu[n.value]].to(*marks.end[n.value]);
  }
  return end;
}

}  // namespace stagecraft::cuda
