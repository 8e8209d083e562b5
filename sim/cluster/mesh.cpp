// The devices of a stage as a grid of tensor, context, expert and data axes, and the groups along each axis.

#include "sim/cluster/mesh.hpp"

#include <map>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// From the axis on which neighbors in the list differ to the one on which they are farthest apart.
constexpr Axis kInnermostFirst[] = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data};

/// `sizes` count one pipeline rank: a stage has no others.
Mesh mesh_of(const std::vector<DeviceId>& devices, const RankOrder& order, RankSizes sizes) {
  sizes[RankAxis::Pipeline] = 1;
  Mesh mesh{{}, {sizes[RankAxis::Data], sizes[RankAxis::Context], sizes[RankAxis::Expert], sizes[RankAxis::Tensor]}};
  const auto stride = [&](RankAxis axis) { return order.stride(axis, sizes); };
  int product = 1;
  for (const int e : mesh.extent) product *= e;
  STAGECRAFT_CHECK(product == std::ssize(devices));
  for (int position = 0; position < product; ++position) {
    const Mesh::Coordinates at = mesh.at(position);
    mesh.devices.push_back(
        devices[at[Axis::Tensor] * stride(RankAxis::Tensor) + at[Axis::Context] * stride(RankAxis::Context) +
                at[Axis::Expert] * stride(RankAxis::Expert) + at[Axis::Data] * stride(RankAxis::Data)]);
  }
  return mesh;
}

}  // namespace

Mesh::Coordinates Mesh::at(int position) const {
  Coordinates place = {};
  for (const Axis axis : kInnermostFirst) {
    place[axis] = position % extent[axis];
    position /= extent[axis];
  }
  return place;
}

std::vector<std::vector<DeviceId>> Mesh::groups(AxisSet axes) const {
  std::vector<std::vector<DeviceId>> groups;
  std::map<Coordinates, std::size_t> group_at;  // By the coordinates that the members share; those on `axes` are 0.
  for (int i = 0; i < std::ssize(devices); ++i) {
    Coordinates shared = at(i);
    for (const Axis axis : kMeshAxes)
      if (axes.contains(axis)) shared[axis] = 0;
    const auto [entry, is_new] = group_at.try_emplace(shared, groups.size());
    if (is_new) groups.emplace_back();
    groups[entry->second].push_back(devices[i]);
  }
  return groups;
}

Mesh dense_mesh(const std::vector<DeviceId>& devices, const Degrees& d) {
  return mesh_of(devices, d.order, d.dense_sizes());
}

Mesh expert_mesh(const std::vector<DeviceId>& devices, const Degrees& d) {
  return mesh_of(devices, d.order, d.expert_sizes());
}

std::vector<std::vector<int>> positions_of_ranks(const Degrees& d) {
  std::vector<std::vector<int>> positions(d.pipeline);
  const int stride = d.order.stride(RankAxis::Pipeline, d.dense_sizes());
  for (int i = 0; i < d.pipeline * d.devices(); ++i) positions[i / stride % d.pipeline].push_back(i);
  return positions;
}

}  // namespace stagecraft
