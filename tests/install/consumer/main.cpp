#include <cstdio>

#include "sim/experiment/run.hpp"

int main(int count, char** words) {
  if (count < 2) return 2;
  const stagecraft::Experiment experiment = stagecraft::load_experiment(words[1], {});
  stagecraft::Experiment variant = stagecraft::variant_of(experiment);  // It shares the model and the cluster.
  variant.run.micro_batches = 8;
  const stagecraft::Outcome outcome = stagecraft::run(stagecraft::compile(variant), count > 2 ? words[2] : "ideal");
  std::printf("%.17g\n", outcome.report.makespan.value);
}
