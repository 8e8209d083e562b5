// Checks a GPU for what running pipelines on it rests on, and prints what it saw as JSON. Exit codes: 0 all checks ran,
// 1 one could not, 77 there is no device.

#include <cstdlib>
#include <iostream>

#include "backends/cuda/first_run/checks.hpp"

using namespace stagecraft::cuda;

int main() {
  setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  if (const std::string why = why_no_device(); !why.empty()) {
    std::cerr << "no GPU to look at: " << why << "\n";
    return 77;
  }
  const std::pair<const char*, first_run::Json (*)()> checks[] = {{"device", first_run::device_facts},
                                                                  {"clocks", first_run::clocks},
                                                                  {"carving", first_run::carving},
                                                                  {"events", first_run::events},
                                                                  {"side_by_side", first_run::side_by_side},
                                                                  {"gaps", first_run::gaps},
                                                                  {"copies", first_run::copies},
                                                                  {"matrix_products", first_run::matrix_products},
                                                                  {"own_messages", first_run::own_messages},
                                                                  {"messages", first_run::messages}};
  first_run::Json all{{"schema", "gpu_first_run/1"}};
  bool ran = true;
  for (const auto& [name, run] : checks) {
    std::cerr << name << "\n";
    try {
      all[name] = run();
    } catch (const std::exception& e) {
      all[name] = {{"error", e.what()}};
      ran = false;
    }
  }
  std::cout << all.dump(1) << "\n";
  return ran ? 0 : 1;
}
