// Any bytes as a platform file of SimGrid, which reads it in a separate process: a cluster file that is accepted or
// refused, and no fault of ours in that process. At its end it prints how far the inputs came.

#include <fmt/core.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "sim/config/value.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/experiment/simgrid_xml.hpp"
#include "tests/fuzz/memory_file.hpp"
#include "tests/fuzz/platform_files.hpp"

using namespace stagecraft;

/// libFuzzer's own mutations; absent in fuzz_replay, which has its own.
extern "C" __attribute__((weak)) std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size,
                                                              std::size_t max_size);

/// Replaces SimGrid's backtrace on abort: resolving the names of functions takes longer than all the rest.
extern "C" void xbt_backtrace_display_current();
extern "C" void xbt_backtrace_display_current() {}

namespace {

struct Count {
  std::uint64_t before = 0, no_xml = 0, crashed = 0, refused = 0, after = 0, taken = 0;

  ~Count() {
    const std::uint64_t read = no_xml + crashed + refused + after + taken;
    if (before + read == 0) return;
    fmt::print(
        "platform: {} inputs, {} refused before SimGrid; of {} that it read {} were no XML of its kind, at {} it "
        "crashed, {} it refused otherwise, {} we did, {} were taken\n",
        before + read, before, read, no_xml, crashed, refused, after, taken);
  }

  void refuse(std::string_view message) {
    constexpr std::string_view mark = "SimGrid does not take this platform: ";
    const auto has = [&](std::string_view words) { return message.find(words) != message.npos; };
    if (!message.starts_with(mark)) {
      ++(has("hosts are named up to here") ? before : after);
      return;
    }
    message.remove_prefix(mark.size());
    // A fault of ours in its process, or a report of ours where it is built with checks.
    if (message.starts_with("simgrid: the library failed") || message.starts_with("==") ||
        (has(".cpp:") && has(": runtime error: "))) {
      fmt::print(stderr, "{}\n", message);
      std::abort();
    }
    if (message.starts_with("Segmentation fault") || message.starts_with("it crashed"))
      ++crashed;
    else if (message.starts_with("Invalid XML"))
      ++no_xml;
    else
      ++refused;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static fuzz::MemoryFile file, written;
  static Count count;
  file.write({reinterpret_cast<const char*>(data), size});
  const Where where{"<memory>", 1, 1};
  try {
    const config::Value cluster =
        platform_cluster(file.path(), {{"memory", where, config::Value::scalar("16 GiB", where)}});
    if (build_cluster(cluster).devices.empty()) std::abort();
    written.write(config::to_yaml(cluster, false));
  } catch (const InputError& error) {
    if (error.problems().empty() || render(error.problems()).empty()) std::abort();
    count.refuse(error.problems().front().message);
    return 0;
  }
  try {
    static_cast<void>(load_cluster_file(written.path()));
  } catch (const InputError&) {
    std::abort();
  }
  ++count.taken;
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned seed) {
  fuzz::PlatformFiles files(seed);
  if (LLVMFuzzerMutate && files.once_in(3)) return LLVMFuzzerMutate(data, size, max_size);
  std::string text = files.once_in(2) ? files.draw() : std::string(reinterpret_cast<const char*>(data), size);
  for (std::size_t left = files.below(3); left > 0; --left) files.change(text);
  text.resize(std::min(text.size(), max_size));
  std::memcpy(data, text.data(), text.size());
  return text.size();
}
