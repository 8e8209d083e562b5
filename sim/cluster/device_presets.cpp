// Finds a device type by name in topologies/devices, and makes an Accelerator of it.

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

}  // namespace stagecraft
