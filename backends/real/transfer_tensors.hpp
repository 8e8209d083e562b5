#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "backends/real/array.hpp"
#include "backends/real/stage_net.hpp"
#include "sim/program/workload.hpp"

namespace stagecraft::real {

/// Copies one piece of a message from the memory of its sender to that of its receiver.
using Copier = std::function<void(const void* from, void* to, std::size_t bytes)>;
/// Called with each piece of a message, where it lies on one side; both sides have the same pieces in the same order.
using Piece = std::function<void(void* data, std::size_t bytes)>;

/// The tensors of transfers: what ops of one stage send to ops of others, and what has arrived for them.
///
/// The thread of a device posts what its op made; the thread that carries a message takes it from the sender's side and
/// files it on the receiver's. A message has the samples that its two ends share.
class TransferTensors {
 public:
  using NetOf = std::function<const StageNet&(StageId, int replica)>;

  /// `memories` by device; null for other processes. `width`: bytes of a number.
  TransferTensors(const Program&, NetOf net_of, std::vector<DeviceMemory*> memories, std::size_t width);

  /// Posts the tensors (by value of the stage's net) that an op sends on; ops on the same device get theirs at once.
  void post(StageId, int micro, int replica, bool gradient, std::vector<Array> values);
  /// What arrived over an edge for an op, one array for each value of the crossing; it is forgotten here.
  std::vector<Array> collect(int edge, StageId to, int micro, int replica, bool gradient);

  void forget();                                 ///< Drops everything that is in flight.
  bool empty() const { return boxes_.empty(); }  ///< Whether no message waits for its reader.

  void carry(int transfer, const Copier&);  ///< Both ends are here.
  std::size_t bytes(int transfer) const;    ///< Size of what pack() writes.
  void pack(int transfer, void* into);
  void unpack(int transfer, const void* from);
  void give(int transfer, const Piece&);  ///< The sender is here; afterwards the message is on its way.
  void take(int transfer, const Piece&);  ///< The receiver is here; afterwards what was written there has arrived.

 private:
  /// The op that makes or needs a tensor.
  struct MessageEnd {
    StageId stage;
    int micro = 0, replica = 0;
    bool gradient = false;
  };
  struct TransferLayout {
    int edge = 0;
    MessageEnd from, to;
    std::int64_t from_first = 0, to_first = 0, samples = 0;  ///< Counted within what each side holds.
  };
  struct Posted {
    std::vector<Array> values;
    std::atomic<int> readers{0};
  };
  TransferLayout layout(int transfer) const;
  TransferLayout layout(int edge, const MessageEnd& from, const MessageEnd& to, const RowRange&) const;
  std::size_t sample_bytes(const Value&, const TransferLayout&) const;
  std::size_t part_bytes(const Value&, const TransferLayout&) const;
  void deliver(const TransferLayout&, const Copier&);
  std::vector<Array>& box(const TransferLayout&);
  Posted& posted(const TransferLayout& l) { return posted_[key(l.from)]; }
  void read(Posted&);
  const StageNet& net(const MessageEnd& e) const { return net_of_(e.stage, e.replica); }
  const Crossing& crossing(const MessageEnd&, int edge, bool enters) const;
  const StageWorkload& stage(StageId s) const { return w_.stages[s]; }
  std::size_t key(const MessageEnd&) const;
  std::uint64_t box_name(const MessageEnd& to, int edge) const {
    return static_cast<std::uint64_t>(key(to)) * w_.edges.size() + static_cast<std::uint64_t>(edge);
  }

  const Program& p_;
  const Workload& w_;
  NetOf net_of_;
  IdVector<DeviceId, DeviceMemory*> memories_;
  std::size_t width_;
  IdVector<StageId, std::size_t> first_key_;  ///< First key of each stage; one more at the end.
  std::vector<int> expected_;                 ///< Transfers that read what an op posted.
  std::unique_ptr<Posted[]> posted_;
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::vector<Array>> boxes_;  ///< Filed by edge and receiving op.
};

}  // namespace stagecraft::real
