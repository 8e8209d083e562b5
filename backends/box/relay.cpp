// Cables with a latency: makes their TAP cards, carries frames from one card to the other, and holds each frame back
// for the latency.

#include "backends/box/relay.hpp"

#include <fcntl.h>
#include <fmt/core.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "sim/core/diagnostic.hpp"

namespace stagecraft::box {
namespace {

constexpr std::int64_t kNever = INT64_MAX;
constexpr std::int64_t kSecond = 1'000'000'000;

std::int64_t monotonic_now() {
  timespec t{};
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * kSecond + t.tv_nsec;
}

std::int64_t nanoseconds(Seconds time) { return static_cast<std::int64_t>(time.value * kSecond); }

}  // namespace

OpenFile make_card(const std::string& name) {
  OpenFile file(open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC));
  if (file.number() < 0)
    throw BackendError(
        fmt::format("links with a latency need /dev/net/tun, which this process cannot open ({}): set "
                    "the latencies of the links to 0 s",
                    std::strerror(errno)));
  ifreq request{};
  name.copy(request.ifr_name, IFNAMSIZ - 1);
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  if (ioctl(file.number(), TUNSETIFF, &request) != 0)
    throw BackendError(fmt::format("the card '{}': {}", name, std::strerror(errno)));
  return file;
}

void LatencyRelay::connect(OpenFile a, OpenFile b, Seconds latency) {
  const auto delay = std::make_shared<std::atomic<std::int64_t>>(nanoseconds(latency));
  const int files[] = {a.number(), b.number()};
  sides_.push_back({std::move(a), files[1], delay, {}});
  sides_.push_back({std::move(b), files[0], delay, {}});
}

void LatencyRelay::set_latency(std::size_t cable, Seconds latency) {
  *sides_.at(2 * cable).latency = nanoseconds(latency);
}

void LatencyRelay::read_frames(Side& side, std::int64_t now) {
  char frame[2048];
  for (ssize_t n = 0; (n = read(side.from.number(), frame, sizeof frame)) > 0;)
    side.under_way.push_back({now + *side.latency, std::string(frame, n)});
}

// A card that takes no frame now drops it, as a full wire does.
void LatencyRelay::write_frames(Side& side, std::int64_t now) {
  for (; !side.under_way.empty() && side.under_way.front().due <= now; side.under_way.pop_front()) {
    const std::string& bytes = side.under_way.front().bytes;
    if (write(side.to, bytes.data(), bytes.size()) < 0 && errno == EINTR) return;
  }
}

void LatencyRelay::run(int stop) {
  prctl(PR_SET_TIMERSLACK, 1UL);
  std::vector<pollfd> polled;
  for (const Side& side : sides_) polled.push_back({side.from.number(), POLLIN, 0});
  polled.push_back({stop, POLLIN, 0});
  while (true) {
    std::int64_t now = monotonic_now(), due = kNever;
    for (const Side& side : sides_)
      if (!side.under_way.empty()) due = std::min(due, side.under_way.front().due);
    const std::int64_t wait = std::max<std::int64_t>(0, due - now);
    const timespec until{wait / kSecond, wait % kSecond};
    if (ppoll(polled.data(), polled.size(), due == kNever ? nullptr : &until, nullptr) < 0 && errno != EINTR) return;
    if (polled.back().revents != 0) return;
    now = monotonic_now();
    for (std::size_t s = 0; s < sides_.size(); ++s) {
      if (polled[s].revents != 0) read_frames(sides_[s], now);
      write_frames(sides_[s], now);
    }
  }
}

}  // namespace stagecraft::box
