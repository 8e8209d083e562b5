// How many threads a computation may use: what the innermost ThreadScope of its thread says, one without a scope.

#include "sim/core/thread_scope.hpp"

#include <utility>

#include "sim/core/threads.hpp"

namespace stagecraft {
namespace {

/// A pass over this number takes milliseconds, and starting a thread tens of microseconds.
constexpr std::size_t kFewInstructions = 200'000;

thread_local int allowed = 1;

}  // namespace

ThreadScope::ThreadScope(int count) : outer_(std::exchange(allowed, count)) {}

ThreadScope::~ThreadScope() { allowed = outer_; }

int threads_for(std::size_t instructions) { return instructions < kFewInstructions ? 1 : allowed; }

void run_parts(std::size_t instructions, int count, const std::function<void(int)>& task) {
  run_tasks(count, threads_for(instructions), [&](int part) {
    const ThreadScope alone(1);
    task(part);
  });
}

}  // namespace stagecraft
