// Overhead of the interpreter per instruction: programs whose ops do nothing, and the whole executor on layers so small
// that their arithmetic takes almost no time.

#include <cstdio>
#include <cstdlib>

#include "backends/cpu/kernels.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/measure.hpp"
#include "tests/backends/real/run_case.hpp"
#include "tests/support/nets.hpp"

using namespace stagecraft;

namespace {

class Nothing : public real::Actions {
 public:
  void compute(InstructionId) override {}
  void carry(int) override {}
  void collective(int) override {}
};

double microseconds_each(const Program& p, const IdVector<InstructionId, double>& ends) {
  double last = 0;
  for (const double end : ends) last = std::max(last, end);
  return 1e6 * last / static_cast<double>(p.size());
}

void bare(int devices, bool one_thread) {
  const Plan plan = chain_plan(devices, devices, 64);
  const Program p = test::real_program("1f1b", plan, test::policy("flush"), 200);
  Nothing nothing;
  real::ExecutorOptions options;
  options.one_thread = one_thread;
  real::run_program(p, nothing, nullptr, options);
  const real::Times t = real::run_program(p, nothing, nullptr, options);
  std::printf("%-34s %8zu instructions  %7.3f us each\n",
              (std::to_string(devices) + (one_thread ? " devices, one thread" : " devices, a thread each")).c_str(),
              p.size(), microseconds_each(p, t.end));
}

void with_executor(int devices, bool one_thread) {
  const ModelGraph model = test::deep_net(devices, 4, 4, 4);
  const Plan plan = test::stage_each(model, 64, 1);
  const WeightsRule rule = test::policy("flush");
  const Training training = test::training_of(OptimizerKind::Sgd, 0.01);
  const auto run =
      test::really_run(test::real_program("1f1b", plan, rule, 100), model, plan, rule, training, one_thread);
  std::printf("%-34s %8zu instructions  %7.3f us each, layers of 4 x 4 included\n",
              (std::to_string(devices) + (one_thread ? " stages, one thread" : " stages, a thread each")).c_str(),
              run.program.size(), microseconds_each(run.program, run.timeline.end));
}

}  // namespace

int main() {
  for (const int devices : {1, 2, 8}) bare(devices, true);
  for (const int devices : {1, 2, 8}) bare(devices, false);
  for (const int devices : {1, 2, 8}) with_executor(devices, true);
  for (const int devices : {1, 2, 8}) with_executor(devices, false);
  const real::MessageFigures m = real::measure_messages();
  std::printf("op to op %.3f us, op to op of another device %.3f us, long messages %.2f GB/s\n", 1e6 * m.op_gap.value,
              1e6 * m.latency.value, m.bandwidth.value / 1e9);
}
