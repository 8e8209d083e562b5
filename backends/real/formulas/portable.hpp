#pragma once

/// Before a function that kernels on GPUs call too: plain arithmetic, without memory of its own.
#ifdef __CUDACC__
#define STAGECRAFT_PORTABLE __host__ __device__
#else
#define STAGECRAFT_PORTABLE
#endif
