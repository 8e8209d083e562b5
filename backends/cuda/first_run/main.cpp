// The program stagecraft_gpu_first_run: checks a GPU for what this backend relies on, and prints the result of each
// check as JSON at once, so that one that hangs hides no result before it. Exit codes: 0 all checks ran, 1 one could
// not, 77 there is no device.

#include <iostream>
#include <set>
#include <string>

#include "backends/cuda/first_run/checks.hpp"

using namespace stagecraft::cuda;

/// Arguments name checks to leave out, such as `copies`, the longest.
int main(int argc, char** argv) {
  const std::set<std::string> left_out(argv + 1, argv + argc);
  if (const std::string why = why_no_device(); !why.empty()) {
    std::cerr << "no GPU to look at: " << why << "\n";
    return 77;
  }
  const std::pair<const char*, first_run::Json (*)()> checks[] = {
      {"device", first_run::device_facts},       {"clocks", first_run::clocks},
      {"carving", first_run::carving},           {"events", first_run::events},
      {"side_by_side", first_run::side_by_side}, {"gaps", first_run::gaps},
      {"ceilings", first_run::ceilings},         {"matrix_products", first_run::matrix_products},
      {"own_messages", first_run::own_messages}, {"messages", first_run::messages},
      {"several_gpus", first_run::several_gpus}, {"copies", first_run::copies}};
  std::cout << "{\n\"schema\": \"gpu_first_run/1\"" << std::flush;
  bool ran = true;
  for (const auto& [name, run] : checks) {
    if (left_out.count(name) > 0) continue;
    std::cerr << name << "\n";
    first_run::Json seen;
    try {
      seen = run();
    } catch (const std::exception& e) {
      seen = {{"error", e.what()}};
      ran = false;
    }
    std::cout << ",\n\"" << name << "\": " << seen.dump(1) << std::flush;
  }
  std::cout << "\n}\n";
  return ran ? 0 : 1;
}
