#include "sim/cluster/accelerator.hpp"
#include "sim/cluster/collective_curve.hpp"
#include "sim/cost/profile.hpp"
#include "sim/experiment/scenario.hpp"
#include "sim/published/predictions.hpp"
#include "sim/published/published.hpp"
#include "sim/report/results_fields.hpp"
#include "sim/sweep/sweep.hpp"
#include "tools/stagecraft/command.hpp"

namespace stagecraft::commands {
namespace {

int execute(const Arguments& a) {
  const std::string kind = a.text("KIND");
  const std::vector<std::string> kinds = {"scenario",  "model",  "cluster",     "profile",     "sweep",
                                          "published", "device", "collectives", "predictions", "results"};
  if (kind == "scenario")
    print(config::json_schema(scenario_fields(), kind));
  else if (kind == "model")
    print(config::json_schema(model_fields().fields.front(), kind));
  else if (kind == "cluster")
    print(config::json_schema(cluster_fields().fields.front(), kind));
  else if (kind == "profile")
    print(config::json_schema(profile_fields(), kind));
  else if (kind == "sweep")
    print(config::json_schema(sweep_fields(), kind));
  else if (kind == "published")
    print(config::json_schema(published_fields(), kind));
  else if (kind == "device")
    print(config::json_schema(accelerator_fields(), kind));
  else if (kind == "collectives")
    print(config::json_schema(collective_curve_fields(), kind));
  else if (kind == "predictions")
    print(config::json_schema(prediction_fields(), kind));
  else if (kind == "results")
    print(config::json_schema(results_fields(), kind));
  else
    throw InputError("there is no schema '" + kind + "'", suggest(kind, kinds));
  return 0;
}

}  // namespace

extern const Command schema{
    .name = "schema",
    .summary = "Print the JSON Schema of a kind of file, for editors",
    .group = "Around",
    .example = "stagecraft schema scenario > scenario.schema.json",
    .arguments = {{"KIND",
                   Argument::Kind::Text,
                   "scenario, model, cluster, profile, sweep, published, device, collectives, predictions or results",
                   {},
                   true}},
    .run = execute,
};

}  // namespace stagecraft::commands
