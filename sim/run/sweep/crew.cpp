#include "sim/run/sweep/crew.hpp"

#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using Json = nlohmann::json;
constexpr char kEnd = 'e', kFailed = 'f';  // How a text of the crew begins.

void lead(int file, const WorkerOptions& options, const std::function<std::string(int)>& work) {
  Line line(file);
  Workers workers(options, work);
  for (bool there = true; there;) {
    there = line.listen();
    while (const auto job = line.take()) workers.give(std::stoi(*job));
    for (const JobEnd& end : workers.wait(file)) there = line.send(kEnd + to_bytes(end)) && there;
  }
}

/// No exception leaves it, as this is not the program's main road.
[[noreturn]] void be_crew(int file, pid_t parent, const WorkerOptions& options,
                          const std::function<std::string(int)>& work) noexcept {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It died before it could be asked for.
  setpgid(0, 0);                      // Ctrl-C is for the parent.
  try {
    lead(file, options, work);
  } catch (const std::exception& e) {
    Line(file).send(std::string(1, kFailed) + e.what());
  }
  _exit(0);  // Not exit: the parent's buffers and exit handlers are not ours.
}

}  // namespace

std::string to_bytes(const JobEnd& end) {
  std::string bytes;
  const Json::binary_t text(std::vector<std::uint8_t>(end.text.begin(), end.text.end()));
  Json::to_cbor({end.job, static_cast<int>(end.how), end.seconds, text}, bytes);
  return bytes;
}

JobEnd job_end_from_bytes(const std::string& bytes) {
  const Json json = Json::from_cbor(bytes);
  const auto& text = json[3].get_binary();
  return {json[0], static_cast<JobEnd::How>(json[1].get<int>()), std::string(text.begin(), text.end()), json[2]};
}

Crew::Crew(const WorkerOptions& options, const std::function<std::string(int)>& work) : workers_(options.workers) {
  const auto [ours, theirs] = open_line();
  std::fflush(nullptr);  // Or text in a buffer is written twice.
  const pid_t parent = getpid();
  id_ = fork();
  if (id_ == 0) {
    close(ours);
    be_crew(theirs, parent, options, work);
  }
  close(theirs);
  line_ = Line(ours);
  if (id_ > 0) return;
  close(ours);
  throw BackendError(fmt::format("fork: {}", std::strerror(errno)));
}

Crew::~Crew() {
  kill(id_, SIGKILL);  // Its workers die with it.
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(line_.file());
}

std::vector<std::string> Crew::wait(int milliseconds) {
  pollfd ready{line_.file(), POLLIN, 0};
  poll(&ready, 1, milliseconds);
  const bool alive = line_.listen();
  std::vector<std::string> ends;
  while (auto text = line_.take()) {
    if (text->front() == kFailed) throw BackendError("the workers' parent: " + text->substr(1));
    ends.push_back(text->substr(1));
  }
  if (!alive && ends.empty()) throw BackendError("the process that the workers belong to has died");
  return ends;
}

}  // namespace stagecraft
