#pragma once

#include <memory>
#include <vector>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/mail.hpp"
#include "backends/real/stage_executor.hpp"
#include "backends/real/walk.hpp"

namespace stagecraft::real {

/// Everything that a real run holds: stages, memories, mail. Instructions find their stage here.
class Session : public Actions {
 public:
  Session(const Program&, const Work&, const KernelFactory&, const std::function<bool(DeviceId)>& here);

  void compute(InstructionId) override;
  void carry(int transfer) override { mail_->carry(transfer); }
  void reduce(int collective) override;

  Learnt learnt() const;
  Mail& mail() { return *mail_; }
  StageExecutor& stage_on(StageId, DeviceId);

 private:
  std::vector<Evaluation> evaluations() const;

  const Program& p_;
  const Work& work_;
  KernelFactory factory_;
  std::size_t width_;
  std::unique_ptr<Dataset> data_;
  std::vector<StageNet> nets_;                     ///< Of each stage.
  std::vector<std::unique_ptr<Kernels>> kernels_;  ///< Of each device; null where nothing runs here.
  std::vector<std::unique_ptr<DeviceMemory>> memories_;
  std::unique_ptr<Mail> mail_;
  std::vector<std::vector<std::unique_ptr<StageExecutor>>> stages_;  ///< Of each stage and replica.
  std::vector<std::int32_t> versions_;
};

}  // namespace stagecraft::real
