#pragma once

#include <string>

#include "sim/config/fields.hpp"
#include "sim/core/numbers.hpp"

namespace toy {

using namespace stagecraft::config;

inline const MapSpec chunk_fields{"", {integer("chunks", 1, 64).doc("Parts of the model on each device.")}};
inline const MapSpec csv_fields{"", {text("csv").doc("The file.")}};

inline std::vector<Variant> schedules() {
  return {{"gpipe", "All forward, then all backward.", nullptr},
          {"1f1b", "One forward, one backward.", nullptr},
          {"interleaved", "Several chunks on a device.", &chunk_fields},
          {"csv", "Read from a file.", &csv_fields}};
}

inline const MapSpec run_fields{"How the plan is run.",
                                {variant("schedule", "name", schedules).doc("Order of the passes."),
                                 integer("micro_batches", 1, 65536).doc("Micro-batches in one batch."),
                                 integer("micro_batch_size", 1, 65536).fallback("1").doc("Samples in one micro-batch."),
                                 boolean("overlap").fallback("true").doc("Communication overlaps compute."),
                                 real("ratio", 0, 1).optional().doc("A share."),
                                 integer("seed", 0, stagecraft::kInfinity).optional().doc("Of the random numbers."),
                                 quantity("timeout", Dimension::Time).fallback("10 s").doc("Limit for one batch.")}};

inline const MapSpec link_fields{
    "A cable.",
    {text("name").doc("Its name."), quantity("bandwidth", Dimension::Bandwidth).doc("Each way."),
     quantity("latency", Dimension::Time).fallback("0").doc("One way."),
     choice("duplex", {"full", "half"}).fallback("full").doc("How its directions share.")}};

inline const MapSpec cluster_fields{
    "The machines.",
    {list("links", map("", link_fields)).doc("The cables."),
     table("speeds", real("", 0, 100)).fallback("{a100: 1, cpu: 0.1}").doc("Speed of each type."),
     list("hosts", text("")).fallback("[h0]").doc("Their names.")}};

inline const MapSpec report_fields{"What is written.", {boolean("html").fallback("false").doc("A page.")}};

inline const MapSpec root{
    "A toy scenario.",
    {text("title").optional().doc("For people."), map("run", run_fields).doc("How to run."),
     map("cluster", cluster_fields).doc("On what."), map("report", report_fields).fallback("{}").doc("The outcome."),
     any("notes").optional().doc("Anything.")}};

}  // namespace toy
