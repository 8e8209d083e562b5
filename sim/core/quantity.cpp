// Quantities as text in the unit that suits them, such as "1.5 ms".

#include "sim/core/quantity.hpp"

#include <cmath>
#include <cstdlib>
#include <span>

#include <fmt/core.h>

#include "sim/core/text.hpp"

namespace stagecraft {
namespace {

struct Unit {
  const char* name;
  double size;  ///< In base units.
};

constexpr Unit kTimes[] = {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}};
constexpr Unit kSizes[] = {{"B", 1}, {"KiB", 0x1p10}, {"MiB", 0x1p20}, {"GiB", 0x1p30}, {"TiB", 0x1p40}};
constexpr Unit kWork[] = {{"FLOP", 1}, {"MFLOP", 1e6}, {"GFLOP", 1e9}, {"TFLOP", 1e12}, {"PFLOP", 1e15}};
constexpr Unit kSpeeds[] = {{"B/s", 1}, {"kB/s", 1e3}, {"MB/s", 1e6}, {"GB/s", 1e9}, {"TB/s", 1e12}};
constexpr Unit kRates[] = {{"FLOP/s", 1}, {"MFLOP/s", 1e6}, {"GFLOP/s", 1e9}, {"TFLOP/s", 1e12}, {"PFLOP/s", 1e15}};
constexpr Unit kPowers[] = {{"W", 1}, {"kW", 1e3}};
constexpr Unit kEnergies[] = {{"J", 1}, {"kJ", 1e3}, {"MJ", 1e6}};

double four_digits(double value) { return std::strtod(fmt::format("{:.4g}", value).c_str(), nullptr); }

std::string in_units(double value, std::span<const Unit> units, const char* base) {
  if (value == 0 || !std::isfinite(value)) return fmt::format("{} {}", value == 0 ? 0 : value, base);
  // Rounding comes before the choice, so that 999.96 ms is "1 s" and never "1000 ms".
  const Unit* unit = &units.front();
  for (const Unit& u : units)
    if (four_digits(std::abs(value) / u.size) >= 1) unit = &u;
  const double number = four_digits(value / unit->size);
  const Unit* next = unit == &units.back() ? nullptr : unit + 1;
  if (next && std::abs(number) * unit->size >= next->size) return fmt::format("{} {}", value < 0 ? -1 : 1, next->name);
  return fmt::format("{} {}", shortest(number), unit->name);
}

}  // namespace

std::string to_text(Seconds q) { return in_units(q.value, kTimes, "s"); }
std::string to_text(Bytes q) { return in_units(q.value, kSizes, "B"); }
std::string to_text(Flops q) { return in_units(q.value, kWork, "FLOP"); }
std::string to_text(Bandwidth q) { return in_units(q.value, kSpeeds, "B/s"); }
std::string to_text(FlopRate q) { return in_units(q.value, kRates, "FLOP/s"); }
std::string to_text(Watts q) { return in_units(q.value, kPowers, "W"); }
std::string to_text(Joules q) { return in_units(q.value, kEnergies, "J"); }

}  // namespace stagecraft
