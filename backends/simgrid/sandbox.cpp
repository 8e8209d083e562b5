// Runs work in a child process and throws here what it threw there.

#include "backends/simgrid/sandbox.hpp"

#include <fmt/core.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include "sim/core/child_process.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/stop_point.hpp"
#include "sim/core/text.hpp"

// SimGrid aborts on its own errors, has one clock for a process and is not safe among threads: each run has a child.

namespace stagecraft::sg {
namespace {

/// How `work` ended, as the child tells it: the first letter of its message, then texts that end with a zero byte.
enum class ChildEnd : char { Done = 'd', Input = 'i', Infeasible = 'n', Bug = 'b', Failed = 'f' };

std::string end_message(ChildEnd end, std::string_view message, std::string_view help = {}, std::string_view code = {},
                        std::string_view detail = {}) {
  std::string text(1, static_cast<char>(end));
  text.append(message).append(1, '\0').append(help).append(1, '\0').append(code).append(1, '\0').append(detail);
  return text;
}

std::string input_error_message(const InputError& error) {
  std::string message, help;
  for (const Diagnostic& problem : error.problems()) {
    if (!message.empty()) message += "; ";
    message += problem.path.empty() ? full_message(problem) : problem.path + ": " + full_message(problem);
    if (help.empty()) help = problem.help;
  }
  return end_message(ChildEnd::Input, message, help);
}

std::string run_and_describe(const std::function<void()>& work) {
  try {
    work();
    return end_message(ChildEnd::Done, {});
  } catch (const InputError& error) {
    return input_error_message(error);
  } catch (const Infeasible& error) {
    const Diagnostic& problem = error.problem();
    return end_message(ChildEnd::Infeasible, problem.message, problem.help, problem.code, problem.detail);
  } catch (const InternalError& error) {
    return end_message(ChildEnd::Bug, error.what());
  } catch (const std::exception& error) {
    return end_message(ChildEnd::Failed, error.what());
  } catch (...) {
    return end_message(ChildEnd::Failed, "an exception that is none of the standard library's");
  }
}

/// Returns if the work was done, else throws here what it threw in the child.
void throw_again(const std::string& ended) {
  const std::vector<std::string> texts = split(std::string_view(ended).substr(1), '\0');
  const std::string &message = texts.at(0), &help = texts.at(1), &code = texts.at(2), &detail = texts.at(3);
  switch (static_cast<ChildEnd>(ended.front())) {
    case ChildEnd::Done:
      return;
    case ChildEnd::Input:
      throw InputError(message, help);
    case ChildEnd::Infeasible:
      throw Infeasible(code, message, help, detail);
    case ChildEnd::Bug:
      throw InternalError(message);
    case ChildEnd::Failed:
      throw BackendError("simgrid: " + message);
  }
}

/// What SimGrid calls critical, else the start of whatever the child wrote.
std::string last_words(const std::string& text) {
  constexpr std::string_view mark = "CRITICAL]";
  std::string_view words = text;
  if (const auto at = words.find(mark); at != std::string_view::npos) {
    words.remove_prefix(at + mark.size());
    words = words.substr(0, words.find('\n'));
  }
  return std::string(trim(words.substr(0, 500)));
}

}  // namespace

SharedMemory::SharedMemory(std::size_t bytes) : bytes_(bytes) {
  address_ = mmap(nullptr, bytes == 0 ? 1 : bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (address_ == MAP_FAILED)
    throw BackendError(fmt::format("cannot allocate {} of shared memory for results: {}",
                                   to_text(Bytes{static_cast<double>(bytes)}), std::strerror(errno)));
}

SharedMemory::~SharedMemory() { munmap(address_, bytes_ == 0 ? 1 : bytes_); }

void run_in_child(const std::function<void()>& work, Seconds timeout) {
  ChildProcess child({.capture_errors = true}, [&](MessageSocket& parent) {
    const StopScope scope([] { return false; });  // Its parent ends it.
    parent.send(run_and_describe(work));
  });
  if (!child.wait(timeout))
    throw BackendError("simgrid: stopped after " + to_text(timeout) + " of wall time, as asked");
  if (const auto message = child.socket().take()) return throw_again(*message);
  const ProcessEnd end = child.kill();
  const std::string how = end.signal == 0 ? to_text(end) : fmt::format("signal {}", strsignal(end.signal));
  const std::string words = last_words(child.errors());
  throw BackendError("simgrid: the library failed (" + how + ")" + (words.empty() ? "" : ": " + words));
}

}  // namespace stagecraft::sg
