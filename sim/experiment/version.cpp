// Version, commit and build ID of this program, the backends that it can use, and the name of this machine.

#include "sim/experiment/version.hpp"

#include <link.h>

#include <cstring>
#include <fstream>
#include <string>
#include <string_view>
#include <thread>

#include <fmt/core.h>
#include <stagecraft_commit.hpp>

#include "backends/backend.hpp"
#include "backends/world.hpp"
#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

/// ", build 0c08c2d9..." from the notes of a program; empty where no note of them is a build ID.
std::string build_id_in(std::string_view notes) {
  const auto padded = [](std::size_t size) { return (size + 3) / 4 * 4; };
  ElfW(Nhdr) note;
  while (notes.size() >= sizeof note) {
    std::memcpy(&note, notes.data(), sizeof note);
    const std::size_t begin = sizeof note + padded(note.n_namesz), size = begin + padded(note.n_descsz);
    if (size > notes.size()) return {};
    if (note.n_type == NT_GNU_BUILD_ID && notes.substr(sizeof note).starts_with("GNU")) {
      std::string text = ", build ";
      for (const char c : notes.substr(begin, note.n_descsz))
        text += fmt::format("{:02x}", static_cast<unsigned char>(c));
      return text;
    }
    notes.remove_prefix(size);
  }
  return {};
}

/// "yes 3.32", or why the backend cannot run here.
std::string availability(const BackendDef& backend) {
  const std::string why = backend.why_not();
  if (!why.empty()) return why;
  const std::string library = backend.version();
  return library.empty() ? "yes" : "yes " + library;
}

/// The version, the build, and a line for each backend.
std::string text_with(std::string (*line_of)(const BackendDef&)) {
  std::string text = fmt::format("stagecraft {}\n  build    {}", version(), STAGECRAFT_BUILD);
  for (const BackendDef* b : backends::catalog()) text += fmt::format("\n  {:<8} {}", b->name, line_of(*b));
  const std::string mpi = mpi_version();
  return text +
         fmt::format("\n  {:<8} {}", "mpi",
                     mpi.empty() ? "not built with it: real runs of several processes go over TCP" : "yes " + mpi);
}

}  // namespace

std::string version() { return fmt::format("{} ({})", STAGECRAFT_VERSION, STAGECRAFT_COMMIT); }

std::string build_name() {
  std::string name = version();
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {  // The first is the program itself.
        for (int h = 0; h < info->dlpi_phnum; ++h)
          if (info->dlpi_phdr[h].p_type == PT_NOTE)
            *static_cast<std::string*>(out) +=
                build_id_in({reinterpret_cast<const char*>(info->dlpi_addr + info->dlpi_phdr[h].p_vaddr),
                             info->dlpi_phdr[h].p_memsz});
        return 1;
      },
      &name);
  return name;
}

std::string version_text() {
  return text_with([](const BackendDef& b) {
    return b.built_with.empty() ? availability(b)
                                : fmt::format("built with {}, which its first run loads", b.built_with);
  });
}

std::string checked_version_text() { return text_with(availability); }

std::string machine() {
  std::string name = "unknown processor";
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with("model name") && line.find(':') != std::string::npos) {
      name = std::string(trim(line.substr(line.find(':') + 1)));
      break;
    }
  return fmt::format("{}, {}", name, pluralize(std::thread::hardware_concurrency(), "core"));
}

}  // namespace stagecraft
