// Sends TCP transfers over each link of a network that was just built, one alone and two at once, and compares their
// rates with the nominal ones (`cluster up`, `validate --network`).

#include "backends/box/link_check.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <set>

#include "backends/box/commands.hpp"
#include "backends/box/namespaces.hpp"
#include "backends/fluid/fair_share.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/numbers.hpp"

namespace stagecraft::box {
namespace {

constexpr std::size_t kMostPairs = 8;
constexpr double kPackets = 600;        // In a reading: one more or less is 0.2 %.
constexpr double kFirstPackets = 40;    // Before a reading begins, and this many round trips:
constexpr double kRoundTrips = 14;      // a new connection needs them until it sends at the rate of its link.
constexpr double kMachineDelay = 1e-3;  // Seconds of a round trip that the links have no part in, at most.
constexpr double kDrains = 4;           // Windows that leave before two flows share evenly.
constexpr double kLeastWindow = 0.15;   // Seconds of a reading.

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

[[noreturn]] void fail_check(const char* what) {
  throw BackendError(fmt::format("the check of the links: {}: {}", what, std::strerror(errno)));
}

sockaddr_in address_of(const std::string& text, std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  return address;
}

/// A connection between two namespaces. Both ends belong to this process, so one clock sees them.
class Transfer {
 public:
  Transfer(int from_space, const std::string& from, int to_space, const std::string& to) {
    enter_namespace(to_space);
    const OpenFile listening(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in here = address_of(to, 0);
    socklen_t size = sizeof here;
    if (bind(listening.number(), reinterpret_cast<sockaddr*>(&here), size) != 0 || listen(listening.number(), 1) != 0 ||
        getsockname(listening.number(), reinterpret_cast<sockaddr*>(&here), &size) != 0)
      fail_check(to.c_str());
    enter_namespace(from_space);
    sending_ = OpenFile(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in source = address_of(from, 0);
    if (bind(sending_.number(), reinterpret_cast<sockaddr*>(&source), sizeof source) != 0 ||
        connect(sending_.number(), reinterpret_cast<sockaddr*>(&here), size) != 0)
      fail_check(to.c_str());
    receiving_ = OpenFile(accept4(listening.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (receiving_.number() < 0) fail_check(to.c_str());
    fcntl(sending_.number(), F_SETFL, O_NONBLOCK);
  }

  pollfd to_send() const { return {sending_.number(), POLLOUT, 0}; }
  pollfd to_receive() const { return {receiving_.number(), POLLIN, 0}; }

  void send_some() const {
    static const std::vector<char> data(1 << 16);
    while (send(sending_.number(), data.data(), data.size(), MSG_NOSIGNAL) > 0) {
    }
  }
  /// Notes each arrival, so that a reading begins and ends with one.
  void receive_some(double now) {
    static std::vector<char> data(1 << 16);
    std::size_t came = 0;
    for (ssize_t n = 0; (n = recv(receiving_.number(), data.data(), data.size(), 0)) > 0;) came += n;
    if (came > 0) arrivals_.push_back({now, total_ += static_cast<double>(came)});
  }
  /// Bytes in a second between the first arrivals after `begin` and the last before `end`.
  double rate(double begin, double end) const {
    const auto after = [](double time) { return [time](const Arrival& a) { return a.time >= time; }; };
    const auto first = std::find_if(arrivals_.begin(), arrivals_.end(), after(begin));
    auto last = std::find_if(arrivals_.begin(), arrivals_.end(), after(end));
    if (last == arrivals_.begin() || first >= --last) return 0;
    return (last->total - first->total) / (last->time - first->time);
  }

 private:
  struct Arrival {
    double time, total;
  };
  OpenFile sending_, receiving_;
  std::vector<Arrival> arrivals_;
  double total_ = 0;
};

/// All send as fast as they may until `end`.
void run(std::vector<Transfer>& transfers, double end) {
  const Clock::time_point start = Clock::now();
  for (double now = 0; now < end; now = seconds_since(start)) {
    std::vector<pollfd> polled;
    for (const Transfer& t : transfers) polled.insert(polled.end(), {t.to_send(), t.to_receive()});
    if (poll(polled.data(), polled.size(), 10) < 0 && errno != EINTR) fail_check("poll");
    now = seconds_since(start);
    for (std::size_t t = 0; t < transfers.size(); ++t) {
      if (polled[2 * t].revents != 0) transfers[t].send_some();
      if (polled[2 * t + 1].revents != 0) transfers[t].receive_some(now);
    }
  }
}

/// Two ends of a transfer: namespaces and addresses.
struct Ends {
  int from = 0, to = 0;
  std::string from_address, to_address;
};

/// The rates of transfers at the same time, which are nominally at least this fast, over ways with at most this
/// latency.
std::vector<double> measure(const std::vector<Ends>& ends, double slowest, Seconds latency, double window) {
  const double packet = kPacketPayload / slowest;
  // Two flows share evenly when what one of them sent before has drained from its queues.
  const double drain = ends.size() > 1 ? kDrains * window / slowest : 0;
  const double begin = kRoundTrips * (2 * latency.value + kMachineDelay) + kFirstPackets * packet + drain;
  const double end = begin + std::max(kLeastWindow + kRoundTrips * latency.value, kPackets * packet);
  std::vector<Transfer> transfers;
  for (const Ends& e : ends) transfers.emplace_back(e.from, e.from_address, e.to, e.to_address);
  run(transfers, end);
  std::vector<double> rates;
  for (const Transfer& t : transfers) rates.push_back(t.rate(begin, end));
  return rates;
}

class LinkChecker {
 public:
  LinkChecker(const Network& network, const std::vector<int>& namespaces)
      : network_(network), namespaces_(namespaces) {}

  std::vector<RateReading> check() {
    for (const Cable& cable : network_.cables)
      if (cable.rate.value > 0)
        for (const int from : {0, 1}) check_cable(cable, from);
    for (const SharedQueue& queue : network_.queues)
      if (network_.spaces[queue.space].kind == Space::Kind::Medium) check_medium(queue);
    for (const SharedQueue& queue : network_.queues)
      if (queue.flows.size() > 1 && pairs_.size() < kMostPairs) check_pair(queue);
    return std::move(readings_);
  }

 private:
  void check_cable(const Cable& cable, int from) {
    const int a = cable.spaces[from], b = cable.spaces[1 - from];
    const Link& link = network_.cluster.links[cable.link];
    read({fmt::format("link {}, {} to {}", link.name, network_.spaces[a].name, network_.spaces[b].name)},
         {{namespaces_[a], namespaces_[b], cable.addresses[from], cable.addresses[1 - from]}}, link.bandwidth.value,
         cable.latency);
  }

  /// One flow of a medium, whose acknowledgements pass it too.
  void check_medium(const SharedQueue& queue) {
    const auto only = [&](int f) { return network_.routes[f].hops.size() == 1; };
    const auto it = std::find_if(queue.flows.begin(), queue.flows.end(), only);
    if (it == queue.flows.end()) return;
    read({fmt::format("medium {}, {}", network_.spaces[queue.space].name, name_of(*it))}, {ends_of(*it)},
         queue.rate.value, network_.routes[*it].latency);
  }

  std::string name_of(int flow) const {
    const RouteEnds& pair = network_.flows[flow];
    return network_.spaces[pair.from.value].name + " to " + network_.spaces[pair.to.value].name;
  }
  Ends ends_of(int flow) const {
    const int from = network_.flows[flow].from.value, to = network_.flows[flow].to.value;
    return {namespaces_[from], namespaces_[to], network_.spaces[from].address, network_.spaces[to].address};
  }

  /// Other programs may hold one reading up, so one that is off is taken twice more, and the median counts.
  void read(const std::vector<std::string>& names, const std::vector<Ends>& ends, double nominal, Seconds latency) {
    std::vector<std::vector<double>> rates(names.size());
    for (int reading = 0; reading < 3; ++reading) {
      const std::vector<double> one = measure(ends, nominal, latency, window(network_));
      for (std::size_t i = 0; i < one.size(); ++i) rates[i].push_back(one[i]);
      if (std::all_of(one.begin(), one.end(), [&](double r) { return std::abs(r / nominal - 1) <= kRateTolerance; }) &&
          reading == 0)
        break;
    }
    for (std::size_t i = 0; i < names.size(); ++i) {
      std::nth_element(rates[i].begin(), rates[i].begin() + std::ssize(rates[i]) / 2, rates[i].end());
      readings_.push_back({names[i], nominal, rates[i][rates[i].size() / 2]});
    }
  }

  /// The rates of two flows that are alone in the network, by max-min sharing.
  std::pair<double, double> shares_of(int f, int g) const {
    const std::vector<Route> routes{network_.routes[f], network_.routes[g]};
    fluid::FairShare shares(fluid::paths_of(network_.cluster, routes));
    const int first = shares.add(0), second = shares.add(1);
    shares.update_rates();
    return {shares.rate(first), shares.rate(second)};
  }

  /// Two flows that get half of the queue's rate each. Where one is slower, as behind a slower link, TCP finds its rate
  /// only after it has filled the queues on its way.
  std::optional<std::pair<int, int>> two_flows(const SharedQueue& queue) const {
    for (const int f : queue.flows)
      for (const int g : queue.flows) {
        if (f >= g) continue;
        const auto [a, b] = shares_of(f, g);
        if (std::abs(a - b) < 1e-6 * a && std::abs(2 * a / queue.rate.value - 1) < 1e-6) return {{f, g}};
      }
    return {};
  }

  void check_pair(const SharedQueue& queue) {
    const std::optional<std::pair<int, int>> two = two_flows(queue);
    if (!two || !pairs_.insert(*two).second) return;
    const std::string link = network_.cluster.links[queue.link].name;
    const auto [f, g] = *two;
    read({fmt::format("{} next to {}, link {}", name_of(f), name_of(g), link),
          fmt::format("{} next to {}, link {}", name_of(g), name_of(f), link)},
         {ends_of(f), ends_of(g)}, queue.rate.value / 2,
         std::max(network_.routes[f].latency, network_.routes[g].latency));
  }

  const Network& network_;
  const std::vector<int>& namespaces_;
  std::vector<RateReading> readings_;
  std::set<std::pair<int, int>> pairs_;
};

}  // namespace

std::vector<RateReading> check_links(const Network& network, const std::vector<int>& namespaces) {
  return LinkChecker(network, namespaces).check();
}

}  // namespace stagecraft::box
