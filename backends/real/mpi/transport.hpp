#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/device_placement.hpp"
#include "backends/real/mpi/wire.hpp"
#include "backends/real/processes/reduction.hpp"

namespace stagecraft::real {

/// Messages over MPI, in plain host memory that counts to no device. A rendezvous send ends when its receive has
/// started (MPI_Issend). A message is known by its transfer, a share by its member, so that nothing depends on who is
/// first.
class MpiTransport : public MessageTransport {
 public:
  /// BackendError when a message is longer, or there are more of them, than MPI can tell.
  MpiTransport(const Program&, const DevicePlacement&, RemoteBuffers&);
  ~MpiTransport() override;

  bool here(DeviceId d) const override { return placement_.here(d); }
  void send(int transfer) override;
  void receive(int transfer) override;
  void join(int collective, InstructionId member) override;
  void poll(std::vector<InstructionId>& ended) override;
  std::optional<Pulse> pulse(const Pulse& local) override;
  bool stop_requested_by_launcher() const override;

  void finish(double seconds) override;  ///< Every message leaves when its receive has ended.

 private:
  using Block = std::shared_ptr<char[]>;
  enum class Kind : std::uint8_t { Sent, Received, ShareSent, ShareReceived };
  struct UnderWay {
    Kind kind;
    int index = 0;   ///< Index of the transfer, or of the collective of a share.
    int member = 0;  ///< Rank of the share's member in its collective.
    Block block;
  };
  struct Sum {
    std::vector<Block> shares;
    int missing = 0;
  };

  void require_possible() const;
  Sum& sum_of(int collective);
  void exchange(const CollectiveCall&, int collective, int member, const Block&);
  void add(MPI_Request, UnderWay);
  void post_receives();
  std::vector<UnderWay> arrived();
  void note_share(int collective);
  void end(const UnderWay&, std::vector<InstructionId>& ended);
  void end_sums(std::vector<InstructionId>& ended);

  const Program& p_;
  const DevicePlacement& placement_;
  RemoteBuffers& buffers_;
  BufferPool pool_;
  std::vector<MPI_Request> requests_;  ///< This and the containers below are guarded by mpi_calls().
  std::vector<UnderWay> under_way_;    ///< Indexed like requests_.
  std::set<int> waiting_, posted_;     ///< Transfers to receive.
  std::unordered_map<int, Sum> sums_;
  std::vector<int> complete_;  ///< Collectives with all their shares.
  std::mutex polling_;
  Reduction pulses_ = pulse_reduction();
};

std::unique_ptr<RemoteMembers> mpi_members(int first, std::vector<int> owners);

}  // namespace stagecraft::real
