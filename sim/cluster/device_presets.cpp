// Finds a device type by name in topologies/devices, and makes an Accelerator of it for costs and a DeviceType for a
// cluster.

#include "sim/cluster/device_presets.hpp"

#include <fmt/core.h>

#include "sim/config/library.hpp"
#include "sim/core/diagnostic.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {

std::vector<std::string> device_preset_names() { return file_names(FileKind::Device); }

std::optional<Accelerator> find_device_preset(const std::string& name) {
  const std::string file = library_file(FileKind::Device, name);
  return file.empty() ? std::nullopt : std::optional(load_accelerator(file));
}

Accelerator accelerator_named(const std::string& name) {
  const std::string file = find_file(FileKind::Device, name, "");
  if (file.empty())
    throw InputError(fmt::format("there is no device type '{}'", name), suggest(name, device_preset_names()));
  Accelerator device = load_accelerator(file);
  if (!device.has_kernels())
    throw InputError(fmt::format("no figures of kernels are known for '{}'", name),
                     fmt::format("give its number formats, multiprocessors and the like in {}", file));
  return device;
}

DeviceType device_type_of(const Accelerator& a) {
  DeviceType type;
  type.name = type.preset = a.name;
  type.peak = a.roofline.peak;
  type.efficiency = a.roofline.efficiency;
  type.memory_bandwidth = a.memory_rate;
  type.memory = a.memory;
  type.memory_reserve = a.memory_reserve;
  type.launch = a.roofline.launch;
  type.idle = a.idle;
  type.busy = a.busy;
  return type;
}

}  // namespace stagecraft
