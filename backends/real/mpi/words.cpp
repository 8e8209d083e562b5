// Words between the processes of a world: whole texts, sent without waiting and heard in order.

#include <limits>
#include <list>

#include <fmt/format.h>

#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

using namespace std::chrono_literals;

constexpr int kTag = 1;  // Endings have 0.
constexpr auto kPatience = 10s;

struct UnderWay {
  std::string text;
  MPI_Request request = MPI_REQUEST_NULL;
};
std::list<UnderWay> under_way;

void forget_those_that_left() {
  std::erase_if(under_way, [](UnderWay& u) {
    int done = 0;
    real::check(MPI_Test(&u.request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  });
}

}  // namespace

void agree() {
  if (world().size > 1) real::meet();
}

void tell(int rank, std::string text) {
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw BackendError(fmt::format("{} bytes are more than MPI sends at once", text.size()));
  forget_those_that_left();
  UnderWay& u = under_way.emplace_back();
  u.text = std::move(text);
  real::check(
      MPI_Isend(u.text.data(), static_cast<int>(u.text.size()), MPI_BYTE, rank, kTag, real::wires().words, &u.request));
}

std::optional<Word> hear() {
  forget_those_that_left();
  int there = 0;
  MPI_Message message;
  MPI_Status status;
  real::check(MPI_Improbe(MPI_ANY_SOURCE, kTag, real::wires().words, &there, &message, &status));
  if (!there) return {};
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  Word word{status.MPI_SOURCE, std::string(size, '\0')};
  real::check(MPI_Mrecv(word.text.data(), size, MPI_BYTE, &message, MPI_STATUS_IGNORE));
  return word;
}

void part(bool whole) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  for (UnderWay& u : under_way) whole = whole && real::wait(u.request, deadline);
  real::part(whole);
}

}  // namespace stagecraft
