#include "tools/stagecraft/export_chakra.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "sim/experiment/run.hpp"
#include "sim/report/chakra.hpp"

namespace stagecraft {

int export_chakra(const Arguments& a) {
  const char* const example = "stagecraft export chakra scenarios/examples/quickstart.yaml --out traces";
  if (!a.has("FILE") || a.text("FILE").ends_with(".csv")) throw InputError("chakra is made of a scenario", example);
  if (!a.has("out")) throw InputError("chakra needs a folder to write to", example);
  const CompiledExperiment c = compile(load_experiment(a.text("FILE"), a.list("set")));
  const ChakraTraces made = chakra_traces(c.program);
  const std::string folder = a.text("out");
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) throw BackendError(fmt::format("'{}' cannot be made: {}", folder, failed.message()));
  std::string devices;
  for (std::size_t r = 0; r < made.traces.size(); ++r) {
    write_file(fmt::format("{}/rank.{}.et", folder, r), made.traces[r]);
    devices += fmt::format("{} {}\n", r, c.cluster().devices[made.devices[r]].name);
  }
  write_file(folder + "/devices.txt", devices);
  if (!made.groups.empty()) write_file(folder + "/groups.json", made.groups);
  for (const std::string& note : made.notes) fmt::print(stderr, "note: {}\n", note);
  fmt::print(stderr, "note: links are not part of traces; give ASTRA-sim a network of {} ranks\n", made.traces.size());
  print(fmt::format(
      "wrote {} traces of {} instructions to {}\nASTRA-sim reads them with --workload-configuration={}/rank{}\n",
      made.traces.size(), c.program.size(), folder, folder,
      made.groups.empty() ? "" : fmt::format(" --comm-group-configuration={}/groups.json", folder)));
  return 0;
}

}  // namespace stagecraft
