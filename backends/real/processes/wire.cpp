#include "backends/real/processes/wire.hpp"

#include <fmt/core.h>

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

std::optional<std::string> receive_text(int from, WordKind kind, Deadline deadline) {
  std::optional<std::string> text;
  bool fails = false;
  const auto is_over = [&] {
    fails = kind != WordKind::Ending && is_failing(from);
    return (text = wire().take(from, kind)) || fails || !wire().loss(from).empty();
  };
  wait_for(is_over, deadline);
  if (!text) text = wire().take(from, kind);  // Another thread may have heard it together with the loss.
  if (!text && fails) throw FailedElsewhere();
  return text;
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
