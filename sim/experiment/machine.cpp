#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"

namespace stagecraft {

std::string machine() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(':') != std::string::npos) {
      name = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  return fmt::format("{}, {} cores", name, std::thread::hardware_concurrency());
}

}  // namespace stagecraft
