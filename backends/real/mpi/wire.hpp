#pragma once

#include <mpi.h>

#include <list>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "backends/real/processes/wire.hpp"

namespace stagecraft::real {

/// The world once for each kind of talk, so that none takes the messages of another.
struct Communicators {
  MPI_Comm words = MPI_COMM_NULL, messages = MPI_COMM_NULL, shares = MPI_COMM_NULL, groups = MPI_COMM_NULL;
};
const Communicators& communicators();

/// Held for each call of MPI while a run has threads.
std::mutex& mpi_calls();

/// BackendError in the words of MPI, unless it says that all is well.
void check(int result);

/// BackendError where MPI cannot tell that many messages apart.
void require_tags(std::size_t count, const char* what);

/// Whether a run that failed has left messages under way; they keep their memory, which MPI may write to or read from
/// as long as the process lives.
bool messages_left();
void leave_behind(std::shared_ptr<void>);

/// Words over MPI. The tag is the kind of a word. A text goes in pieces, of which only the last one is not full.
class MpiWire : public Wire {
 public:
  MpiWire();

  World world() const override { return world_; }
  void post(int to, WordKind, std::string text) override;
  std::optional<std::string> take(int from, WordKind) override;
  bool is_coming(int from, WordKind) override;
  bool all_left() override;
  std::unique_ptr<MessageTransport> transport(const Program&, const DevicePlacement&, RemoteBuffers&) override;
  std::unique_ptr<RemoteMembers> members(int first, std::vector<int> owners) override;
  bool has_launcher() const override { return true; }
  void leave(int code) override;

 private:
  struct Leaving {
    std::string text;
    std::vector<MPI_Request> pieces;
  };
  /// The rest of a large word never comes if its sender is lost, so none is waited for.
  struct Arriving {
    std::string text;
    MPI_Request piece = MPI_REQUEST_NULL;
    int bytes = 0;  ///< The size of that piece.
  };

  void forget_those_that_left();
  bool begin_piece(int from, WordKind, Arriving&);

  World world_;
  std::list<Leaving> leaving_;  ///< This and the map below are guarded by mpi_calls().
  std::map<std::pair<int, WordKind>, Arriving> arriving_;
};

}  // namespace stagecraft::real
