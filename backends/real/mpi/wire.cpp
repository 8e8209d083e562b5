// How the processes of an MPI launcher meet and part, and the short messages between them; transport.cpp carries the
// messages of a program.

#include "backends/real/mpi/wire.hpp"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <fmt/core.h>
#include <sys/time.h>
#include <unistd.h>

#include "backends/real/mpi/transport.hpp"
#include "backends/real/processes/meeting.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // MPI counts in int.
constexpr std::chrono::seconds kLastGoodbye{2}, kLost{8}, kSlow{30};
constexpr int kBackendFailed = 4;  // The exit code of a BackendError.

Communicators copies;

MPI_Comm copy_of_world() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN);
  return copy;
}

std::vector<std::shared_ptr<void>>& left_behind() {
  static std::vector<std::shared_ptr<void>> blocks;
  return blocks;
}

/// Without keeping a core from others; false when the deadline has passed.
bool wait(MPI_Request& request, Deadline deadline) {
  for (Nap nap;; nap()) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    if (done) return true;
    if (std::chrono::steady_clock::now() > deadline) return false;
  }
}

}  // namespace

const Communicators& communicators() { return copies; }

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
  check(MPI_Comm_get_attr(communicators().messages, MPI_TAG_UB, static_cast<void*>(&max_tag), &has_limit));
  if (has_limit && count > static_cast<std::size_t>(*max_tag))
    throw BackendError(fmt::format("this MPI tells {} messages apart, too few for {} {}", *max_tag, count, what));
}

bool messages_left() { return !left_behind().empty(); }
void leave_behind(std::shared_ptr<void> block) { left_behind().push_back(std::move(block)); }

MpiWire::MpiWire() {
  MPI_Comm_rank(MPI_COMM_WORLD, &world_.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &world_.size);
  if (world_.size == 1) return;
  for (MPI_Comm* comm : {&copies.words, &copies.messages, &copies.shares, &copies.groups}) *comm = copy_of_world();
}

void MpiWire::forget_those_that_left() {
  std::erase_if(leaving_, [](Leaving& leaving) {
    int done = 0;
    check(MPI_Testall(static_cast<int>(leaving.pieces.size()), leaving.pieces.data(), &done, MPI_STATUSES_IGNORE));
    return done != 0;
  });
}

void MpiWire::post(int to, WordKind kind, std::string text) {
  const std::lock_guard lock(mpi_calls());
  forget_those_that_left();
  Leaving& leaving = leaving_.emplace_back(Leaving{std::move(text), {}});
  for (std::size_t at = 0; at <= leaving.text.size(); at += kPiece) {
    const auto count = static_cast<int>(std::min(kPiece, leaving.text.size() - at));
    check(MPI_Isend(leaving.text.data() + at, count, MPI_BYTE, to, static_cast<int>(kind), communicators().words,
                    &leaving.pieces.emplace_back()));
  }
}

/// False where the next piece has not begun to arrive.
bool MpiWire::begin_piece(int from, WordKind kind, Arriving& a) {
  int there = 0;
  MPI_Message message;
  MPI_Status status;
  check(MPI_Improbe(from, static_cast<int>(kind), communicators().words, &there, &message, &status));
  if (!there) return false;
  check(MPI_Get_count(&status, MPI_BYTE, &a.bytes));
  const std::size_t at = a.text.size();
  a.text.resize(at + static_cast<std::size_t>(a.bytes));
  check(MPI_Imrecv(a.text.data() + at, a.bytes, MPI_BYTE, &message, &a.piece));
  return true;
}

std::optional<std::string> MpiWire::take(int from, WordKind kind) {
  const std::lock_guard lock(mpi_calls());
  forget_those_that_left();
  Arriving& a = arriving_[{from, kind}];
  while (true) {
    if (a.piece == MPI_REQUEST_NULL && !begin_piece(from, kind, a)) return {};
    int done = 0;
    check(MPI_Test(&a.piece, &done, MPI_STATUS_IGNORE));
    if (!done) return {};
    if (static_cast<std::size_t>(a.bytes) < kPiece) return std::exchange(a, {}).text;
  }
}

bool MpiWire::is_coming(int from, WordKind kind) {
  const std::lock_guard lock(mpi_calls());
  const Arriving& a = arriving_[{from, kind}];
  if (a.piece != MPI_REQUEST_NULL || !a.text.empty()) return true;
  int there = 0;
  check(MPI_Iprobe(from, static_cast<int>(kind), communicators().words, &there, MPI_STATUS_IGNORE));
  return there != 0;
}

bool MpiWire::all_left() {
  const std::lock_guard lock(mpi_calls());
  forget_those_that_left();
  return leaving_.empty();
}

std::unique_ptr<MessageTransport> MpiWire::transport(const Program& program, const DevicePlacement& placement,
                                                     RemoteBuffers& buffers) {
  return std::make_unique<MpiTransport>(program, placement, buffers);
}

std::unique_ptr<RemoteMembers> MpiWire::members(int first, std::vector<int> owners) {
  return mpi_members(first, std::move(owners));
}

/// After a failure the first process gets the time to print before mpirun sees any process end. Messages that no
/// process will take are then left, with which MPI_Finalize may not return. It never returns where a process was lost,
/// which may not have been noticed before: such a process does not come to the barrier either. Without a failure only
/// the first process gives up, which may have printed for long while the others waited; it waits longer, since nothing
/// is wrong with a process that is slow. The others wait for it as long as it may ever print.
void MpiWire::leave(int code) {
  constexpr std::chrono::hours kEver{1};
  // mpirun ends with the code of the process that aborts, and only the first one has that of the run.
  const int code_of_failure = code != 0 ? code : kBackendFailed;
  if (world_state() == WorldState::Unreachable || world_state() == WorldState::SeparatedWithLoss)
    MPI_Abort(MPI_COMM_WORLD, code_of_failure);
  MPI_Request request;
  MPI_Ibarrier(communicators().words, &request);
  const auto came = [&](Patience within) { return wait(request, deadline_after(within)); };
  if (world_state() == WorldState::Failed) {
    const bool all_came = came(kLastGoodbye);
    if (messages_left() || (!all_came && !came(kLost))) MPI_Abort(MPI_COMM_WORLD, code_of_failure);
  } else if (world_.rank == 0) {
    if (!came(code == 0 ? kSlow : kLost)) MPI_Abort(MPI_COMM_WORLD, code);
  } else if (!came(kEver)) {
    MPI_Abort(MPI_COMM_WORLD, kBackendFailed);
  }
  if (code == 0) limit_the_end({code, {}});  // All have said what there is to say, so a cut link must not keep them.
  MPI_Finalize();
}

std::unique_ptr<Wire> open_mpi_wire() {
  const JoinAlarm alarm;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // An MPI that knows GPUs may start their driver, which reads it.
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (level < MPI_THREAD_SERIALIZED) throw BackendError("this MPI can not be used by a program with threads");
  auto wire = std::make_unique<MpiWire>();
  if (const int size = wire->world().size; size != launched().size) {
    MPI_Finalize();
    throw BackendError(
        fmt::format("{} processes were started, but MPI joins {} of them: the launcher is of another MPI "
                    "than this was built with ({})",
                    launched().size, size, mpi_version()));
  }
  return wire;
}

}  // namespace stagecraft::real

/// "Open MPI v4.1.4, package: ..." up to the first comma.
std::string stagecraft::mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return {text, std::strcspn(text, ",\n")};
}
