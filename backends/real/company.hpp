#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "backends/real/transport.hpp"

namespace stagecraft::real {

/// Each process tells all others something: what all told, process by process. All come here at the same time;
/// FailedElsewhere when one has failed instead.
std::vector<std::string> exchange(const std::string& own);

/// The other processes of a run, for those whose messages do not go through a Transport. While it lives, SIGTERM is
/// only noted.
class Company {
 public:
  Company();
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;
  ~Company();

  /// As that of Transport.
  std::optional<Transport::Pulse> pulse(const Transport::Pulse& own);
  bool told_to_stop() const;

 private:
  struct Hidden;
  std::unique_ptr<Hidden> hidden_;
};

}  // namespace stagecraft::real
