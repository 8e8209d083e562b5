#include "sim/experiment/imports/megatron_options.hpp"

#include <algorithm>
#include <iterator>
#include <set>

namespace stagecraft {
namespace {

/// Options that change what a real iteration takes, and that no field of a scenario stands for.
const std::set<std::string> kUnmodeled{"overlap-grad-reduce",
                                       "overlap-param-gather",
                                       "tp-comm-overlap",
                                       "overlap-p2p-communication-warmup-flush",
                                       "hidden-dropout",
                                       "attention-dropout",
                                       "make-vocab-size-divisible-by",
                                       "account-for-embedding-in-pipeline-split",
                                       "account-for-loss-in-pipeline-split",
                                       "decoder-first-pipeline-num-layers",
                                       "decoder-last-pipeline-num-layers",
                                       "moe-shared-expert-intermediate-size",
                                       "moe-shared-expert-overlap",
                                       "moe-layer-freq",
                                       "moe-expert-capacity-factor",
                                       "moe-router-load-balancing-type",
                                       "multi-latent-attention",
                                       "mtp-num-layers",
                                       "rampup-batch-size",
                                       "cpu-offloading-num-layers",
                                       "recompute-modules",
                                       "enable-cuda-graph",
                                       "cuda-graph-impl",
                                       "delay-wgrad-compute",
                                       "overlap-moe-expert-parallel-comm",
                                       "cross-entropy-loss-fusion",
                                       "grad-reduce-in-bf16",
                                       "fp8-param-gather",
                                       "hierarchical-context-parallel-sizes",
                                       "no-gradient-accumulation-fusion",
                                       "window-size"};

/// Beginnings of options about data, logs, checkpoints, learning rates and initial weights.
constexpr const char* kWithoutUse[] = {"lr",
                                       "min-lr",
                                       "weight-decay",
                                       "adam-",
                                       "clip-grad",
                                       "train-",
                                       "eval-",
                                       "save",
                                       "load",
                                       "data-",
                                       "split",
                                       "tokenizer-",
                                       "vocab-file",
                                       "merge-file",
                                       "log-",
                                       "tensorboard",
                                       "wandb",
                                       "seed",
                                       "init-method",
                                       "exit-",
                                       "timing-",
                                       "num-workers",
                                       "distributed-",
                                       "dist-",
                                       "ckpt",
                                       "no-load",
                                       "no-save",
                                       "use-mcore",
                                       "transformer-impl",
                                       "attention-backend",
                                       "use-flash-attn",
                                       "norm-epsilon",
                                       "rotary-base",
                                       "rotary-percent",
                                       "use-checkpoint",
                                       "mock-data",
                                       "optimizer",
                                       "no-masked-softmax",
                                       "no-bias",
                                       "moe-aux-loss",
                                       "moe-z-loss",
                                       "moe-router-dtype",
                                       "moe-permute-fusion",
                                       "empty-unused",
                                       "master_",
                                       "master-",
                                       "node_rank",
                                       "node-rank",
                                       "rdzv",
                                       "override-opt",
                                       "finetune",
                                       "attention-softmax",
                                       "manual-gc",
                                       "no-create-attention",
                                       "bf16-",
                                       "initial-loss",
                                       "loss-scale",
                                       "hysteresis",
                                       "apply-layernorm",
                                       "use-tiktoken",
                                       "async-save",
                                       "auto-detect",
                                       "reset-",
                                       "eod-",
                                       "dataloader",
                                       "profile",
                                       "no-rope-fusion",
                                       "local-rank"};

}  // namespace

MegatronUse megatron_use(const std::string& option) {
  if (kUnmodeled.contains(option)) return MegatronUse::Unmodeled;
  const bool without_use = std::any_of(std::begin(kWithoutUse), std::end(kWithoutUse),
                                       [&](const char* start) { return option.starts_with(start); });
  return without_use ? MegatronUse::WithoutUse : MegatronUse::Unknown;
}

}  // namespace stagecraft
