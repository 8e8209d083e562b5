#pragma once

#include "backends/cuda/run.hpp"
#include "tests/backends/cuda/run/queued_cpu.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/nets.hpp"

namespace stagecraft::test {

/// Something to train, and how: what both the CPU and the emulated GPU are given.
struct Case {
  std::string schedule = "1f1b", policy = "flush";
  ModelGraph model;
  Plan plan;
  Training training = training_of(OptimizerKind::Adam, 0.01, "teacher");
  LoweringOptions lowering;
  int iterations = 3;
  GpuMessages messages = GpuMessages::Copy;
  GpuSums sums = GpuSums::Ordered;
  GpuTiming timing = GpuTiming::Events;
  bool graph = false;
  bool warm_up = true;

  Program program() const {
    const WeightsRule& rule = test::policy(policy);
    return with_workload(real_program(schedule, plan, rule, iterations, nullptr, lowering), model, plan, rule,
                         training);
  }
};

inline Timeline on_cpu(const Case& c, const Program& program) {
  return really_run(program, c.model, c.plan, policy(c.policy), c.training, true).timeline;
}

inline Timeline on_gpu(const Case& c, const Program& program, const emulated_gpu::Machine& machine) {
  emulated_gpu::reset(machine);
  cuda::Options options;
  options.gpu.messages = c.messages;
  options.gpu.sums = c.sums;
  options.gpu.timing = c.timing;
  options.gpu.graph = c.graph;
  options.warm_up = c.warm_up;
  options.fills_new_memory = true;
  return cuda::run(program, queued_cpu, options);
}

/// Orders in which streams go on: at random, by importance, and with one that is starved.
inline std::vector<emulated_gpu::Machine> machines(int seeds) {
  std::vector<emulated_gpu::Machine> result;
  for (int seed = 0; seed < seeds; ++seed) {
    emulated_gpu::Machine& m = result.emplace_back();
    m.order = static_cast<emulated_gpu::Order>(seed % 3);
    m.seed = static_cast<std::uint64_t>(seed) + 1;
  }
  return result;
}

}  // namespace stagecraft::test
