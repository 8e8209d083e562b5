// Reads a SimGrid platform file as hosts and routes, by SimGrid itself in a child process; for clusters of the
// generator `simgrid_xml`.

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include "backends/platform.hpp"
#include "backends/simgrid/engine/platform_error.hpp"
#include "backends/simgrid/platform_xml.hpp"
#include "backends/simgrid/sandbox.hpp"
#include "backends/simgrid/simulate.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/file.hpp"
#include "sim/core/from_chars.hpp"

// A child of this process loads the file, because SimGrid has one engine for a process and aborts on some errors. It
// tells what it found line by line in a temporary file.

namespace stagecraft {
namespace {

struct Close {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

/// A file without a name in any folder, which exists as long as this object.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view text) : file_(memfd_create("platform", MFD_CLOEXEC)) {
    while (file_.number() >= 0 && !text.empty()) {
      const ssize_t written = write(file_.number(), text.data(), text.size());
      if (written < 0 && errno != EINTR) break;
      text.remove_prefix(std::max<ssize_t>(written, 0));
    }
    if (file_.number() < 0 || !text.empty())
      throw BackendError(fmt::format("no memory for a platform: {}", std::strerror(errno)));
  }
  std::string path() const { return fmt::format("/proc/self/fd/{}", file_.number()); }

 private:
  OpenFile file_;
};

/// Reads what the child has written.
class Listener {
 public:
  explicit Listener(std::string text) : text_(std::move(text)), rest_(text_) {}
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  bool take(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  std::string line() {
    const std::size_t end = rest_.find('\n');
    STAGECRAFT_CHECK(end != std::string_view::npos);
    std::string one(rest_.substr(0, end));
    rest_.remove_prefix(end + 1);
    return one;
  }
  double number() {
    double value = 0;
    const auto [end, error] = from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    STAGECRAFT_CHECK(error == std::errc{});
    rest_.remove_prefix(end - rest_.data() + 1);  // and the separator after it
    return value;
  }

 private:
  std::string text_;
  std::string_view rest_;
};

Platform listen(Listener& in) {
  Platform platform;
  const auto count = static_cast<std::size_t>(in.number());
  for (std::size_t h = 0; h < count; ++h) {
    Platform::Host host{in.line(), 0, 1, {}};
    host.speed = in.number();
    host.cores = static_cast<int>(in.number());
    for (auto left = static_cast<int>(in.number()); left > 0; --left) {
      const std::string key = in.line();
      host.properties[key] = in.line();
    }
    platform.hosts.push_back(std::move(host));
  }
  platform.routes.resize(count * count);
  for (std::size_t r = 0; r < platform.routes.size(); ++r) {
    if (r / count == r % count) continue;
    while (in.take("link\n")) {
      Platform::Link link{in.line(), 0, 0, Platform::Sharing::Shared};
      link.bandwidth = in.number(), link.latency = in.number();
      if (in.line() == "f") link.sharing = Platform::Sharing::Fatpipe;
      platform.links.push_back(std::move(link));
    }
    for (auto left = static_cast<int>(in.number()); left > 0; --left)
      platform.routes[r].push_back(static_cast<std::int32_t>(in.number()));
  }
  return platform;
}

std::string all_of(std::FILE* file) {
  std::string text;
  std::rewind(file);
  char buffer[1 << 16];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file)) > 0;) text.append(buffer, got);
  return text;
}

}  // namespace

Platform read_simgrid_platform(const std::string& file, const std::vector<std::string>& wanted, std::size_t max_hosts) {
  const sg::Tasks& tasks = sg::load_library();
  const MemoryFile checked(sg::checked_platform_xml(file, read_file(file)));
  const File output(std::tmpfile());
  if (!output) throw BackendError("no temporary file for a platform");
  try {
    sg::run_in_child(
        [&] {
          tasks.list_platform(file, checked.path(), wanted, max_hosts, output.get());
          std::fflush(output.get());
        },
        {});
  } catch (const InputError& error) {
    Diagnostic problem = error.problems().front();
    problem.where.file = file;
    throw InputError({std::move(problem)});
  } catch (const BackendError& error) {
    std::string_view message = error.what();
    if (const auto colon = message.find("): "); colon != std::string_view::npos) message.remove_prefix(colon + 3);
    throw sg::platform_error(file, message);
  }
  Listener in(all_of(output.get()));
  if (in.take("wrong\n")) throw sg::platform_error(file, in.line());
  return listen(in);
}

}  // namespace stagecraft
