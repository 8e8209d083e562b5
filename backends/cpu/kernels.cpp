#include "backends/cpu/kernels.hpp"
