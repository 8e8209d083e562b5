#include "backends/real/company.hpp"

#include "backends/real/byte_text.hpp"
#include "backends/real/mpi/meeting.hpp"
#include "backends/real/mpi/pulses.hpp"
#include "backends/real/mpi/stop_signal.hpp"

namespace stagecraft::real {
namespace {

std::vector<char> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

}  // namespace

std::vector<std::string> exchange(const std::string& own) {
  meet();
  if (world().rank > 0) {
    send_text(0, own);
    const std::string all = receive_text(0).value();
    ByteReader in(all);
    std::vector<std::string> texts;
    for (int r = 0; r < world().size; ++r) {
      const std::vector<char> text = in.get_list<char>();
      texts.emplace_back(text.begin(), text.end());
    }
    return texts;
  }
  std::vector<std::string> texts{own};
  for (int r = 1; r < world().size; ++r) texts.push_back(receive_text(r).value());
  ByteWriter out;
  for (const std::string& text : texts) out.put(bytes_of(text));
  const std::string all = out.take();
  for (int r = 1; r < world().size; ++r) send_text(r, all);
  return texts;
}

struct Company::Hidden {
  StopSignal signal;
  Pulses pulses;
};

Company::Company() : hidden_(std::make_unique<Hidden>()) {}
Company::~Company() = default;

std::optional<Transport::Pulse> Company::pulse(const Transport::Pulse& own) { return hidden_->pulses.pulse(own); }
bool Company::told_to_stop() const { return real::told_to_stop(); }

}  // namespace stagecraft::real
