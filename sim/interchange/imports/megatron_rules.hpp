#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/core/diagnostic.hpp"
#include "sim/interchange/imports/megatron_arguments.hpp"

namespace stagecraft {

/// Collects the rules of Megatron-LM 0.20 that the arguments of a script break.
class MegatronRuleCheck {
 public:
  MegatronRuleCheck(const MegatronArguments&, const TrainingSetup&, const MegatronShape&, std::int64_t replicas);

  /// A rule. `option` is where it is broken.
  void require(bool holds, const char* rule, const char* option, const std::string& message, std::string help);
  const std::vector<Diagnostic>& problems() const { return problems_; }

  bool has(const std::string& option) const { return given_.has(option); }
  std::string word(const std::string& option) { return read_.word(option); }
  const MegatronArguments& arguments() const { return given_; }
  MegatronArguments& words() { return read_; }
  const TrainingSetup& setup() const { return setup_; }
  const MegatronShape& shape() const { return shape_; }
  std::int64_t replicas() const { return replicas_; }

  /// allgather where none is named.
  const std::string& dispatcher() const { return dispatcher_; }
  const std::string& granularity() const { return granularity_; }  ///< The recomputation: full, selective or nothing.
  bool recomputes(const char* module) const;
  bool has_experts() const { return has("num-experts"); }
  bool has_fsdp() const { return has("use-megatron-fsdp") || has("use-custom-fsdp"); }
  std::string graphs();  ///< The kind of CUDA graphs; empty without.
  std::vector<std::string> graph_modules();
  /// Delayed scaling is what fp8 has where no recipe is named.
  bool is_delayed();

 private:
  const MegatronArguments& given_;
  MegatronArguments read_;  ///< A copy whose options count as used without effect on the notes.
  const TrainingSetup& setup_;
  const MegatronShape& shape_;
  std::int64_t replicas_;
  std::string dispatcher_, granularity_;
  std::vector<std::string> modules_;
  std::vector<Diagnostic> problems_;
};

void check_expert_rules(MegatronRuleCheck&);
/// Recomputation, host memory, CUDA graphs, number formats and FSDP.
void check_memory_rules(MegatronRuleCheck&);

}  // namespace stagecraft
