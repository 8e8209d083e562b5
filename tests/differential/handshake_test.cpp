// Handshakes: the words that a receive may start and that the data is there take the latency of the route, alike on
// every simulator.

#include <doctest/doctest.h>

#include "backends/backend.hpp"
#include "tests/support/clusters.hpp"
#include "tests/support/differences.hpp"
#include "tests/support/program_builder.hpp"
#include "tests/support/random_cases.hpp"
#include "tests/support/random_changes.hpp"
#include "tests/support/trials.hpp"

namespace stagecraft::handshake_test {
namespace {

constexpr const char* kSimulators[] = {"ideal", "fluid", "simgrid"};

Timeline run(const char* backend, const Program& program, const Cluster& cluster) {
  return get_from(backends::catalog(), "backend", backend).run(program, cluster, {});
}

doctest::Approx near(double seconds) { return doctest::Approx(seconds).epsilon(1e-9); }

/// A message of 1 MB takes 10 ms and 1 s.
Cluster cable() { return test::star(2, 1e6, 5e-3); }

Program with_handshakes(const test::ProgramBuilder& builder) {
  Program program = builder.build();
  program.handshakes = true;
  return program;
}

}  // namespace

TEST_CASE("the word of a late receiver takes a latency, and so does the word that ends the send") {
  for (const double receiver : {1.0, 2.995, 4.0}) {
    test::ProgramBuilder builder(2);
    const InstructionId result = builder.compute(0, 3), free = builder.compute(1, receiver);
    const test::Message message = builder.send(0, 1, 1'000'000, {result}, {free});
    const Program program = with_handshakes(builder);
    const double start = std::max(3.0, receiver + 0.01);
    for (const char* backend : kSimulators) {
      CAPTURE(backend);
      CAPTURE(receiver);
      const Timeline t = run(backend, program, cable());
      CHECK(t.start[message.send] == near(start));
      CHECK(t.start[message.receive] == near(start));
      CHECK(t.end[message.receive] == near(start + 1.01));
      CHECK(t.end[message.send] == near(start + 1.02));
    }
  }
}

TEST_CASE("messages of one connection are a round trip apart") {
  test::ProgramBuilder builder(2);
  builder.send(0, 1, 1'000'000);
  const test::Message second = builder.send(0, 1, 1'000'000);
  const Program program = with_handshakes(builder);
  for (const char* backend : kSimulators) {
    CAPTURE(backend);
    const Timeline t = run(backend, program, cable());
    CHECK(t.start[second.send] == near(0.01 + 1.01 + 0.01));
    CHECK(t.end[second.receive] == near(2 * (0.01 + 1.01)));
  }
}

TEST_CASE("a message without bytes and one inside a device have their words too") {
  test::ProgramBuilder builder(2);
  const test::Message empty = builder.send(0, 1, 0), inside = builder.send(1, 1, 1000);
  const Program program = with_handshakes(builder);
  for (const char* backend : kSimulators) {
    CAPTURE(backend);
    const Timeline t = run(backend, program, cable());
    CHECK(t.end[empty.receive] == near(0.02));
    CHECK(t.end[empty.send] == near(0.03));
    CHECK(t.end[inside.send] == 0);
  }
}

TEST_CASE("random programs with handshakes have the same starts and ends, also while machines and links change") {
  test::Draw draw{Rng(63, "handshakes")}, draw_changes{Rng(63, "changes")};
  int compared = 0, slower = 0;
  for (int trial = 0; compared < test::trials(200); ++trial) {
    REQUIRE(trial < 800);
    test::RandomCase c = test::random_case(draw, 6);
    c.options.rendezvous = true;
    CAPTURE(to_text(c));
    std::optional<Program> lowered = test::program_unless_deadlock(c);
    if (!lowered) continue;
    Program& program = *lowered;
    const bool shared = draw(0, 1) == 0;
    Cluster cluster = test::bare_cluster(program.devices, 1);
    for (int d = 0; d < program.devices; ++d)
      test::connect(cluster, {d, program.devices}, 1e6 * draw(50, 20000), 1e-6 * draw(0, 300),
                    shared ? Duplex::Full : Duplex::Unshared);
    const double free_words = run("ideal", program, cluster).last_end().value;
    program.handshakes = true;
    const double last = run("ideal", program, cluster).last_end().value;
    CHECK(last >= free_words);
    slower += last > free_words;
    if (draw(0, 1) == 0) test::random_changes(cluster, last, draw_changes);
    const char* const other = shared ? "simgrid" : "ideal";
    CHECK(test::difference(program, run("fluid", program, cluster), run(other, program, cluster)) == "");
    ++compared;
  }
  CHECK(slower >= (test::all_trials() ? 50 : 5));
}

}  // namespace stagecraft::handshake_test
