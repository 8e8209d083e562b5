// Builds a network of namespaces in a process that holds it, applies the changes of its links, and runs programs
// inside.

#include "backends/box/running_network.hpp"

#include <fmt/core.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <map>
#include <thread>

#include "backends/box/commands.hpp"
#include "backends/box/cpu_groups.hpp"
#include "backends/box/link_changes.hpp"
#include "backends/box/namespaces.hpp"
#include "backends/box/relay.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/json_reader.hpp"
#include "sim/core/text.hpp"

namespace stagecraft::box {
namespace {

/// What a link that is down carries, as a share of its rate. A queue cannot stop, and one that is too slow still waits
/// for its last packet when the link is up again.
constexpr double kDownRate = 0.02;

/// A network while this process builds and holds it.
class HeldNetwork {
 public:
  explicit HeldNetwork(const Network& network) : network_(network) {
    become_administrator();
    for (const Space& space : network.spaces) make_space(space);
    make_cables();
    for (std::size_t s = 0; s < files_.size(); ++s) {
      const int space = static_cast<int>(s);
      run_in_namespace(file(space), "ip", {"-batch", "-"}, address_commands(network, space));
      run_in_namespace(file(space), "tc", {"-batch", "-"}, queue_commands(network, space));
    }
  }

  ~HeldNetwork() {
    const std::uint64_t one = 1;
    if (write(stop_.number(), &one, sizeof one) <= 0) std::terminate();  // The threads would never end.
    for (std::thread* thread : {&relaying_, &changing_})
      if (thread->joinable()) thread->join();
  }
  HeldNetwork(const HeldNetwork&) = delete;
  HeldNetwork& operator=(const HeldNetwork&) = delete;

  BuiltNetwork opened(bool check) {
    BuiltNetwork opened;
    opened.entrance.holder = getpid();
    opened.congestion_control = control_;
    for (std::size_t s = 0; s < files_.size(); ++s) {
      opened.entrance.files.push_back(file(static_cast<int>(s)));
      opened.entrance.names.push_back(network_.spaces[s].name);
      if (!network_.spaces[s].address.empty()) opened.entrance.addresses.push_back(network_.spaces[s].address);
    }
    if (check) opened.readings = check_links(network_, opened.entrance.files);
    return opened;
  }

  void change_links_from(int begin) {
    changing_ = std::thread([this, begin] {
      try {
        apply_link_changes(network_, begin, stop_.number(),
                           [this](LinkId link, const Condition& condition) { change(link, condition); });
      } catch (const BackendError& e) {
        fmt::print(stderr, "failed: {}\n", e.what());
        _exit(4);  // The network goes with this process, so that the run over it fails too.
      }
    });
  }

 private:
  int file(int space) const { return files_[space].number(); }

  void change(LinkId link, const Condition& condition) {
    const double rate = condition.down || condition.rate <= 0 ? kDownRate : condition.rate;
    for (const SharedQueue& queue : network_.queues)
      if (queue.link == link)
        run_in_namespace(file(queue.space), "tc", {"-batch", "-"}, rate_commands(network_, queue, queue.rate * rate));
    for (const auto& [cable, number] : relayed_)
      if (cable->link == link) relay_.set_latency(number, cable->latency * condition.latency);
  }

  void make_space(const Space& space) {
    files_.push_back(make_namespace());
    const int here = files_.back().number();
    for (const auto& [setting, value] : kernel_settings(network_, space)) set_in_namespace(here, setting, value);
    // What this system prefers may pace its packets, or measure rates differently; these fill a queue as most do.
    for (const char* control : {"cubic", "reno"})
      if (set_in_namespace(here, "net/ipv4/tcp_congestion_control", control)) {
        control_ = control;
        break;
      }
  }

  void make_cables() {
    std::vector<std::string> paths;
    for (const OpenFile& f : files_) paths.push_back(fmt::format("/proc/{}/fd/{}", getpid(), f.number()));
    for (std::size_t s = 0; s < files_.size(); ++s)
      run_in_namespace(files_[s].number(), "ip", {"-batch", "-"}, cable_commands(network_, static_cast<int>(s), paths));
    for (const Cable& cable : network_.cables) {
      if (!has_latency(network_, cable)) continue;
      relayed_[&cable] = relayed_.size();
      enter_namespace(file(cable.spaces[0]));
      OpenFile first = make_card(cable.cards[0]);
      enter_namespace(file(cable.spaces[1]));
      relay_.connect(std::move(first), make_card(cable.cards[1]), cable.latency);
    }
    if (!relay_.empty()) relaying_ = std::thread([this] { relay_.run(stop_.number()); });
  }

