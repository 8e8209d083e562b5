// `stagecraft doctor`: prints which backends can run on this machine and why others cannot, MPI, cores, and the folders
// of library files.

#include <fmt/core.h>

#include <thread>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/core/text.hpp"
#include "sim/experiment/version.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

/// The facts of a backend about its machine, to print below its line of checked_version_text(), without what that line
/// says.
std::string facts_of(const BackendDef& backend) {
  const std::string why = backend.why_not();
  std::string text;
  for (const std::string& line : split(backend.facts(), '\n'))
    if (why.empty() || !line.ends_with(why)) text += fmt::format("  {:<8} {}\n", "", line);
  return text;
}

/// The backends, and beneath each what it knows.
std::string backends_text() {
  std::string text;
  for (const std::string& line : split(checked_version_text(), '\n')) {
    text += line + "\n";
    for (const BackendDef* b : backends::catalog())
      if (b->facts && line.starts_with(fmt::format("  {:<8} ", b->name))) text += facts_of(*b);
  }
  return text;
}

int execute_doctor(const Arguments&) {
  print(backends_text());
  print(fmt::format("  cores    {}\n", std::thread::hardware_concurrency()));
  for (const auto& [kind, name] :
       {std::pair{FileKind::Model, "models"}, {FileKind::Cluster, "topologies"}, {FileKind::Scenario, "scenarios"}}) {
    const auto where = folders(kind);
    print(
        fmt::format("  {:<10} {} in {}\n", name, named_files(kind).size(), where.empty() ? "no folder" : join(where)));
  }
  bool all_available = true;
  for (const BackendDef* b : backends::catalog()) all_available = all_available && b->why_not().empty();
  print(all_available ? "every backend of this build can run here\n" : "some backends cannot run here, see above\n");
  return 0;
}

}  // namespace

extern const Command doctor{
    .name = "doctor",
    .summary = "Say what this build and this machine can do",
    .group = "Rest",
    .example = "stagecraft doctor",
    .arguments = {},
    .run = execute_doctor,
};

}  // namespace stagecraft::commands
