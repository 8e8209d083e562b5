// `stagecraft cluster`: builds a network of namespaces that stays up, runs programs on its devices, and lists and
// removes such networks; backends/box does the work.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "backends/box/open_networks.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/experiment.hpp"
#include "tools/stagecraft/box_options.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

constexpr Seconds kPatience{2};  // For processes that are asked to end.
// Programs of a network know its name, for launchers such as mpirun that give cluster exec the name of a device alone.
constexpr const char* kNetwork = "STAGECRAFT_NETWORK";

std::string spaces_text(const box::OpenNetwork& network) {
  const box::Entrance& entrance = network.opened.entrance;
  std::string text;
  const std::vector<double>& shares = network.opened.core_shares;
  for (std::size_t d = 0; d < entrance.addresses.size(); ++d)
    text += fmt::format("  {:<20} {}{}\n", entrance.names[d], entrance.addresses[d],
                        shares.empty() ? "" : fmt::format("  {:.3g} % of a core", 100 * shares[d]));
  if (!network.opened.why_alike.empty())
    text += fmt::format("  programs of all devices are equally fast, though their types are not: {}\n",
                        network.opened.why_alike);
  return text;
}

const box::OpenNetwork& find_network(const std::vector<box::OpenNetwork>& networks, const std::string& name) {
  if (networks.empty()) throw InputError("no network is up", "stagecraft cluster up FILE builds one");
  const auto it = std::find_if(networks.begin(), networks.end(), [&](const auto& n) { return n.name == name; });
  if (it != networks.end()) return *it;
  std::vector<std::string> names;
  for (const box::OpenNetwork& n : networks) names.push_back(n.name);
  if (name.empty() && names.size() == 1) return networks.front();
  if (name.empty()) throw InputError("several networks are up", "name one: " + join(names));
  throw InputError(fmt::format("no network '{}' is up", name), suggest(name, names));
}

int up(const Arguments& a, const std::vector<std::string>& words) {
  if (words.size() != 1) throw InputError("cluster up takes one file", "stagecraft cluster up FILE");
  const Experiment experiment = load_experiment(words[0], a.list("set"));
  const box::NetworkOptions options = box_options(a, *experiment.cluster);
  require_namespaces();
  const std::string name = a.has("name") ? a.text("name") : std::filesystem::path(words[0]).stem().string();
  const box::Network network = box::network_of(*experiment.cluster, {}, options);
  const box::OpenNetwork opened = box::open_network(name, network, !a.flag("no-check"));
  print(fmt::format("network '{}' is up: {}\n{}", name, pluralize(std::ssize(experiment.cluster->devices), "device"),
                    spaces_text(opened)));
  print(readings_text(opened.opened.readings));
  print(fmt::format(
      "\nstagecraft cluster exec {} COMMAND   runs a program there\nstagecraft cluster down {}      ends it\n",
      opened.opened.entrance.names[0], name));
  return 0;
}

/// NETWORK/DEVICE, or DEVICE where one network is up, and in a program of a network.
int exec(const std::vector<std::string>& words) {
  if (words.size() < 2)
    throw InputError("cluster exec takes a device and a program", "stagecraft cluster exec DEVICE COMMAND");
  const std::size_t slash = words[0].find('/');
  const std::vector<box::OpenNetwork> networks = box::open_networks();
  const char* const inside = std::getenv(kNetwork);
  const std::string name = slash != std::string::npos ? words[0].substr(0, slash) : inside ? inside : "";
  const box::OpenNetwork& network = find_network(networks, name);
  const std::string device = slash == std::string::npos ? words[0] : words[0].substr(slash + 1);
  const box::Entrance& entrance = network.opened.entrance;
  const auto devices = static_cast<std::ptrdiff_t>(entrance.addresses.size());
  // A launcher that knows addresses alone, as of mpirun, may give one.
  auto it = std::find(entrance.names.begin(), entrance.names.begin() + devices, device);
  std::ptrdiff_t index = it - entrance.names.begin();
  if (index == devices)
    index = std::find(entrance.addresses.begin(), entrance.addresses.end(), device) - entrance.addresses.begin();
  if (index == devices)
    throw InputError(
        fmt::format("the network '{}' has no device '{}'", network.name, device),
        suggest(device, std::vector<std::string>(entrance.names.begin(), entrance.names.begin() + devices)));
  std::vector<std::string> program(words.begin() + 1, words.end());
  // A first word with a space begins a line for a shell: ssh takes such lines, and mpirun writes them.
  if (program[0].find(' ') != std::string::npos) program = {"sh", "-c", join(program, " ")};
  flush();
  setenv(kNetwork, network.name.c_str(), 1);
  return box::run_in_space(entrance, static_cast<int>(index), program);
}

int down(const std::vector<std::string>& words) {
  if (words.size() > 1) throw InputError("cluster down takes one network", "stagecraft cluster down NAME");
  const std::vector<box::OpenNetwork> networks = box::open_networks();
  const box::OpenNetwork& network = find_network(networks, words.empty() ? "" : words[0]);
  box::close_network(network, kPatience);
  print(fmt::format("network '{}' is down\n", network.name));
  return 0;
}

int list_networks() {
  const std::vector<box::OpenNetwork> networks = box::open_networks();
  if (networks.empty()) print("no network is up\n");
  for (const box::OpenNetwork& n : networks) print(fmt::format("{}\n{}", n.name, spaces_text(n)));
  return 0;
}

int execute_cluster(const Arguments& a) {
  const std::string action = a.text("ACTION");
  const std::vector<std::string> words = a.list("WORDS");
  if (action == "up") return up(a, words);
  if (action == "exec") return exec(words);
  if (action == "down") return down(words);
  if (action == "list") return list_networks();
  throw InputError(fmt::format("'{}' is nothing that cluster does", action),
                   suggest(action, std::vector<std::string>{"up", "exec", "down", "list"}));
}

}  // namespace

extern const Command cluster{
    .name = "cluster",
    .summary = "Build a cluster's network on this machine, for any program: a network namespace for each device",
    .group = "Measure",
    .example =
        "stagecraft cluster up scenarios/boxes/star.yaml\n  stagecraft cluster exec d0 ping -c 3 d1\n"
        "  stagecraft cluster down",
    .arguments = {{"ACTION", Argument::Kind::Text, "up FILE, exec DEVICE COMMAND, list, or down NAME", {}, true},
                  {"WORDS", Argument::Kind::List, "Scenario; or device and program; or network"},
                  {"-s,--set", Argument::Kind::List,
                   "path=value, such as cluster.links.lan.bandwidth=50Mbit/s; may be repeated"},
                  {"--name", Argument::Kind::Text, "Name of the network (default: the file's name)"},
                  queue_argument(),
                  scale_argument(),
                  {"--no-check", Argument::Kind::Flag, "Do not measure the links first"}},
    .run = execute_cluster,
    .runs_program = "exec",
};

}  // namespace stagecraft::commands
