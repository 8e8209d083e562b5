#include "sim/cluster/device_presets.hpp"

#include <algorithm>

#include "sim/cluster/memory_reserve.hpp"

namespace stagecraft {
namespace {

constexpr double kGiB = 0x1p30;

/// Plain numbers in the units that data sheets use.
struct PresetFigures {
  const char* name;
  double tera_flops, efficiency, giga_bytes_per_second, gibibytes, launch_us, idle_watts, busy_watts;
  std::string_view source;
};

// `efficiency` is what dense layers of training reach: A100 52 % of peak (Narayanan et al., SC 2021, table 1), V100 30
// % (Shoeybi et al., Megatron-LM, 2019, section 5), H100 38 to 43 % (Llama 3, 2024, table 4), TPU v4 46 % (Chowdhery et
// al., PaLM, 2022, table 3); of others it is assumed. Busy power is the data sheet's limit. Idle power and launch time
// stand in no data sheet of a GPU: usual readings of nvidia-smi and of empty kernels; a power of 0 is not known.
constexpr PresetFigures kFigures[] = {
    {"a100-40", 312, 0.5, 1555, 40, 5, 50, 400, "NVIDIA A100 data sheet (2021), SXM 40 GB: BF16 tensor cores, dense"},
    {"a100-80", 312, 0.5, 2039, 80, 5, 55, 400, "NVIDIA A100 data sheet (2021), SXM 80 GB: BF16 tensor cores, dense"},
    {"h100-sxm", 989.4, 0.4, 3350, 80, 5, 70, 700, "NVIDIA H100 data sheet (2023), SXM5: BF16 tensor cores, dense"},
    {"h200", 989.4, 0.4, 4800, 140, 5, 75, 700,
     "NVIDIA H200 data sheet (2024), SXM: BF16 tensor cores, dense; its 141 GB are 143,771 MiB in nvidia-smi"},
    {"b200", 2250, 0.4, 8000, 179, 5, 140, 1000,
     "NVIDIA HGX and DGX B200 data sheets (2024): BF16 tensor cores, dense; its 180 GB are 183,359 MiB in nvidia-smi"},
    {"v100-16", 125, 0.3, 900, 16, 5, 40, 300, "NVIDIA V100 data sheet (2020), SXM2 16 GB: FP16 tensor cores, dense"},
    {"v100-32", 125, 0.3, 900, 32, 5, 40, 300, "NVIDIA V100 data sheet (2020), SXM2 32 GB: FP16 tensor cores, dense"},
    {"a100-40-pcie", 312, 0.5, 1555, 40, 5, 0, 250, "NVIDIA A100 data sheet (2021), PCIe 40 GB"},
    {"a100-80-pcie", 312, 0.5, 1935, 80, 5, 0, 300, "NVIDIA A100 data sheet (2021), PCIe 80 GB"},
    {"h100-pcie", 756, 0.4, 2000, 80, 5, 0, 350, "NVIDIA H100 data sheet (2022), PCIe"},
    {"h100-nvl", 835.5, 0.4, 3900, 94e9 / kGiB, 5, 0, 400, "NVIDIA H100 data sheet (2024), NVL"},
    {"h100-hbm2e", 989, 0.4, 2400, 96e9 / kGiB, 5, 0, 500,
     "torchtitan benchmarks (2024, 2025): 96 GB HBM2e, 500 W; peak as SXM"},
    {"h800", 989, 0.4, 3350, 80, 5, 70, 700, "DeepSeek-V3 technical report (2024): H100 SXM with slower NVLink"},
    {"h20", 148, 0.4, 4000, 96e9 / kGiB, 5, 0, 400,
     "figures of NVIDIA as the press printed them (2024): no public data sheet was found"},
    {"b300", 2250, 0.4, 8000, 288e9 / kGiB, 5, 0, 0, "HGX B300 figures of NVIDIA (2025), collected by G. Lockwood"},
    {"gb200", 2500, 0.4, 8000, 186e9 / kGiB, 5, 0, 1200, "NVIDIA GB200 NVL72 data sheet (2024)"},
    {"gb300", 2500, 0.4, 8000, 288e9 / kGiB, 5, 0, 1400, "NVIDIA GB300 NVL72 figures (2025), collected by G. Lockwood"},
    {"mi300x", 1307.4, 0.4, 5300, 192e9 / kGiB, 5, 0, 750, "AMD Instinct MI300X data sheet (2023)"},
    {"l40s", 362.05, 0.4, 864, 48e9 / kGiB, 5, 0, 350, "NVIDIA L40S data sheet (2023)"},
    {"rtx-4090", 165.2, 0.4, 1008, 24, 5, 0, 450, "NVIDIA Ada GPU architecture paper (2022), appendix A: sums in fp32"},
    {"tpu-v4", 275, 0.46, 1200, 32, 1, 90, 192,
     "Google Cloud, TPU v4: BF16; least and largest power measured; launch time is assumed"},
    {"jetson-agx-orin", 42.5, 0.5, 204.8, 64, 10, 10, 60,
     "NVIDIA Jetson AGX Orin technical brief (2022): FP16 tensor cores, dense: a quarter of 170 sparse INT8 TOPS; idle "
     "power and efficiency are assumed"},
    {"jetson-nano", 0.472, 0.5, 25.6, 4, 10, 1.25, 10,
     "NVIDIA Jetson Nano data sheet (2019): FP16 on CUDA cores; idle power and efficiency are assumed"},
    {"raspberry-pi-4", 0.048, 0.5, 12.8, 4, 1, 2.7, 6.4,
     "4 Cortex-A72 at 1.5 GHz with 8 FP32 operations a cycle (Arm), LPDDR4-3200 of 32 bits (Raspberry Pi 4 product "
     "brief); "
     "power measured by pidramble.com; efficiency as its Linpack, 13.5 of 24 GFLOP/s in FP64"},
};

/// Not GPUs with memory for themselves: their memory is shared with the operating system, or no public figure was
/// found.
constexpr std::string_view kWithoutReserve[] = {"tpu-v4", "jetson-agx-orin", "jetson-nano", "raspberry-pi-4"};

DevicePreset make(const PresetFigures& f) {
  DeviceType type;
  type.name = type.preset = f.name;
  type.peak.value = f.tera_flops * 1e12;
  type.efficiency = f.efficiency;
  type.memory_bandwidth.value = f.giga_bytes_per_second * 1e9;
  type.memory.value = f.gibibytes * kGiB;
  if (std::find(std::begin(kWithoutReserve), std::end(kWithoutReserve), type.name) == std::end(kWithoutReserve))
    type.memory_reserve = gpu_memory_reserve(type.memory);
  type.launch.value = f.launch_us / 1e6;
  type.idle.value = f.idle_watts;
  type.busy.value = f.busy_watts;
  return {std::move(type), f.source};
}

}  // namespace

std::span<const DevicePreset> device_presets() {
  static const std::vector<DevicePreset> presets = [] {
    std::vector<DevicePreset> list;
    for (const PresetFigures& f : kFigures) list.push_back(make(f));
    return list;
  }();
  return presets;
}

const DevicePreset* find_device_preset(std::string_view name) {
  for (const DevicePreset& preset : device_presets())
    if (preset.type.name == name) return &preset;
  return nullptr;
}

std::vector<std::string> device_preset_names() {
  std::vector<std::string> names;
  for (const DevicePreset& preset : device_presets()) names.push_back(preset.type.name);
  return names;
}

}  // namespace stagecraft
