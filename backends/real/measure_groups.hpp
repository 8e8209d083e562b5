#pragma once

#include <functional>
#include <span>
#include <vector>

#include "backends/backend.hpp"
#include "backends/real/execute.hpp"
#include "backends/real/group_communicator.hpp"

namespace stagecraft::real {

/// Measures the layers of a workload whose stages groups of devices divide, and the collectives of their passes: whole
/// groups run the model together, as many at the same time as request.threads has room for, but one in any case.
///
/// A collective takes as long as its members wait for each other and move numbers; its time is taken out of the
/// operation that it is part of. Times are means over the devices and the equal layers of a few runs, of which the
/// median counts, so that what a device waits for another is not lost.
void measure_group_layers(const ProfileRequest&, int samples, std::span<const double> weights, const KernelFactory&,
                          Profile&);

/// Seconds of one run of some work, and of the collectives in it in their order: means over the members.
struct MemberTimes {
  double seconds = 0;
  std::vector<double> collectives;
};

/// Means over the members, of which each has as many runs.
std::vector<MemberTimes> means_over(const std::vector<std::vector<MemberTimes>>& of_members);

/// Times what devices do together.
class MemberTimer {
 public:
  virtual ~MemberTimer() = default;
  /// Calls once() for each of the first `members` devices, some times; they begin together, and meet in collectives of
  /// the member alone.
  virtual std::vector<MemberTimes> time(int members, const std::function<void(const GroupMember&)>& once) = 0;
};

/// Measures what devices with equal parameters exchange: around an update the sums of gradients and the gathers of
/// weights, in sizes up to the parameters of the model; and where gradients or weights are divided, what the passes of
/// a layer exchange, operation by operation, in the sizes of the layers. Copies of experts are not measured.
void measure_parameter_collectives(const ProfileRequest&, const KernelFactory&, MemberTimer&, Profile&);

/// Threads of the host.
class HostMemberTimer final : public MemberTimer {
 public:
  explicit HostMemberTimer(const ProfileRequest& request) : request_(request) {}
  std::vector<MemberTimes> time(int members, const std::function<void(const GroupMember&)>& once) override;

 private:
  const ProfileRequest& request_;
};

}  // namespace stagecraft::real
