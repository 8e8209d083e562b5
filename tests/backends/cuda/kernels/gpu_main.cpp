// Runs the kernel tests on a real GPU.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <string>

#include <doctest/doctest.h>

#include "backends/cuda/driver.hpp"

int main(int argc, char** argv) {
  if (const std::string why = stagecraft::cuda::why_no_device(); !why.empty()) {
    std::printf("skipped: %s\n", why.c_str());
    return 77;
  }
  return doctest::Context(argc, argv).run();
}
