#include <cstdio>

#include "sim/run/run.hpp"

int main(int count, char** words) {
  if (count != 2) return 2;
  const stagecraft::Scenario scenario = stagecraft::load_scenario(words[1], {"run.micro_batches=8"});
  const stagecraft::Outcome outcome = stagecraft::run(scenario, stagecraft::prepare(scenario), "ideal");
  std::printf("%.17g\n", outcome.report.makespan.value);
}
