// Waits for short messages of other processes, with deadlines, over whatever connects them (MPI or TCP).

#include "backends/real/processes/wire.hpp"

#include <fmt/core.h>
#include <utility>

#include "backends/real/processes/meeting.hpp"

namespace stagecraft::real {

Deadline deadline_after(Patience patience) {
  using Clock = std::chrono::steady_clock;
  return Clock::now() + std::chrono::duration_cast<Clock::duration>(patience);
}

bool wait_for(const std::function<bool()>& holds, Deadline deadline) {
  for (Nap nap; !holds(); wire().idle(nap))
    if (std::chrono::steady_clock::now() > deadline) return false;
  return true;
}

bool wait_while_moving(const std::function<bool()>& holds, Patience patience) {
  std::uint64_t progress = wire().progress();
  Deadline deadline = deadline_after(patience);
  for (Nap nap; !holds(); wire().idle(nap)) {
    const std::uint64_t now = wire().progress();
    if (std::exchange(progress, now) != now) deadline = deadline_after(patience);
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
  return true;
}

namespace {

/// `wait` waits until what it is given holds, or no longer.
std::optional<std::string> receive(int from, WordKind kind,
                                   const std::function<void(const std::function<bool()>&)>& wait) {
  std::optional<std::string> text;
  bool fails = false;
  const auto is_over = [&] {
    fails = kind != WordKind::Ending && is_failing(from);
    return (text = wire().take(from, kind)) || fails || !wire().loss(from).empty();
  };
  wait(is_over);
  if (!text) text = wire().take(from, kind);  // Another thread may have heard it together with the loss.
  if (!text && fails) throw FailedElsewhere();
  return text;
}

}  // namespace

std::optional<std::string> receive_text(int from, WordKind kind, Deadline deadline) {
  return receive(from, kind, [&](const auto& is_over) { wait_for(is_over, deadline); });
}

std::optional<std::string> receive_large_text(int from, WordKind kind, Patience patience) {
  return receive(from, kind, [&](const auto& is_over) { wait_while_moving(is_over, patience); });
}

bool is_failing(int process) {
  return wire().is_coming(process, WordKind::Ending) || wire().is_coming(process, WordKind::Failure);
}

std::unique_ptr<RemoteMembers> remote_members(int first, std::vector<int> owners) {
  return wire().members(first, std::move(owners));
}

void MessageTransport::note_failure(const std::string& why) { limit_the_end({4, "failed: " + why}); }

std::string process_name(int process) {
  const std::string address = wire().address(process);
  return fmt::format("process {} of {}{}", process, wire().world().size,
                     address.empty() ? "" : fmt::format(" ({})", address));
}

}  // namespace stagecraft::real
