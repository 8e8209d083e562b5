// Exchanges the arrays of a group of devices between processes over MPI, inside of an instruction.

#include "backends/real/mpi/transport.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <set>
#include <utility>

#include <fmt/core.h>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/clocks.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/real/remote_members.hpp"
#include "backends/world.hpp"
#include "sim/core/diagnostic.hpp"

namespace stagecraft::real {
namespace {

using Block = std::shared_ptr<char[]>;

/// Comes before the numbers of an array. Members may bring arrays of different sizes, such as rows for experts.
struct Shape {
  std::int64_t rows = 0, columns = 0;
};

class MpiMembers : public RemoteMembers {
 public:
  MpiMembers(int first, std::vector<int> owners)
      : first_tag_(first), owners_(std::move(owners)), received_(owners_.size()) {
    require_tags(first_tag_ + owners_.size(), "members of groups");
    for (const int owner : owners_)
      if (owner != world().rank) others_.insert(owner);
  }

  bool here(int rank) const override { return owners_[rank] == world().rank; }

  bool exchange(std::vector<Tensor>& arrays, std::size_t width, const std::atomic<bool>& interrupted) override {
    for (int rank = 0; rank < std::ssize(owners_); ++rank) here(rank) ? send(rank, arrays[rank], width) : expect(rank);
    Yield yield;
    Nap nap;
    while (!is_over(arrays)) {
      if (interrupted) {
        abandon();
        return false;
      }
      if (!yield()) nap();
    }
    return true;
  }

 private:
  struct Sent {
    MPI_Request request;
    Block block;
  };
  struct Received {
    bool arrived = true;
    int bytes = 0;
    MPI_Request request = MPI_REQUEST_NULL;
    Block block = {};
  };

  void send(int rank, const Tensor& array, std::size_t width) {
    const std::size_t numbers = static_cast<std::size_t>(array.size()) * width, bytes = sizeof(Shape) + numbers;
    if (bytes > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw BackendError(
          fmt::format("an array of {} bytes goes to another device of its group, and MPI takes {} at once", numbers,
                      std::numeric_limits<int>::max()));
    const Block block = pool_.take(bytes);
    const Shape shape{array.rows, array.columns};
    std::memcpy(block.get(), &shape, sizeof shape);
    if (numbers > 0) std::memcpy(block.get() + sizeof shape, array.data, numbers);
    const std::lock_guard lock(mpi_calls());
    for (const int other : others_) {
      Sent& sent = sent_.emplace_back(Sent{MPI_REQUEST_NULL, block});
      check(MPI_Isend(block.get(), static_cast<int>(bytes), MPI_BYTE, other, first_tag_ + rank, communicators().groups,
                      &sent.request));
    }
  }

  void expect(int rank) { received_[rank] = {.arrived = false}; }

  /// Whether all arrays have come and gone.
  bool is_over(std::vector<Tensor>& arrays) {
    const std::lock_guard lock(mpi_calls());
    std::erase_if(sent_, [](Sent& sent) { return ended(sent.request); });
    bool done = sent_.empty();
    for (int rank = 0; rank < std::ssize(received_); ++rank)
      if (!here(rank) && !look_for(rank, arrays[rank])) done = false;
    return done;
  }

  static bool ended(MPI_Request& request) {
    int done = 0;
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
    return done != 0;
  }

  /// The size of an array is known when its message is there.
  bool look_for(int rank, Tensor& array) {
    Received& from = received_[rank];
    if (from.arrived) return true;
    if (!from.block) {
      int is_there = 0;
      MPI_Message message;
      MPI_Status status;
      check(MPI_Improbe(owners_[rank], first_tag_ + rank, communicators().groups, &is_there, &message, &status));
      if (!is_there) return false;
      check(MPI_Get_count(&status, MPI_BYTE, &from.bytes));
      from.block = pool_.take(static_cast<std::size_t>(from.bytes));
      check(MPI_Imrecv(from.block.get(), from.bytes, MPI_BYTE, &message, &from.request));
    }
    if (!ended(from.request)) return false;
    Shape shape;
    std::memcpy(&shape, from.block.get(), sizeof shape);
    array = {from.block.get() + sizeof shape, shape.rows, shape.columns};
    return from.arrived = true;
  }

  /// MPI may still read from and write to these blocks.
  void abandon() {
    const std::lock_guard lock(mpi_calls());
    for (Sent& sent : sent_) {
      MPI_Request_free(&sent.request);
      leave_behind(sent.block);
    }
    sent_.clear();
    for (Received& from : received_) {
      if (from.request == MPI_REQUEST_NULL) continue;
      MPI_Request_free(&from.request);
      leave_behind(from.block);
    }
  }

  int first_tag_;
  std::vector<int> owners_;  ///< [rank]
  std::set<int> others_;     ///< Other processes of the group.
  BufferPool pool_;
  std::vector<Sent> sent_;
  std::vector<Received> received_;  ///< [rank]; keeps its block until the next exchange.
};

}  // namespace

std::unique_ptr<RemoteMembers> mpi_members(int first, std::vector<int> owners) {
  return std::make_unique<MpiMembers>(first, std::move(owners));
}

}  // namespace stagecraft::real
