// Writes the commands that build a network: inputs of `ip -batch` and `tc -batch`, and settings of the kernel, for each
// namespace; running_network.cpp runs them.

#include "backends/box/commands.hpp"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

namespace stagecraft::box {
namespace {

/// As much as two packets may leave at once, or else a queue would wait for each timer of the kernel.
constexpr int kBurst = 3028;
/// Packets of the size that a wire has, in place of many in one piece, so that queues mix them as a wire does.
constexpr const char* kCardSettings = "mtu 1500";
constexpr const char* kPacketSettings = "txqueuelen 5000 gso_max_segs 1";

/// A medium carries the acknowledgements too, one for each two packets.
std::int64_t bits_on_wire(const Network& network, const SharedQueue& queue, Bandwidth rate) {
  const bool is_medium = network.spaces[queue.space].kind == Space::Kind::Medium;
  return static_cast<std::int64_t>(rate.value * 8 * (kPacketOnWire + (is_medium ? kHeaders / 2 : 0)) / kPacketPayload);
}

std::string class_number(std::size_t flow) { return fmt::format("1:{:x}", flow + 2); }

/// Bytes that are under way on the longest round trip at the highest rate of the network.
double bytes_under_way(const Network& network) {
  double longest = 0;
  for (const Route& route : network.routes)
    longest = std::max(longest, route.bandwidth.value * 2 * route.latency.value);
  return longest;
}

/// Packets that wait for a card before one is dropped: the windows of four connections.
int queue_limit(const Network& network) { return static_cast<int>(4 * window(network) / kPacketPayload); }

/// The classes of a card whose queues are fair: all, acknowledgements, the rest, and one for each pair of devices.
class FairClasses {
 public:
  FairClasses(const Network& network, const SharedQueue& queue, Bandwidth rate, const char* verb)
      : card_(queue.card), verb_(verb), rate_(bits_on_wire(network, queue, rate)) {
    const auto members = static_cast<std::int64_t>(queue.flows.size() + 1);
    share_ = std::max<std::int64_t>(std::min<std::int64_t>(8000, rate_), rate_ / members);
  }

  std::string whole() const { return command("1:", "1:1", rate_, ""); }
  std::string acknowledgements() const { return command("1:1", "1:ffe", rate_, "prio 0 "); }
  std::string rest() const { return command("1:1", "1:fff", share_, "prio 1 "); }
  std::string flow(std::size_t number) const { return command("1:1", class_number(number), share_, "prio 1 "); }

 private:
  std::string command(const std::string& parent, const std::string& name, std::int64_t sure, const char* more) const {
    return fmt::format(
        "class {} dev {} parent {} classid {} htb rate {}bit ceil {}bit burst {} cburst {} {}quantum 1514\n", verb_,
        card_, parent, name, sure, rate_, kBurst, kBurst, more);
  }

