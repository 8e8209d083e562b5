// How many threads a computation may use, and that its parts have one each.

#include "sim/core/thread_scope.hpp"

#include <atomic>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

namespace stagecraft::thread_scope_test {
namespace {

constexpr std::size_t kMany = 1'000'000;

}  // namespace

TEST_CASE("only a large computation in a scope may use several threads, and the innermost scope counts") {
  CHECK(threads_for(kMany) == 1);
  {
    const ThreadScope five(5);
    CHECK(threads_for(kMany) == 5);
    CHECK(threads_for(1000) == 1);
    {
      const ThreadScope two(2);
      CHECK(threads_for(kMany) == 2);
    }
    CHECK(threads_for(kMany) == 5);
    int elsewhere = 0;
    std::thread([&] { elsewhere = threads_for(kMany); }).join();
    CHECK(elsewhere == 1);
  }
  CHECK(threads_for(kMany) == 1);
}

TEST_CASE("every part is done once, and works alone") {
  for (const int threads : {1, 2, 5}) {
    const ThreadScope scope(threads);
    std::vector<int> done(100, 0), allowed(100, 0);
    run_parts(kMany, 100, [&](int part) { ++done[part], allowed[part] = threads_for(kMany); });
    CHECK(done == std::vector<int>(100, 1));
    CHECK(allowed == std::vector<int>(100, 1));
    CHECK(threads_for(kMany) == threads);
  }
}

TEST_CASE("the parts of a small computation run in order on the thread that asks for them") {
  const ThreadScope scope(5);
  std::vector<int> order;
  std::set<std::thread::id> threads;
  run_parts(1000, 4, [&](int part) { order.push_back(part), threads.insert(std::this_thread::get_id()); });
  CHECK(order == std::vector<int>{0, 1, 2, 3});
  CHECK(threads == std::set{std::this_thread::get_id()});
}

TEST_CASE("the first part with an error has its error, whatever others do, and no part begins after it is known") {
  for (const int threads : {1, 2, 5}) {
    const ThreadScope scope(threads);
    std::atomic<int> begun = 0;
    std::string error;
    try {
      run_parts(kMany, 1000, [&](int part) {
        ++begun;
        if (part == 3 || part == 7) throw std::runtime_error(std::to_string(part));
      });
    } catch (const std::runtime_error& e) {
      error = e.what();
    }
    CHECK(error == "3");
    if (threads == 1) CHECK(begun == 4);
  }
}

}  // namespace stagecraft::thread_scope_test
