#pragma once

#include <array>
#include <memory>
#include <optional>

#include "backends/real/mpi/wire.hpp"
#include "backends/real/transport.hpp"

namespace stagecraft::real {

/// Sums over all processes of how they get on, one after another.
class Pulses {
 public:
  Pulses() = default;
  Pulses(const Pulses&) = delete;
  Pulses& operator=(const Pulses&) = delete;
  ~Pulses();

  std::optional<Transport::Pulse> pulse(const Transport::Pulse& own);

 private:
  struct Numbers {
    std::array<int, 4> own{}, all{};
  };
  std::shared_ptr<Numbers> numbers_ = std::make_shared<Numbers>();
  MPI_Request request_ = MPI_REQUEST_NULL;
};

}  // namespace stagecraft::real
