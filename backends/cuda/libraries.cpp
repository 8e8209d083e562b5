#include "backends/cuda/libraries.hpp"

#include <dlfcn.h>

#include <cstdlib>
#include <sstream>
#include <vector>

#include "backends/cuda/driver.hpp"

namespace stagecraft::cuda {
namespace {

std::vector<std::string> places_of(const std::string& name) {
  std::vector<std::string> places;
  if (const char* folders = std::getenv("STAGECRAFT_CUDA_LIBRARIES")) {
    std::istringstream list(folders);
    for (std::string folder; std::getline(list, folder, ':');) places.push_back(folder + "/" + name);
  }
  places.push_back(name);
  places.push_back("/usr/local/cuda/lib64/" + name);
  return places;
}

}  // namespace

Library::Library(const char* name) {
  std::string tried;
  for (const std::string& place : places_of(name)) {
    handle_ = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    where_ = place;
    if (handle_) return;
    tried += (tried.empty() ? "" : "; ") + std::string(dlerror());
  }
  throw CudaError(std::string(name) + " is not there: " + tried);
}

void* Library::symbol(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (!found) throw CudaError(where_ + " has no " + name);
  return found;
}

}  // namespace stagecraft::cuda
