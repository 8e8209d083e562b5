#pragma once

#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/tcp/lanes.hpp"
#include "backends/real/tcp/wire.hpp"

namespace stagecraft::real {

/// Collectives of a program over TCP, between the processes of their members.
///
/// An all-reduce has as many parts as processes and sums each number in the order of the ranks, as threads do. In the
/// steps of a ring, each process first sends each other one the part that this one sums, then the sums go around the
/// ring. With a member in each of n processes, each sends and receives 2 (n - 1) / n of the array, as in the ring that
/// adds on the way. In other collectives a process gets what its members need of each share.
class TcpCollectives {
 public:
  TcpCollectives(TcpWire&, const Program&, const DevicePlacement&, RemoteBuffers&, const Lanes&);

  void join(InstructionId member);  ///< Any thread.
  void use(Arrival&&);              ///< One thread at a time, as the next.
  void advance(std::vector<InstructionId>& ended);

 private:
  struct Call {
    std::vector<int> processes;
    int place = 0;  ///< The place of this process in that list.
    int lane = 0;   ///< On which it sends.
    int members_here = 0, joined = 0;
    int missing = 0;  ///< Shares, or parts to sum, that are not here.
    /// By member. In an all-reduce other members have only the part that this process sums.
    std::vector<Block> shares;
    int next_step = 1;
    std::set<std::pair<int, int>> came;  ///< Places of processes and members whose part to sum has come.
    Block result;
    int summed = 0;  ///< Parts of the result that are here.
    bool has_sum = false;
  };
  /// Bytes of an array.
  struct Range {
    std::size_t first = 0, bytes = 0;
  };

  bool sums(int collective) const;
  Call& call_of(int collective);
  Range part(int collective, const Call&, int place) const;
  Range needed(int collective, int member, int process) const;
  void send(Call&, int to, const Frame&, const Block& array, std::size_t first);
  bool advance(int collective, Call&);
  void send_parts(int collective, Call&);
  void sum(int collective, Call&);
  void pass_on(int collective, Call&, int part);
  void send_shares(int collective, Call&, int member);

  TcpWire& wire_;
  const Program& p_;
  const DevicePlacement& placement_;
  RemoteBuffers& buffers_;
  const Lanes& lanes_;
  BufferPool pool_;
  std::map<int, Call> calls_;
  std::mutex mutex_;
  std::vector<std::pair<InstructionId, Block>> joined_;  ///< Members that have joined; guarded by mutex_.
};

}  // namespace stagecraft::real
