// The processes of a launcher that were built with MPI: words that they send each other, and whether they are still
// there.
#include <fmt/core.h>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <list>
#include <set>

#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/transport.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

constexpr std::chrono::seconds kLastGoodbye{2}, kLost{8}, kSlow{30};
constexpr int kBackendFailed = 4;  // The exit code of a BackendError.

World together;
real::Wires open;

}  // namespace

World world() { return together; }
const real::Wires& real::wires() { return open; }

void join_world(const std::string& build) {
  if (launched().size == 1 || together.size > 1) return;
  const real::JoinAlarm alarm;
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);  // An MPI that knows GPUs may start their driver, which reads it.
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  if (level < MPI_THREAD_SERIALIZED) throw BackendError("this MPI can not be used by a program with threads");
  World joined;
  MPI_Comm_rank(MPI_COMM_WORLD, &joined.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &joined.size);
  if (joined.size != launched().size)
    throw BackendError(
        fmt::format("{} processes were started, but MPI joins {} of them: the launcher is of another MPI "
                    "than this was built with ({})",
                    launched().size, joined.size, mpi_version()));
  if (joined.size > 1) open = real::open_wires();
  together = joined;
  if (joined.size > 1) real::require_same_build(build);
}

Ending finish_all(const Ending& ending) {
  if (together.size == 1) return launched().rank == 0 ? ending : Ending{};
  const auto standing = real::standing();
  if (real::stop_requested_by_launcher() || standing == real::Standing::Parted || standing == real::Standing::Bereft)
    return ending;
  return real::meet(ending, real::patience_for_equals());
}

/// After a failure the first process gets the time to print before mpirun sees any process end. Messages that no
/// process will take are then left, with which MPI_Finalize may not return. It never returns where a process was lost,
/// which may not have been noticed before: such a process does not come to the barrier either. Without a failure only
/// the first process gives up, which may have printed for long while the others waited; it waits longer, since nothing
/// is wrong with a process that is slow.
void leave_world(int code) {
  int initialised = 0;
  MPI_Initialized(&initialised);
  if (!initialised || real::stop_requested_by_launcher()) return;
  // mpirun ends with the code of the process that aborts, and only the first one has that of the run.
  const int code_of_failure = code != 0 ? code : kBackendFailed;
  if (real::standing() == real::Standing::Unheard || real::standing() == real::Standing::Bereft)
    MPI_Abort(MPI_COMM_WORLD, code_of_failure);
  if (together.size == 1) {  // It could not join.
    MPI_Finalize();
    return;
  }
  MPI_Request request;
  MPI_Ibarrier(real::wires().words, &request);
  const auto came = [&](std::chrono::seconds within) {
    return real::wait(request, std::chrono::steady_clock::now() + within);
  };
  if (real::standing() == real::Standing::Failed) {
    const bool all_came = came(kLastGoodbye);
    if (real::messages_left() || (!all_came && !came(kLost))) MPI_Abort(MPI_COMM_WORLD, code_of_failure);
  } else if (together.rank == 0) {
    if (!came(code == 0 ? kSlow : kLost)) MPI_Abort(MPI_COMM_WORLD, code);
  } else {
    real::wait(request);
  }
  MPI_Finalize();
}

/// "Open MPI v4.1.4, package: ..." up to the first comma.
std::string mpi_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return {text, std::strcspn(text, ",\n")};
}

// Messages between the processes of a world: whole texts, sent without waiting and heard in order.
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 1;  // Endings have 0.
constexpr auto kPatience = 10s;

struct UnderWay {
  std::string text;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<UnderWay> under_way;

/// Words whose first bytes are here. The rest of a large one never comes if its sender is lost, so none is waited for.
struct Arriving {
  Word word;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<Arriving> arriving;

void forget_those_that_left() {
  std::erase_if(under_way, [](UnderWay& u) {
    int done = 0;
    real::check(MPI_Test(&u.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace

void barrier() {
  if (world().size > 1) real::meet(real::patience_for_equals());
}

void send_message(int rank, std::string text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw BackendError(fmt::format("{} bytes are more than MPI sends at once", text.size()));
  forget_those_that_left();
  UnderWay& u = under_way.emplace_back();
  u.text = std::move(text);
  real::check(
      MPI_Isend(u.text.data(), static_cast<int>(u.text.size()), MPI_BYTE, rank, kTag, real::wires().words, &u.request));
}

namespace {

void receive_what_is_there() {
  while (true) {
    int there = 0;
    MPI_Message message;
    MPI_Status status;
    real::check(MPI_Improbe(MPI_ANY_SOURCE, kTag, real::wires().words, &there, &message, &status));
    if (!there) return;
    int size = 0;
    MPI_Get_count(&status, MPI_BYTE, &size);
    Arriving& a = arriving.emplace_back();
    a.word = {status.MPI_SOURCE, std::string(static_cast<std::size_t>(size), '\0')};
    real::check(MPI_Imrecv(a.word.text.data(), size, MPI_BYTE, &message, &a.request));
  }
}

}  // namespace

std::optional<Word> receive_message() {
  forget_those_that_left();
  receive_what_is_there();
  std::set<int> waited_for;  // Processes of which an earlier word is not complete.
  for (auto a = arriving.begin(); a != arriving.end(); ++a) {
    if (waited_for.contains(a->word.from)) continue;
    int done = 0;
    real::check(MPI_Test(&a->request, &done, MPI_STATUS_IGNORE));
    if (!done) {
      waited_for.insert(a->word.from);
      continue;
    }
    Word word = std::move(a->word);
    arriving.erase(a);
    return word;
  }
  return {};
}

void part(bool whole) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (UnderWay& u : under_way) whole = whole && real::wait(u.request, deadline);
  real::part(whole);
}

}  // namespace stagecraft
