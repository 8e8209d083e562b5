// longjmp to another stack is what fibers are made of; the check of some compilers takes it for an accident.
#undef _FORTIFY_SOURCE

#include "tests/support/emulated_gpu/device/fibers.hpp"

#include <ucontext.h>
#include <csetjmp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/emulated_gpu/machine.hpp"

#ifdef __has_feature
#define STAGECRAFT_HAS_ASAN __has_feature(address_sanitizer)
#elif defined(__SANITIZE_ADDRESS__)
#define STAGECRAFT_HAS_ASAN 1
#else
#define STAGECRAFT_HAS_ASAN 0
#endif
#if STAGECRAFT_HAS_ASAN
#include <sanitizer/common_interface_defs.h>
#endif

namespace stagecraft::emulated_gpu {
namespace {

constexpr std::size_t kStack = 128U << 10U;

/// What AddressSanitizer has to know of a stack, or it takes a jump to another one for damage.
struct StackBounds {
  const void* bottom = nullptr;
  std::size_t size = 0;
  void* fake = nullptr;  ///< AddressSanitizer's own variables for that stack.
};

/// Said before a jump.
void leave([[maybe_unused]] StackBounds& from, [[maybe_unused]] const StackBounds& to) {
#if STAGECRAFT_HAS_ASAN
  __sanitizer_start_switch_fiber(&from.fake, to.bottom, to.size);
#endif
}
/// Said after it, on the other side.
void arrive([[maybe_unused]] const StackBounds& at, [[maybe_unused]] StackBounds& from) {
#if STAGECRAFT_HAS_ASAN
  __sanitizer_finish_switch_fiber(at.fake, &from.bottom, &from.size);
#endif
}

/// A stack on which threads run, one after the other until one of them waits at a barrier.
struct Fiber {
  std::jmp_buf at{};  ///< Where it stopped. Unlike swapcontext, jumps make no system calls.
  std::unique_ptr<char[]> stack = std::make_unique_for_overwrite<char[]>(kStack);
  StackBounds bounds{stack.get(), kStack};
  bool started = false;
};

/// The threads of one block.
class Block {
 public:
  Block(const std::function<void()>& thread, std::vector<std::unique_ptr<Fiber>>& fibers)
      : thread_(thread), fibers_(fibers) {}

  void run(unsigned threads) {
    order_.resize(threads);
    std::iota(order_.begin(), order_.end(), 0U);
    std::shuffle(order_.begin(), order_.end(), state().random);
    next_ = 0;
    std::vector<std::size_t> waiting;
    for (std::size_t f = 0; next_ < threads; ++f) {
      if (f == fibers_.size()) fibers_.push_back(std::make_unique<Fiber>());
      if (resume(f, false)) waiting.push_back(f);
    }
    while (!waiting.empty()) {
      if (waiting.size() < threads)
        throw Misuse(std::to_string(waiting.size()) + " of " + std::to_string(threads) +
                     " threads wait at a barrier that the others never reach");
      std::shuffle(waiting.begin(), waiting.end(), state().random);
      std::vector<std::size_t> still;
      for (const std::size_t f : waiting)
        if (resume(f, true)) still.push_back(f);
      waiting = std::move(still);
    }
  }

  /// The thread that runs waits.
  void pause() {
    const uint3 thread = here().thread;  // On the stack, which the cache has anyway.
    at_barrier_ = true;
    back(*fibers_[current_]);
    here().thread = thread;
  }

  static Block* active;

 private:
  [[noreturn]] static void entry() {
    active->arrived();
    while (true) {
      active->work();
      active->back(*active->fibers_[active->current_]);
    }
  }

  /// Jumps to the scheduler, until it resumes the fiber.
  void back(Fiber& fiber) {
    if (_setjmp(fiber.at) == 0) {
      leave(fiber.bounds, scheduler_bounds_);
      _longjmp(scheduler_, 1);
    }
    active->arrived();
  }

  /// Called on the fiber that runs.
  void arrived() { arrive(fibers_[current_]->bounds, scheduler_bounds_); }

  /// What a fiber does: threads that have not begun yet; after a barrier only the rest of the thread that it runs.
  void work() {
    try {
      while (next_ < order_.size()) {
        here().thread = place_of(order_[next_++]);
        thread_();
        if (resumed_) break;
      }
    } catch (...) {
      failure_ = std::current_exception();
    }
  }

  /// True when its thread waits at a barrier.
  bool resume(std::size_t f, bool begun) {
    resumed_ = begun;
    current_ = f;
    at_barrier_ = false;
    if (_setjmp(scheduler_) == 0) {
      leave(scheduler_bounds_, fibers_[f]->bounds);
      go(*fibers_[f]);
    }
    arrive(scheduler_bounds_, fibers_[current_]->bounds);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return at_barrier_;
  }

  /// Its frame is never left, so nothing may be marked in it.
  [[gnu::no_sanitize_address]] static void go(Fiber& fiber) {
    if (fiber.started) _longjmp(fiber.at, 1);
    fiber.started = true;
    ucontext_t context;
    getcontext(&context);
    context.uc_stack.ss_sp = fiber.stack.get();
    context.uc_stack.ss_size = kStack;
    context.uc_link = nullptr;
    makecontext(&context, &Block::entry, 0);
    setcontext(&context);
  }

  static uint3 place_of(unsigned thread) {
    const dim3& size = here().block_size;
    return {thread % size.x, thread / size.x % size.y, thread / size.x / size.y};
  }

  const std::function<void()>& thread_;
  std::vector<std::unique_ptr<Fiber>>& fibers_;
  std::vector<unsigned> order_;
  std::size_t next_ = 0, current_ = 0;
  bool at_barrier_ = false, resumed_ = false;
  std::jmp_buf scheduler_{};
  StackBounds scheduler_bounds_;
  std::exception_ptr failure_;
};

Block* Block::active = nullptr;

}  // namespace

void barrier() {
  if (!Block::active) throw Misuse("a barrier outside of a kernel");
  Block::active->pause();
}

void run_grid(dim3 grid, dim3 block, std::size_t shared_bytes, const std::function<void()>& thread) {
  const unsigned threads = block.x * block.y * block.z;
  const std::size_t blocks = std::size_t{grid.x} * grid.y * grid.z;
  if (threads == 0 || threads > 1024 || blocks == 0 || grid.y > 65535 || grid.z > 65535 || shared_bytes > 48U << 10U)
    throw Misuse("a launch that no GPU takes: " + std::to_string(blocks) + " blocks of " + std::to_string(threads) +
                 " threads with " + std::to_string(shared_bytes) + " shared bytes");
  std::vector<std::size_t> order(blocks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), state().random);
  std::vector<char> shared(shared_bytes);
  static std::vector<std::unique_ptr<Fiber>> fibers;
  for (const std::size_t b : order) {
    std::fill(shared.begin(), shared.end(), char{-1});  // NaNs.
    here() = {{}, {}, block, grid, shared.data(), shared_bytes};
    here().block = {static_cast<unsigned>(b % grid.x), static_cast<unsigned>(b / grid.x % grid.y),
                    static_cast<unsigned>(b / grid.x / grid.y)};
    Block running(thread, fibers);
    Block::active = &running;
    try {
      running.run(threads);
    } catch (...) {
      Block::active = nullptr;
      fibers.clear();  // Drops what the others were about to do.
      throw;
    }
    Block::active = nullptr;
  }
}

}  // namespace stagecraft::emulated_gpu
