#include "sim/plan/mesh.hpp"

#include <map>
#include <utility>

#include "sim/core/diagnostic.hpp"

namespace stagecraft {
namespace {

/// From the axis on which neighbors in the list differ to the one on which they are farthest apart.
constexpr Axis kInnermostFirst[] = {Axis::Tensor, Axis::Context, Axis::Expert, Axis::Data};

Mesh mesh_of(std::vector<DeviceId> devices, const Mesh::Coordinates& extent) {
  int product = 1;
  for (const int e : extent) product *= e;
  STAGECRAFT_CHECK(product == std::ssize(devices));
  return {std::move(devices), extent};
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

Mesh dense_mesh(std::vector<DeviceId> devices, const Degrees& d) {
  return mesh_of(std::move(devices), {d.replicas, d.context, 1, d.tensor});
}

Mesh expert_mesh(std::vector<DeviceId> devices, const Degrees& d) {
  return mesh_of(std::move(devices), {d.expert_replicas(), 1, d.expert, d.expert_tensor});
}

}  // namespace stagecraft
