// Threads of a JobFarm where memory has run out: a job that ends then still has an end.

#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "sim/core/stop_point.hpp"
#include "sim/farm/workers.hpp"

namespace {
thread_local bool memory_is_out = false;
}  // namespace

// For this test program: what containers, strings and algorithms use.
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return memory_is_out ? nullptr : std::malloc(size);
}
void* operator new(std::size_t size) {
  void* const memory = operator new(size, std::nothrow);
  if (!memory) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace stagecraft::no_memory_test {

TEST_CASE("a thread without memory reports the end of its job") {
  constexpr int kJobs = 40;
  const FarmOptions options{.workers = 2};
  const auto workers = thread_workers(options, false, [](int job, const std::string&) -> std::string {
    memory_is_out = false;
    std::string text = "a result that is longer than a short string " + std::to_string(job);
    memory_is_out = true;  // Until this thread begins another job.
    if (job % 3 == 1) throw std::bad_alloc();
    if (job % 3 == 2) throw Stopped();
    return text;
  });
  for (int job = 0; job < kJobs; ++job) workers->add(job, "a description that is longer than a short string");
  int done = 0, threw = 0;
  while (done + threw < kJobs)
    for (const JobEnd& end : workers->wait(1000)) {
      (end.how == JobEnd::How::Done ? done : threw)++;
      if (end.how == JobEnd::How::Done)
        CHECK(end.text == "a result that is longer than a short string " + std::to_string(end.job));
      else
        CHECK(end.how == (end.job % 3 == 1 ? JobEnd::How::Threw : JobEnd::How::Undone));
    }
  CHECK(done == 14);
  CHECK(threw == 26);
}

}  // namespace stagecraft::no_memory_test
