#include <cstdio>

#include "sim/experiment/run.hpp"

int main(int count, char** words) {
  if (count != 2) return 2;
  stagecraft::Experiment experiment = stagecraft::load_experiment(words[1], {});
  experiment.run.micro_batches = 8;  // A variant is a value; it shares the model and the cluster.
  const stagecraft::Outcome outcome = stagecraft::run(stagecraft::compile(experiment), "ideal");
  std::printf("%.17g\n", outcome.report.makespan.value);
}
