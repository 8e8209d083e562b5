#pragma once

namespace stagecraft {

/// The natural logarithm and the exponential function from sums and products alone, within two units of the last bit.
/// C libraries differ in that bit, and one library does on processors with and without fused products. With these the
/// time of a collective has the same bits everywhere.
double logarithm(double x);
double exponential(double x);

}  // namespace stagecraft
