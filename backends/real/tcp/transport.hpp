#pragma once

#include <map>
#include <mutex>
#include <set>
#include <vector>

#include "backends/real/buffer_pool.hpp"
#include "backends/real/processes/reduction.hpp"
#include "backends/real/tcp/collectives.hpp"
#include "backends/real/tcp/lanes.hpp"
#include "backends/real/tcp/wire.hpp"

namespace stagecraft::real {

/// Messages over TCP, in plain host memory that counts to no device. The data of an eager transfer are sent as soon as
/// they are made. The data of a rendezvous wait until, too, the receiver has said that its receive may start. In both
/// cases the send ends when the receiver has said that it has the data.
class TcpTransport : public MessageTransport {
 public:
  TcpTransport(TcpWire&, const Program&, const DevicePlacement&, RemoteBuffers&);

  void connect(double seconds) override;
  void finish(double seconds) override;
  bool here(DeviceId d) const override { return placement_.here(d); }
  void send(int transfer) override;
  void receive(int transfer) override;
  void join(int collective, InstructionId member) override;
  void poll(std::vector<InstructionId>& ended) override;
  std::optional<Pulse> pulse(const Pulse& local) override;
  bool stop_requested_by_launcher() const override { return false; }

  bool is_awaited() const override { return true; }
  void wait(double seconds) override { wire_.pump(seconds); }
  void wake() override { wire_.wake(); }
  bool confirms_eager_sends() const override { return true; }
  std::uint64_t bytes_moved() const override { return wire_.bytes_read(); }

 private:
  int sender(int transfer) const { return placement_.owner(p_.at(p_.transfers[transfer].send).device); }
  int receiver(int transfer) const { return placement_.owner(p_.at(p_.transfers[transfer].receive).device); }
  void send_data(int transfer, Block data);
  void send_note(int to, FrameKind kind, int transfer);
  void post_receives();
  void use(Arrival&&, std::vector<InstructionId>& ended);

  TcpWire& wire_;
  const Program& p_;
  const DevicePlacement& placement_;
  RemoteBuffers& buffers_;
  Lanes lanes_;
  TcpCollectives collectives_;
  BufferPool pool_;
  Reduction pulses_ = pulse_reduction();
  double lost_at_ = 0;  ///< When a peer was first seen to be lost; else zero.
  std::mutex polling_;

  std::mutex mutex_;                ///< Guards everything below.
  std::map<int, Block> unsent_;     ///< Rendezvous transfers whose receive may not start yet.
  std::set<int> ready_;             ///< Rendezvous transfers whose receive may start, and which are not made yet.
  std::set<int> waiting_, posted_;  ///< Transfers to receive.
  std::map<int, Block> early_;      ///< Eager transfers that came before their receive could start.
  std::map<int, Block> complete_;   ///< Transfers that have come and whose receive may start.
};

}  // namespace stagecraft::real
