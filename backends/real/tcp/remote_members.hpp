#pragma once

#include <set>
#include <vector>

#include "backends/real/tcp/wire.hpp"

namespace stagecraft::real {

/// Exchanges the arrays of a group over TCP: each array goes to each other process of the group.
class TcpMembers : public RemoteMembers {
 public:
  TcpMembers(TcpWire&, int first, std::vector<int> owners);

  bool here(int rank) const override { return owners_[rank] == wire_.world().rank; }
  bool exchange(std::vector<Tensor>& arrays, std::size_t width, const std::atomic<bool>& interrupted) override;

 private:
  void send(int rank, const Tensor& array, std::size_t width);
  bool receive(int rank, Tensor& array);

  TcpWire& wire_;
  int first_;                ///< The number of the first member.
  std::vector<int> owners_;  ///< [rank]
  std::set<int> others_;     ///< Other processes of the group.
  BufferPool pool_;
  std::vector<Block> received_;  ///< [rank]; they stay until the next exchange.
};

}  // namespace stagecraft::real
