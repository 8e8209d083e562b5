#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/group_communicator.hpp"

namespace stagecraft::real {

/// Measures the layers of a workload that group_members() run together, and the collectives of their passes: whole
/// groups run the model, as many at the same time as request.threads has room for, but one in any case.
///
/// A collective takes as long as its members wait for each other and move numbers; its time is taken out of the
/// operation that it is part of. Times are means over the devices and the equal layers of a few runs, of which the
/// median counts, so that what a device waits for another is not lost.
void measure_group_layers(const ProfileRequest&, int samples, std::span<const double> weights, const KernelFactory&,
                          Profile&);

/// The median over runs of the means over members, of which each has as many runs.
Seconds median_of_means(const std::vector<std::vector<double>>& of_members);

/// Times what devices do together.
class MemberTimer {
 public:
  virtual ~MemberTimer() = default;
  /// Calls once() for each of the first `members` devices, some times; they begin together, and meet in collectives of
  /// the member alone. The median of the runs, of the means over the members.
  virtual Seconds time(int members, const std::function<void(const GroupMember&)>& once) = 0;
};

/// Measures what devices with equal parameters exchange around an update: sums of gradients and gathers of weights, in
/// sizes up to the parameters of the model. What passes exchange is measured with the layers. Copies of experts are not
/// measured.
void measure_parameter_collectives(const ProfileRequest&, const KernelFactory&, MemberTimer&, Profile&);

/// Threads of the host.
class HostMemberTimer final : public MemberTimer {
 public:
  explicit HostMemberTimer(const ProfileRequest& request) : request_(request) {}
  Seconds time(int members, const std::function<void(const GroupMember&)>& once) override;

 private:
  const ProfileRequest& request_;
};

}  // namespace stagecraft::real
