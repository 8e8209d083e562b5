// Waits until enqueued work has ended, without a call that blocks in the driver, and reports what a stuck GPU did not
// finish.

#include "backends/cuda/completion_watch.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "backends/real/program_executor.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::cuda {

CompletionWatch::CompletionWatch(const Program& program, const InstructionEvents& events, double timeout)
    : p_(program), events_(events), timeout_(timeout) {}

bool CompletionWatch::poll(std::size_t queue) {
  next_.resize(std::max(next_.size(), events_.of_queue.size()), 0);
  const std::vector<int>& list = events_.of_queue[queue];
  bool moved = false;
  while (next_[queue] < list.size() && events_.is_over(list[next_[queue]])) {
    ++next_[queue];
    moved = true;
  }
  return moved;
}

void CompletionWatch::until(const std::function<bool()>& done) {
  real::Nap nap;
  double since = real::steady_seconds();
  while (!done()) {
    bool moved = false;
    for (std::size_t q = 0; q < events_.of_queue.size(); ++q) moved = poll(q) || moved;
    if (moved) nap.reset();
    const ProgressEvent news = news_of_all(moved);
    throw_if_over(news);
    if (moved || news == ProgressEvent::Moved)
      since = real::steady_seconds();
    else if (news == ProgressEvent::Alone && real::steady_seconds() - since > timeout_)
      stuck();
    between_looks_();
    if (!moved) nap();
  }
}

ProgressEvent CompletionWatch::news_of_all(bool moved) const try {
  return beat_(moved);
} catch (const BackendError& e) {  // What the first process says or a lost connection: this adds what is known here.
  throw BackendError(fmt::format("{}:\n{}", e.what(), whereabouts()));
}

void CompletionWatch::throw_if_over(ProgressEvent news) const {
  if (news == ProgressEvent::Stuck) stuck();
  if (news == ProgressEvent::Stop) throw BackendError("told to stop in the middle of the run:\n" + whereabouts());
  if (news == ProgressEvent::Silent)
    throw BackendError(fmt::format("another process has not answered for {:.3g} s:\n{}", timeout_, whereabouts()));
}

void CompletionWatch::keep_up(int queue, std::size_t max_marks) {
  const std::size_t q = queue;
  if (events_.of_queue[q].size() <= max_marks) return;
  poll(q);
  until([&] { return events_.of_queue[q].size() - next_[q] <= max_marks; });
}

void CompletionWatch::finish() {
  for (std::size_t q = 0; q < events_.of_queue.size(); ++q) poll(q);
  until([&] {
    for (std::size_t q = 0; q < events_.of_queue.size(); ++q)
      if (next_[q] < events_.of_queue[q].size()) return false;
    return true;
  });
}

void CompletionWatch::stuck() const {
  throw BackendError(fmt::format("nothing has ended for {:.3g} s, so the GPU is stuck:\n{}", timeout_, whereabouts()));
}

std::string CompletionWatch::whereabouts() const {
  std::vector<bool> ended(p_.size(), true);
  for (std::size_t n = 0; n < p_.size(); ++n) ended[n] = events_.is_over(n);
  return real::waiting(p_, ended, here_);
}

}  // namespace stagecraft::cuda
