// Starts `stagecraft run` on the cpu backend once for each device that has work, inside the network namespace of the
// device, and reads the times back as a Timeline, for `validate --network`.

#include "tools/stagecraft/network_run.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <set>

#include "sim/core/file.hpp"
#include "sim/core/from_chars.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/real_program.hpp"

namespace stagecraft {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFolderName = "stagecraft-network-";

/// Removes the folders of processes that a signal ended: their names have the number of the process.
void remove_old_folders() {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(fs::temp_directory_path(), ignored)) {
    const std::string name = entry.path().filename();
    pid_t process = 0;
    if (!name.starts_with(kFolderName)) continue;
    from_chars(name.data() + kFolderName.size(), name.data() + name.size(), process);
    if (process > 0 && kill(process, 0) != 0 && errno == ESRCH) fs::remove_all(entry.path(), ignored);
  }
}

/// A folder that is removed with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    remove_old_folders();
    std::string pattern = fs::temp_directory_path() / fmt::format("{}{}-XXXXXX", kFolderName, getpid());
    if (!mkdtemp(pattern.data())) throw BackendError(fmt::format("{}: {}", pattern, std::strerror(errno)));
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

const Program& executed_program(const CompiledExperiment& c, const std::optional<UnfoldedProgram>& unfolded) {
  return unfolded ? unfolded->program : c.program;
}

std::vector<DeviceId> devices_with_work(const Program& program) {
  IdVector<DeviceId, bool> used(program.devices, false);
  for (const Instruction& i : program.instructions) used[i.device] = true;
  std::vector<DeviceId> devices;
  for (const DeviceId d : used.ids())
    if (used[d]) devices.push_back(d);
  return devices;
}

/// The processes of a run. Whatever ends this object ends them.
class Processes {
 public:
  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const auto& [process, output] : outputs_) kill(process, SIGKILL);
    for (const auto& [process, output] : outputs_) waitpid(process, nullptr, 0);
  }

  void start(const box::Entrance& entrance, int space, const std::vector<std::string>& environment, int kept_file,
             const std::vector<std::string>& words, const fs::path& output) {
    const pid_t parent = getpid(), child = fork();
    if (child < 0) throw BackendError(fmt::format("a process: {}", std::strerror(errno)));
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != parent) _exit(1);
      const int file = open(output.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
      for (const int standard : {STDOUT_FILENO, STDERR_FILENO}) dup2(file, standard);
      fcntl(kept_file, F_SETFD, 0);  // The program has it, too.
      for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
      box::start_in_space(entrance, space, words);
    }
    outputs_[child] = output;
  }

  /// Waits for all. BackendError with what the first one that failed has said.
  void wait() {
    std::string failed;
    while (!outputs_.empty()) {
      int status = 0;
      const pid_t id = waitpid(-1, &status, 0);
      if (id < 0 && errno == EINTR) continue;
      const auto it = outputs_.find(id);
      if (it == outputs_.end()) continue;
      if (status != 0 && failed.empty()) failed = read_output(it->second);
      outputs_.erase(it);
    }
    if (!failed.empty()) throw BackendError("the run over the network: " + failed);
  }

 private:
  std::map<pid_t, fs::path> outputs_;  ///< What each process prints.
};

double number_of(std::string_view word) {
  double value = 0;
  from_chars(word.data(), word.data() + word.size(), value);
  return value;
}

/// The times of spans.csv, which has a line for each instruction, in their order.
Timeline timeline_of(const std::string& spans, const Program& program) {
  Timeline timeline;
  timeline.clock = Clock::Host;
  const std::vector<std::string> lines = split(spans, '\n');
  const std::vector<std::string> names = split(lines.front(), ',');
  const auto column = [&](std::string_view name) {
    return std::find(names.begin(), names.end(), name) - names.begin();
  };
  const std::size_t start = column("start_ns"), end = column("end_ns");
  for (std::size_t l = 1; l < lines.size(); ++l) {
    const std::vector<std::string> words = split(lines[l], ',');
    if (words.size() <= std::max(start, end)) continue;
    timeline.start.push_back(number_of(words[start]) * 1e-9);
    timeline.end.push_back(number_of(words[end]) * 1e-9);
  }
  if (timeline.start.size() != program.size())
    throw BackendError(fmt::format("the run over the network has {} instructions and the simulation {}",
                                   timeline.start.size(), program.size()));
  return timeline;
}

}  // namespace

std::vector<RouteEnds> talking_devices(const CompiledExperiment& c) {
  const std::optional<UnfoldedProgram> unfolded = unfold_for_real_run(c);
  const Program& program = executed_program(c, unfolded);
  std::vector<RouteEnds> pairs = program.routes;
  std::vector<std::set<DeviceId>> members(program.collectives.size());
  for (const Instruction& i : program.instructions)
    if (i.kind == InstructionKind::Collective) members[i.collective()].insert(i.device);
  for (const std::set<DeviceId>& group : std::set(members.begin(), members.end()))
    for (const DeviceId a : group)
      for (const DeviceId b : group)
        if (a != b) pairs.push_back({a, b});
  return pairs;
}

Timeline run_in_network(const CompiledExperiment& c, const box::RunningNetwork& network, const std::string& scenario,
                        const std::vector<std::string>& sets, double scale) {
  const TemporaryFolder folder;
  const std::optional<UnfoldedProgram> unfolded = unfold_for_real_run(c);
  const std::vector<DeviceId> devices = devices_with_work(executed_program(c, unfolded));
  std::vector<std::string> hosts;
  const box::Entrance& entrance = network.opened().entrance;
  for (const DeviceId d : devices) hosts.push_back(entrance.addresses[d.value]);
  const std::string program = fs::read_symlink("/proc/self/exe");
  std::vector<std::string> words{program,
                                 "run",
                                 scenario,
                                 "--backend",
                                 "cpu",
                                 "--quiet",
                                 "--no-gantt",
                                 "--out",
                                 folder.path() / "run",
                                 "--set",
                                 "run.compute=emulated",
                                 "--set",
                                 fmt::format("run.time_dilation={}", scale)};
  for (const std::string& set : sets) words.insert(words.end(), {"--set", set});
  Processes processes;
  for (std::size_t rank = 0; rank < devices.size(); ++rank)
    processes.start(entrance, devices[rank].value,
                    {"STAGECRAFT_HOSTS=" + join(hosts, ","), fmt::format("STAGECRAFT_RANK={}", rank),
                     fmt::format("STAGECRAFT_NETWORK_BEGINS={}", network.begin_file())},
                    network.begin_file(), words, folder.path() / fmt::format("output{}", rank));
  processes.wait();
  Timeline timeline = timeline_of(read_output(folder.path() / "run" / "spans.csv"), c.program);
  for (auto* column : {&timeline.start, &timeline.end})
    for (double& seconds : *column) seconds /= scale;
  return timeline;
}

}  // namespace stagecraft
