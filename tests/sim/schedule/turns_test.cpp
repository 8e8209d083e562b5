// Devices that take turns, against a set for this pass and one for the next.

#include <doctest/doctest.h>

#include <random>
#include <set>

#include "sim/schedule/turns.hpp"

using namespace stagecraft;

TEST_CASE("turns: the smallest device first, those woken behind it in this pass, the others in the next") {
  std::mt19937 random(5);
  for (const int devices : {0, 1, 63, 64, 65, 4095, 4096, 4097, 9000}) {
    Turns turns(static_cast<std::size_t>(devices));
    std::set<int> next;
    for (int d = 0; d < devices; ++d) next.insert(next.end(), d);
    for (int pass = 0; pass < 20; ++pass) {
      std::set<int> now;
      std::swap(now, next);
      const bool expected = !now.empty();
      const bool any = turns.pass([&](int d) {
        REQUIRE(!now.empty());
        CHECK(d == *now.begin());
        now.erase(now.begin());
        const int other = static_cast<int>(random() % static_cast<unsigned>(devices)),
                  what = static_cast<int>(random() % 4);
        if (what == 0) turns.later(d), next.insert(d);
        if (what == 1) turns.wake(other, d), (other > d ? now : next).insert(other);
      });
      CHECK(now.empty());
      CHECK(any == expected);
    }
  }
}
