// Answers requests of the playground: runs a scenario that is being edited, with the data of its page, its diagnosis,
// what is wrong and where; and lists what a scenario can name.

#include "tools/playground/answers.hpp"

#include <new>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "backends/backend.hpp"
#include "sim/config/library.hpp"
#include "sim/core/file.hpp"
#include "sim/core/json.hpp"
#include "sim/cost/software.hpp"
#include "sim/diagnosis/diagnose.hpp"
#include "sim/diagnosis/memory_remedies.hpp"
#include "sim/experiment/kept_run.hpp"
#include "sim/experiment/remarks.hpp"
#include "sim/experiment/version.hpp"
#include "sim/planners/shared/planner.hpp"
#include "sim/published/error_classes.hpp"
#include "sim/schedule/builder.hpp"

namespace stagecraft::playground {
namespace {

/// A larger program would keep the page waiting for a minute, and fill the memory of a phone.
constexpr std::size_t kMostInstructions = 500'000;

std::string text_of(const Json& request, const char* key, const std::string& fallback = {}) {
  const Json* value = request.find(key);
  return value ? value->text() : fallback;
}

bool asks(const Json& request, const char* key) {
  const Json* value = request.find(key);
  return value && *value == Json(true);
}

std::vector<std::string> sets_of(const Json& request) {
  std::vector<std::string> sets;
  if (const Json* list = request.find("sets"))
    for (const Json& set : list->items()) sets.push_back(set.text());
  return sets;
}

Json failure(const char* kind, const std::string& text, const std::vector<Diagnostic>& problems = {}) {
  JsonArray list;
  for (const Diagnostic& d : problems)
    list.push_back(JsonObject{{"file", d.where.file},
                              {"line", d.where.line},
                              {"column", d.where.column},
                              {"path", d.path},
                              {"message", full_message(d)},
                              {"help", d.help},
                              {"code", d.code}});
  return JsonObject{{"error", kind}, {"text", text}, {"problems", std::move(list)}};
}

/// Calls `work`; what it throws becomes an answer.
template <class Work>
Json answer_or_failure(const Work& work) try {
  return work();
} catch (const InputError& e) {
  return failure("input", e.what(), e.problems());
} catch (const Infeasible& e) {
  return failure("infeasible", e.what(), {e.problem()});
} catch (const JsonError& e) {
  return failure("input", fmt::format("the request is not what it should be: {}", e.what()));
} catch (const BackendError& e) {
  return failure("backend", e.what());
} catch (const std::bad_alloc&) {
  return failure("backend", "there is not enough memory for it");
} catch (const std::exception& e) {
  return failure("internal", e.what());
}

/// Where the edited text has values and maps, so that a control can change the text there.
void add_places(const config::Value& value, const std::string& path, JsonArray& places) {
  if (value.where.line > 0 && !value.is_list())
    places.push_back(JsonObject{{"path", path},
                                {"line", value.where.line},
                                {"column", value.where.column},
                                {"text", value.is_scalar() ? Json(value.text) : Json()},
                                {"is_map", value.is_map()}});
  for (const config::Member& m : value.members) add_places(m.value, path.empty() ? m.key : path + '.' + m.key, places);
  for (std::size_t i = 0; i < value.items.size(); ++i)
    add_places(value.items[i], fmt::format("{}[{}]", path, i), places);
}

void check_size(const CompiledExperiment& c) {
  if (c.program.size() > kMostInstructions)
    throw Infeasible("page-size",
                     fmt::format("{} instructions are too many to be simulated while you type; up to {} are not",
                                 c.program.size(), kMostInstructions),
                     "fewer micro-batches or iterations, or stagecraft run");
}

/// One of the runs of a request. `page` gets what its timeline needs.
Json answer_one(const Json& request, const std::string& file, const std::vector<std::string>& common,
                std::vector<KeptRun>& page) {
  std::vector<std::string> sets = common;
  for (std::string& set : sets_of(request)) sets.push_back(std::move(set));
  CompiledExperiment compiled = compile_or_advise(load_experiment(file, sets));
  check_size(compiled);
  const std::string backend = text_of(request, "backend", default_backend(compiled.plan, compiled.cluster()));
  Outcome outcome = run(compiled, backend);
  if (outcome.timeline.clock == Clock::Simulated) outcome.report.interval = prediction_interval(compiled.experiment);
  if (asks(request, "diagnose"))
    outcome.report.diagnosis = diagnose(compiled, outcome, backend, scenario_reader(file, sets, compiled.experiment));
  JsonObject result{{"notes", Json(remarks(compiled))},
                    {"instructions", compiled.program.size()},
                    {"layers", std::ssize(compiled.experiment.model->layers)},
                    {"devices", std::ssize(compiled.cluster().devices)}};
  if (asks(request, "timeline"))
    page.push_back(kept_run(text_of(request, "name", compiled.experiment.schedule.name()), compiled, outcome));
  else
    result.push_back({"results", Json::parse(results_of(compiled, outcome)).value()});
  return result;
}

Json answer_run(const Json& request, const std::string& file) {
  const UnsavedText edited(file, text_of(request, "yaml"));
  const std::vector<std::string> sets = sets_of(request);
  JsonArray runs;
  std::vector<KeptRun> page;
  for (const Json& run : request.at("runs").items())
    runs.push_back(answer_or_failure([&] { return answer_one(run, file, sets, page); }));
  JsonObject result{{"runs", std::move(runs)}};
  config::Problems problems;
  JsonArray places;
  add_places(config::parse_yaml_file(file, problems), {}, places);
  result.push_back({"places", std::move(places)});
  if (!page.empty()) {
    std::vector<std::string> parts;
    result.push_back({"page", page_data(page, parts)});
    result.push_back({"parts", Json(parts)});
  }
  return result;
}

template <class Catalog>
JsonArray described(const Catalog& catalog) {
  JsonArray list;
  for (const auto* def : catalog)
    list.push_back(JsonObject{{"name", std::string(def->name)}, {"summary", std::string(def->summary)}});
  return list;
}

/// What a scenario can name.
Json answer_lists(const std::string& file) {
  JsonArray backends;
  for (const BackendDef* def : backends::catalog())
    if (def->clock == Clock::Simulated && def->why_not().empty()) backends.push_back(std::string(def->name));
  return JsonObject{{"version", version()},
                    {"file", file},
                    {"schedules", described(schedules::catalog())},
                    {"planners", described(planners::catalog())},
                    {"models", Json(file_names(FileKind::Model))},
                    {"clusters", Json(file_names(FileKind::Cluster))},
                    {"software", Json(software_stack_names())},
                    {"backends", std::move(backends)}};
}

}  // namespace

std::string answer(const std::string& request, const std::string& file) {
  return answer_or_failure([&]() -> Json {
           const std::optional<Json> asked = Json::parse(request);
           if (!asked) return failure("input", "the request is not JSON");
           const std::string method = text_of(*asked, "method");
           if (method == "run") return answer_run(*asked, file);
           if (method == "lists") return answer_lists(file);
           return failure("input", fmt::format("there is no request '{}'", method));
         })
      .dump();
}

}  // namespace stagecraft::playground