  const std::string& card_;
  const char* verb_;
  std::int64_t rate_, share_;
};

/// A queue for each pair of devices (classes of HTB, which lend each other their rates), one for what is not from a
/// device, and one that goes first for packets below 128 bytes: acknowledgements.
std::string fair_commands(const Network& network, const SharedQueue& queue) {
  const std::string& card = queue.card;
  const FairClasses classes(network, queue, queue.rate, "add");
  std::string text = fmt::format("qdisc replace dev {} root handle 1: htb default fff\n", card);
  text += classes.whole() + classes.acknowledgements();
  text += fmt::format("qdisc add dev {} parent 1:ffe pfifo limit 1000\n", card);
  // The length of an IP packet is at its third byte.
  text += fmt::format("filter add dev {} parent 1: protocol ip prio 1 u32 match u16 0x0000 0xff80 at 2 flowid 1:ffe\n",
                      card);
  text += classes.rest();
  text += fmt::format("qdisc add dev {} parent 1:fff pfifo limit 400\n", card);
  for (std::size_t f = 0; f < queue.flows.size(); ++f) {
    const RouteEnds& pair = network.flows[queue.flows[f]];
    text += classes.flow(f);
    text += fmt::format("qdisc add dev {} parent {} pfifo limit {}\n", card, class_number(f), queue_limit(network));
    text += fmt::format(
        "filter add dev {} parent 1: protocol ip prio 2 u32 match ip src {} match ip dst {} flowid {}\n", card,
        network.spaces[pair.from.value].address, network.spaces[pair.to.value].address, class_number(f));
  }
  return text;
}

std::string fifo_commands(const Network& network, const SharedQueue& queue, Bandwidth rate) {
  return fmt::format("qdisc replace dev {} root tbf rate {}bit burst {} limit 4000000\n", queue.card,
                     bits_on_wire(network, queue, rate), kBurst);
}

}  // namespace

double window(const Network& network) { return 2 * bytes_under_way(network) + 128e3; }

std::vector<std::pair<std::string, std::string>> kernel_settings(const Network& network, const Space& space) {
  std::vector<std::pair<std::string, std::string>> settings{
      {"net/ipv4/conf/all/rp_filter", "0"},
      {"net/ipv4/conf/default/rp_filter", "0"},
      {"net/ipv4/conf/all/send_redirects", "0"},
      {"net/ipv4/conf/default/send_redirects", "0"},
      // A connection that was idle goes on as fast as it was, and a new one does not begin with what another knew.
      {"net/ipv4/tcp_slow_start_after_idle", "0"},
      {"net/ipv4/tcp_no_metrics_save", "1"},
      {"net/ipv6/conf/all/disable_ipv6", "1"},
      {"net/ipv6/conf/default/disable_ipv6", "1"},
  };
  if (space.kind != Space::Kind::Device) settings.push_back({"net/ipv4/ip_forward", "1"});
  // The kernel lets half of the buffer of a receiver be under way.
  if (network.options.queue == Queue::Fair)
    settings.push_back({"net/ipv4/tcp_rmem", fmt::format("4096 131072 {:.0f}", 2 * window(network))});
  return settings;
}

std::string cable_commands(const Network& network, int space, const std::vector<std::string>& namespaces) {
  std::string text;
  for (const Cable& cable : network.cables)
    if (cable.spaces[0] == space && !has_latency(network, cable))
      text += fmt::format("link add {} {} type veth peer name {} {} netns {}\n", cable.cards[0], kCardSettings,
                          cable.cards[1], kCardSettings, namespaces[cable.spaces[1]]);
  return text;
}

std::string address_commands(const Network& network, int space) {
  const Space& here = network.spaces[space];
  std::string text = "link set lo up\n";
  if (here.kind == Space::Kind::Medium) text += "link add ifb0 type ifb\nlink set ifb0 up\n";
  for (const Cable& cable : network.cables)
    for (const int end : {0, 1})
      if (cable.spaces[end] == space) {
        const std::string &card = cable.cards[end], &address = cable.addresses[end];
        // All devices seem to be in one network: programs such as MPI use cards with addresses that look so.
        text += fmt::format("link set {} {} {} up\naddr add {} dev {} noprefixroute\nroute add {}/32 dev {}\n", card,
                            kCardSettings, kPacketSettings, address + (address == here.address ? "/16" : "/32"), card,
                            cable.addresses[1 - end], card);
      }
  int table = 100;
  for (const Forwarding& way : network.forwarding) {
    if (way.space != space) continue;
    const Cable& cable = network.cables[way.cable];
    const std::string &to = network.spaces[way.to].address, &next = cable.addresses[1 - way.end];
    std::string route =
        fmt::format("route replace {}/32 {} dev {}", to, to == next ? "" : "via " + next, cable.cards[way.end]);
    if (!here.address.empty()) route += " src " + here.address;
    if (way.from >= 0) {
      text += fmt::format("rule add from {} to {} lookup {}\n", network.spaces[way.from].address, to, table);
      route += fmt::format(" table {}", table++);
    }
    text += route + "\n";
  }
  return text;
}

bool has_latency(const Network& network, const Cable& cable) {
  double longest = cable.latency.value;
  for (const Change& change : network.cluster.changes)
    if (std::find(change.links.begin(), change.links.end(), cable.link) != change.links.end())
      longest = std::max(longest, cable.latency.value * change.latency);
  return longest >= kLeastLatency.value;
}

std::string rate_commands(const Network& network, const SharedQueue& queue, Bandwidth rate) {
  if (network.options.queue == Queue::Fifo) return fifo_commands(network, queue, rate);
  const FairClasses classes(network, queue, rate, "change");
  std::string text = classes.whole() + classes.acknowledgements() + classes.rest();
  for (std::size_t f = 0; f < queue.flows.size(); ++f) text += classes.flow(f);
  return text;
}

std::string queue_commands(const Network& network, int space) {
  std::string text;
  for (const SharedQueue& queue : network.queues)
    if (queue.space == space)
      text += network.options.queue == Queue::Fair ? fair_commands(network, queue)
                                                   : fifo_commands(network, queue, queue.rate);
  if (network.spaces[space].kind != Space::Kind::Medium) return text;
  // What any station sends goes through the one queue of the medium before it is forwarded.
  for (const Cable& cable : network.cables)
    if (cable.spaces[1] == space)
      text += fmt::format(
          "qdisc add dev {0} ingress\nfilter add dev {0} parent ffff: protocol all u32 match u32 0 0 action mirred "
          "egress redirect dev ifb0\n",
          cable.cards[1]);
  return text;
}

}  // namespace stagecraft::box
