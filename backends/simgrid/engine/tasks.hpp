#pragma once

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "sim/cluster/cluster.hpp"
#include "sim/program/program.hpp"

namespace stagecraft::sg {

/// What the module in this folder does for the program that loads it. SimGrid is a singleton whose clock never goes
/// back and which aborts on its own errors: each but version() is called once in a process, or in run_in_child.
struct Tasks {
  /// Version of the SimGrid library, such as "3.32".
  std::string (*version)();
  /// Plays a program from time 0 and writes the start and end of every instruction. The routes come from
  /// des::routes_of.
  void (*simulate)(const Program&, const Cluster&, std::span<const Route>, std::span<double> start,
                   std::span<double> end);
  /// Loads `checked` and writes what it has to `out`, for read_platform.cpp; errors name `file`.
  void (*list_platform)(const std::string& file, const std::string& checked, const std::vector<std::string>& wanted,
                        std::size_t max_hosts, std::FILE* out);
};

namespace engine {

std::string version();
void simulate(const Program& program, const Cluster& cluster, std::span<const Route> routes, std::span<double> start,
              std::span<double> end);
void list_platform(const std::string& file, const std::string& checked, const std::vector<std::string>& wanted,
                   std::size_t max_hosts, std::FILE* out);

}  // namespace engine
}  // namespace stagecraft::sg

/// The symbol that load_library() looks up.
extern "C" const stagecraft::sg::Tasks stagecraft_simgrid_tasks;
