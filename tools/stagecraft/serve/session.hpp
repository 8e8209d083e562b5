#pragma once

#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "sim/experiment/own_orders.hpp"
#include "sim/search/choices.hpp"
#include "tools/stagecraft/serve/connection.hpp"
#include "tools/stagecraft/serve/function_order.hpp"
#include "tools/stagecraft/serve/parameters.hpp"

namespace stagecraft::serve {

/// A run whose drawings the other program may ask for, until it releases it.
struct ServedRun {
  std::string title;
  std::optional<CompiledExperiment> compiled = {};  ///< Nothing for an order without a scenario.
  Schedule order = {};                              ///< This and the two below are set only then.
  Program order_program = {};
  Cluster order_cluster = {};
  Outcome outcome = {};

  const Schedule& schedule() const { return compiled ? compiled->schedule : order; }
  const Program& program() const { return compiled ? compiled->program : order_program; }
  const Cluster& cluster() const { return compiled ? compiled->cluster() : order_cluster; }
};

constexpr int kMostChunks = 1024;  ///< The most of a rank, in an order that a function gives.

/// What lives from one request to the next.
struct Session {
  Connection& connection;
  std::map<int, std::unique_ptr<ServedRun>> runs = {};
  int next_run = 1;
  OpenFile shared = OpenFile();  ///< Arrays of the newest run, until the next request.
  std::mutex asking = {};        ///< Locked from a question to the other program until its answer.
  std::string question = {};     ///< The search of `evaluator`.
  TaskEvaluator evaluator = {};
};

/// The other program's function has failed, which it knows itself.
struct FunctionFailed : std::exception {
  const char* what() const noexcept override { return "the function has failed"; }
};

/// The schedule that the parameter `order` describes; null without one. Its function asks the other program, and may be
/// called by any thread.
std::unique_ptr<FunctionOrder> read_order(Session&, const Parameters&);
/// The schedules that the items of the parameter `functions` describe.
std::vector<OwnSchedule> read_own_schedules(Session&, const Parameters&);
/// The order of a schedule of the user on the plan of a scenario.
OwnOrder order_for(const OwnSchedule&, const Experiment& scenario);

/// `run.schedule` of an experiment with the order of a function.
ScheduleSpec spec_of(const FunctionOrder&);

/// The scenario of the parameters `file` and `sets`, with the stages of `plan` and the schedule `order` if they are
/// there.
Experiment read_asked_experiment(const Parameters&, const FunctionOrder*);

// Answers to requests; each returns the member "result".
Json answer_load(Session&, const Parameters&);
Json answer_check(Session&, const Parameters&);
Json answer_run(Session&, const Parameters&);
Json answer_schedule(Session&, const Parameters&);
Json answer_draw(Session&, const Parameters&);
Json answer_compare(Session&, const Parameters&);
Json answer_plan(Session&, const Parameters&);
Json answer_search(Session&, const Parameters&);
Json answer_search_task(Session&, const Parameters&);
Json answer_sweep(Session&, const Parameters&);

/// Keeps a run, shares its arrays and describes it.
Json keep_run(Session&, std::unique_ptr<ServedRun>, Json results, bool memory);

/// Answers requests until the input ends.
void serve();

}  // namespace stagecraft::serve
