#pragma once

#include <string>

#include "sim/cluster/cluster.hpp"
#include "sim/output/table.hpp"
#include "sim/program/program.hpp"
#include "sim/result/report.hpp"

namespace stagecraft {

/// A row for each pipeline rank, with equal replicas in one: where its time goes, and its memory by class. Text has the
/// columns that most people look for, or every one.
Table rank_table(const Report&, const Cluster&, bool every_column = true);
/// rank_table() as text: the main columns of the first rows, or with `details` all of both. Empty
/// without ranks.
std::string ranks_text(const Report&, const Cluster&, const TextLayout&, bool details);

/// The member `ranks` of results.json, and its columns in CSV.
config::Field ranks_field();
std::vector<FileColumn> rank_columns();

/// A row for each device on which a real run allocated memory.
std::string measured_memory_table(const Learnt&, const Cluster&, const TextLayout&);

}  // namespace stagecraft
