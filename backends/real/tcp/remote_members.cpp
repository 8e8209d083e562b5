// Exchanges the arrays of a group of devices between processes over TCP, inside of an instruction.

#include "backends/real/tcp/remote_members.hpp"

#include <cstring>

namespace stagecraft::real {
namespace {

constexpr int kFirstLane = 1 << 30;  // Lanes of messages have smaller numbers.
constexpr Patience kPatience{30};

/// Comes before the numbers of an array. Members may bring arrays of different sizes, such as rows for experts.
struct ArrayShape {
  std::int64_t rows = 0, columns = 0;
};

}  // namespace

TcpMembers::TcpMembers(TcpWire& wire, int first, std::vector<int> owners)
    : wire_(wire), first_(first), owners_(std::move(owners)), received_(owners_.size()) {
  for (const int owner : owners_)
    if (owner != wire_.world().rank) others_.insert(owner);
  for (const int other : others_) wire_.open_lane(other, kFirstLane + first_, deadline_after(kPatience));
}

bool TcpMembers::exchange(std::vector<Tensor>& arrays, std::size_t width, const std::atomic<bool>& interrupted) {
  for (int rank = 0; rank < std::ssize(owners_); ++rank)
    if (here(rank)) send(rank, arrays[rank], width);
  for (int rank = 0; rank < std::ssize(owners_); ++rank)
    while (!here(rank) && !receive(rank, arrays[rank]))
      if (interrupted) return false;
  return true;
}

void TcpMembers::send(int rank, const Tensor& array, std::size_t width) {
  const std::size_t numbers = static_cast<std::size_t>(array.size()) * width;
  const Block block = pool_.take(sizeof(ArrayShape) + numbers);
  const ArrayShape shape{array.rows, array.columns};
  std::memcpy(block.get(), &shape, sizeof shape);
  if (numbers > 0) std::memcpy(block.get() + sizeof shape, array.data, numbers);
  for (const int other : others_)
    wire_.send(other, kFirstLane + first_, {FrameKind::Array, first_ + rank, 0, 0, sizeof shape + numbers}, block);
}

bool TcpMembers::receive(int rank, Tensor& array) {
  constexpr double kTick = 0.01;  // Between two looks whether the run is over.
  std::optional<Arrival> arrival = wire_.take_array(owners_[rank], first_ + rank, kTick);
  if (!arrival) return false;
  ArrayShape shape;
  std::memcpy(&shape, arrival->data.get(), sizeof shape);
  received_[rank] = std::move(arrival->data);
  array = {received_[rank].get() + sizeof shape, shape.rows, shape.columns};
  return true;
}

}  // namespace stagecraft::real