  const Network& network_;
  std::vector<OpenFile> files_;
  std::string control_;  ///< Empty: what this system prefers.
  LatencyRelay relay_;
  std::map<const Cable*, std::size_t> relayed_;  ///< The cables of the relay, and their numbers there.
  OpenFile stop_{eventfd(0, EFD_CLOEXEC)};
  std::thread relaying_, changing_;
};

void wait_until_readable(int file) {
  pollfd polled{file, POLLIN, 0};
  while (poll(&polled, 1, -1) < 0 && errno == EINTR) {
  }
}

}  // namespace

std::string Entrance::hosts() const {
  std::string text = "127.0.0.1 localhost\n";
  for (std::size_t d = 0; d < addresses.size(); ++d) text += fmt::format("{} {}\n", addresses[d], names[d]);
  return text;
}

void hold_network(const Network& network, bool check, const std::function<void(const BuiltNetwork&)>& opened, int stop,
                  int begin) {
  HeldNetwork running(network);
  opened(running.opened(check));
  if (begin >= 0 && !network.cluster.changes.empty()) running.change_links_from(begin);
  wait_until_readable(stop);
}

RunningNetwork::RunningNetwork(const Network& network, bool check)
    : begin_(eventfd(0, EFD_CLOEXEC)),
      holder_(std::make_unique<ChildProcess>(ChildOptions{.own_group = true}, [&](MessageSocket& socket) {
        try {
          hold_network(
              network, check, [&](const BuiltNetwork& o) { socket.send("+" + to_json(o)); }, socket.file(),
              begin_file());
        } catch (const std::exception& e) {
          socket.send(fmt::format("-{}", e.what()));
        }
      })) {
  const std::optional<std::string> answer = holder_->socket().wait_for_next();
  if (!answer) throw BackendError("the process that builds the network has ended before it was ready");
  if (answer->front() == '-') throw BackendError(answer->substr(1));
  opened_ = read_network(answer->substr(1));
}

void start_in_space(const Entrance& entrance, int space, const std::vector<std::string>& words) noexcept {
  try {
    if (!entrance.cpu_groups.empty()) enter_cpu_group(entrance.cpu_groups, space);
    if (!join_namespace(entrance.holder, entrance.files[space], entrance.names[space], entrance.hosts()))
      fmt::print(stderr, "note: /etc/hosts cannot be replaced here, so devices have addresses but no names: {}\n",
                 join(entrance.addresses));
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execvp(arguments[0], arguments.data());
    fmt::print(stderr, "failed: the program '{}': {}\n", words[0], std::strerror(errno));
  } catch (const std::exception& e) {
    fmt::print(stderr, "failed: {}\n", e.what());
  }
  std::fflush(stderr);
  _exit(127);
}

int run_in_space(const Entrance& entrance, int space, const std::vector<std::string>& words) {
  // A process with threads, as this one may be, cannot enter the user namespace of a network.
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw BackendError(fmt::format("a process: {}", std::strerror(errno)));
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(1);
    start_in_space(entrance, space, words);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

std::string to_json(const BuiltNetwork& opened) {
  Json::Array spaces, readings, shares;
  for (std::size_t s = 0; s < opened.entrance.files.size(); ++s)
    spaces.push_back(
        Json::Object{{"name", opened.entrance.names[s]},
                     {"file", opened.entrance.files[s]},
                     {"address", s < opened.entrance.addresses.size() ? opened.entrance.addresses[s] : std::string()}});
  for (const RateReading& r : opened.readings)
    readings.push_back(Json::Object{{"what", r.what}, {"nominal", r.nominal}, {"measured", r.measured}});
  for (const double share : opened.core_shares) shares.push_back(share);
  return Json(Json::Object{{"holder", opened.entrance.holder},
                           {"congestion_control", opened.congestion_control},
                           {"cpu_groups", opened.entrance.cpu_groups},
                           {"core_shares", shares},
                           {"why_alike", opened.why_alike},
                           {"spaces", spaces},
                           {"readings", readings}})
      .dump();
}

BuiltNetwork read_network(const std::string& text) {
  const Json json = parse_json(text);
  BuiltNetwork opened;
  opened.entrance.holder = static_cast<pid_t>(json.at("holder").number());
  // Networks that another version left open do not have it.
  if (const Json* control = json.find("congestion_control")) opened.congestion_control = control->text();
  if (const Json* groups = json.find("cpu_groups")) opened.entrance.cpu_groups = groups->text();
  if (const Json* why = json.find("why_alike")) opened.why_alike = why->text();
  if (const Json* shares = json.find("core_shares"))
    for (const Json& share : shares->items()) opened.core_shares.push_back(share.number());
  for (const Json& space : json.at("spaces").items()) {
    opened.entrance.files.push_back(static_cast<int>(space.at("file").number()));
    opened.entrance.names.push_back(space.at("name").text());
    if (!space.at("address").text().empty()) opened.entrance.addresses.push_back(space.at("address").text());
  }
  for (const Json& r : json.at("readings").items())
    opened.readings.push_back({r.at("what").text(), r.at("nominal").number(), r.at("measured").number()});
  return opened;
}

}  // namespace stagecraft::box
