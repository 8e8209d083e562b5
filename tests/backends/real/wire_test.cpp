// What a process has said before it ended is heard, however much of it there is still to read.

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include "backends/real/tcp/wire.hpp"

namespace stagecraft::wire_test {
namespace {

using real::TcpWire;
using real::WordKind;

/// Reads no more than the other one needs to send the rest, so that most is still to be read when that has ended.
void read_until_all_left(TcpWire& reader, TcpWire& writer) {
  for (std::uint64_t before = 0; !writer.all_left();) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    const std::uint64_t now = writer.progress();
    if (now == before && !writer.all_left()) reader.pump(0.01);
    before = now;
  }
}

}  // namespace

TEST_CASE("a connection for data that ends before the last words are read is no loss of the other process") {
  const real::HostPort any{"127.0.0.1", 0};
  real::Socket listeners[] = {real::listen_at(real::resolve(any).front(), any, true),
                              real::listen_at(real::resolve(any).front(), any, true)};
  std::vector<real::HostPort> hosts;
  for (const real::Socket& listener : listeners) hosts.push_back({"127.0.0.1", real::port_of(listener)});
  TcpWire first(hosts, 0, std::move(listeners[0]));
  auto second = std::make_unique<TcpWire>(hosts, 1, std::move(listeners[1]));
  const auto deadline = real::deadline_after(real::Patience{30});
  second->open_lane(0, 0, deadline);
  first.open_lane(1, 0, deadline);
  const std::string last_words(32'000'000, 'x');
  second->post(0, WordKind::Report, last_words);
  read_until_all_left(first, *second);
  second.reset();
  std::string heard;
  while (heard.empty() && first.loss(1).empty()) heard = first.take(1, WordKind::Report).value_or("");
  CHECK_EQ(heard.size(), last_words.size());
  while (first.loss(1).empty()) first.pump(0.01);
  CHECK(first.loss(1).ends_with("has ended"));
}

}  // namespace stagecraft::wire_test
