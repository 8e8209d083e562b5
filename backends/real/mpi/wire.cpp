#include "backends/real/mpi/wire.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "backends/real/clocks.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int.

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

/// Cancels the request if it has not completed by the deadline.
bool finish(MPI_Request& request, const Deadline& deadline) {
  if (wait(request, deadline)) return true;
  MPI_Cancel(&request);
  MPI_Request_free(&request);
  return false;
}

}  // namespace

Wires open_wires() {
  Wires w;
  for (MPI_Comm* comm : {&w.words, &w.messages, &w.shares, &w.groups, &w.pulses, &w.decisions}) *comm = copy_of_world();
  return w;
}

std::mutex& mpi_calls() {
  static std::mutex mutex;
  return mutex;
}

void check(int result) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw BackendError(fmt::format("MPI: {}", text));
}

void require_tags(std::size_t count, const char* what) {
  int* max_tag = nullptr;
  int has_limit = 0;
  check(MPI_Comm_get_attr(wires().messages, MPI_TAG_UB, static_cast<void*>(&max_tag), &has_limit));
  if (has_limit && count > static_cast<std::size_t>(*max_tag))
    throw BackendError(fmt::format("this MPI tells {} messages apart, too few for {} {}", *max_tag, count, what));
}

bool wait(MPI_Request& request, const Deadline& deadline) {
  Nap nap;
  while (true) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return true;
    if (deadline && std::chrono::steady_clock::now() > *deadline) return false;
    nap();
  }
}

bool send_text(int to, const std::string& text, const Deadline& deadline) {
  const std::uint64_t size = text.size();
  MPI_Request request;
  check(MPI_Isend(&size, 1, MPI_UINT64_T, to, 0, wires().words, &request));
  if (!wait(request, deadline)) return false;
  for (std::size_t at = 0; at < text.size(); at += kPiece) {
    const auto count = static_cast<int>(std::min(kPiece, text.size() - at));
    check(MPI_Isend(text.data() + at, count, MPI_BYTE, to, 0, wires().words, &request));
    if (!wait(request, deadline)) return false;
  }
  return true;
}

std::optional<std::string> receive_text(int from, const Deadline& deadline) {
  std::uint64_t size = 0;
  MPI_Request request;
  check(MPI_Irecv(&size, 1, MPI_UINT64_T, from, 0, wires().words, &request));
  if (!finish(request, deadline)) return {};
  std::string text(size, '\0');
  for (std::size_t at = 0; at < text.size(); at += kPiece) {
    const auto count = static_cast<int>(std::min(kPiece, text.size() - at));
    check(MPI_Irecv(text.data() + at, count, MPI_BYTE, from, 0, wires().words, &request));
    if (!finish(request, deadline)) return {};
  }
  return text;
}

}  // namespace stagecraft::real
