// Options of Megatron-LM 0.20, of older versions and forks, and of launchers, by what they mean here. `name` is a
// switch; `name:` has one word after it, `name#3` three, `name+` one or more, `name*` any number; `{a,b}` are the words
// that it takes, where another one is an error that matters here.

#include "sim/interchange/imports/megatron_options.hpp"

namespace stagecraft {
namespace {

// Options that a reader of this folder uses, or refuses.
constexpr std::string_view kFields = R"(
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
add-qkv-bias attention-backend:{flash,fused,unfused,local,auto} attention-dropout: bf16 checkpoint-activations
ckpt-format:{torch,torch_dist,torch_dcp,fsdp_dtensor} context-parallel-size: cp-comm-type+ cross-entropy-loss-fusion
data-parallel-sharding-strategy:{no_shard,optim,optim_grads,optim_grads_params} ddp-bucket-size:
decoder-first-pipeline-num-layers: decoder-last-pipeline-num-layers: disable-bias-linear disable-pad-vocab-size
expert-model-parallel-size: expert-tensor-parallel-num-weight-shards: expert-tensor-parallel-size: ffn-hidden-size:
fp16 fp4-format:{e2m1} fp4-recipe:{nvfp4,custom} fp8-amax-history-len: fp8-format:{e4m3,hybrid}
fp8-recipe:{tensorwise,delayed,mxfp8,blockwise,custom} global-batch-size: group-query-attention
heterogeneous-layers-config-encoded-json: heterogeneous-layers-config-path: hidden-dropout: hidden-size:
hybrid-context-parallel hybrid-layer-pattern: hybrid-override-pattern: kv-channels: kv-lora-rank:
make-vocab-size-divisible-by: max-position-embeddings: micro-batch-size:
microbatch-group-size-per-virtual-pipeline-stage: moe-enable-deepep moe-ffn-hidden-size:
moe-flex-dispatcher-backend:{deepep,hybridep,ncclep} moe-grouped-gemm moe-layer-freq: moe-router-group-topk:
moe-router-num-groups: moe-router-topk:
moe-shared-expert-intermediate-size: moe-shared-expert-overlap moe-token-dispatcher-type:{allgather,alltoall,flex}
mtp-num-layers: multi-latent-attention no-pad-vocab-size no-position-embedding normalization:{LayerNorm,RMSNorm}
num-attention-heads: num-distributed-optimizer-instances: num-experts: num-layers:
num-layers-per-virtual-pipeline-stage: num-query-groups: num-virtual-stages-per-pipeline-rank:
optimizer:{adam,sgd,muon,dist_muon,lion,soap,adaptive_muon} overlap-grad-reduce padded-vocab-size:
pipeline-model-parallel-layout: pipeline-model-parallel-size:
position-embedding-type:{learned_absolute,rope,yarn,mrope,relative,none} q-lora-rank: qk-head-dim: qk-layernorm
qk-pos-emb-head-dim: quick-geglu recompute-activations recompute-granularity:{full,selective}
recompute-method:{uniform,block} recompute-modules+ recompute-num-layers: seq-length: sequence-parallel swiglu
tensor-model-parallel-size: tensor-parallel-num-weight-shards: untie-embeddings-and-output-weights
use-distributed-optimizer use-megatron-fsdp use-rotary-position-embeddings use-torch-fsdp2 use-tp-pp-dp-mapping
v-head-dim: vocab-size:
)";

// Options that change the time of an iteration, and that no field of a scenario stands for, or only with the stack
// megatron-core. How much is not known here.
constexpr std::string_view kTime = R"(
activation-func-clamp-value: batch-invariant-backend:{te_native,deepgemm,triton} batch-invariant-mode
create-all-gather-group ddp-num-buckets: ddp-pad-buckets-for-high-nccl-busbw
ddp-param-name-patterns-for-fp32-local-accumulation+ ddp-reduce-scatter-with-fp32-accumulation
defer-embedding-wgrad-compute deterministic-mode disable-align-grad-reduce disable-bf16-reduced-precision-matmul
disable-fp8-wgrad disable-jit-fuser disable-mamba-mem-eff-path disable-symmetric-registration
disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs
disable-tp-comm-split-ag disable-tp-comm-split-rs dsa-indexer-k-norm-epsilon: dsa-indexer-k-norm-fp32
dsa-indexer-loss-coeff: dsa-indexer-rope-interleaved dsa-indexer-skip-topk-offset: dsa-indexer-topk-freq:
dsa-indexer-use-sparse-loss dsa-kernel-backend:{none,tilelang,cudnn} flash-attention-version:{2,3,4}
fp4-quantizer-factory: fp8-quantizer-factory: fused-residual-rmsnorm gdp-cutedsl-kernel gdp-num-householder:
gtp-expert-remat-nccl-ub gtp-remat-nccl-ub gtp-remat-reduce-scatter-with-fp32-accumulation
hierarchical-context-parallel-sizes+ high-priority-a2a-comm-stream high-priority-stream-groups+
kitchen-attention-backend:{sdpa,fa} megatron-fsdp-enable-fine-grained-param-gather
megatron-fsdp-grad-comm-dtype:{fp32,fp16,bf16,auto} megatron-fsdp-version:{1,2} mhc-init-gating-factor:
mhc-sinkhorn-iterations: mla-down-proj-fusion moe-apply-probs-on-input moe-combine-bwd-dtype:{bf16,mxfp8}
moe-deepep-num-sms: moe-dispatch-fwd-dtype:{bf16,mxfp8} moe-flex-dispatcher-num-sms: moe-hybridep-num-blocks-permute:
moe-hybridep-num-blocks-unpermute: moe-hybridep-num-sms: moe-hybridep-num-sms-preprocessing:
moe-hybridep-pad-uneven-dispatch-inputs moe-ncclep-zero-copy moe-router-force-biased: moe-router-force-load-balancing
moe-router-load-balancing-type+{aux_loss,seq_aux_loss,global_aux_loss,sinkhorn,quantile_balancing,none}
moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-single-grouped-bias
moe-token-drop-policy:{probs,position} moe-use-grouped-tensor mtp-detach-heads mtp-hsm muon-coefficient-type:
muon-extra-scale-factor: muon-fp32-matmul-prec:{low,medium,high} muon-nesterov muon-no-split-qkv muon-num-ns-steps:
muon-scalar-optimizer:{adam,lion} muon-scale-mode:{spectral,unit_rms_norm,shape_scaling}
muon-tp-mode:{blockwise,duplicated,distributed} muon-use-syrk nccl-communicator-config-path: no-align-grad-reduce
no-align-param-gather no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion no-fp8-wgrad
no-gradient-reduce-div-fusion no-masked-softmax-fusion no-overlap-p2p-communication no-persist-layer-norm
no-rope-freq: no-rope-fusion no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad no-tp-comm-overlap-ag no-tp-comm-overlap-rs
no-tp-comm-split-ag no-tp-comm-split-rs overlap-dispatch-backward-with-experts-wgrad overlap-moe-expert-parallel-comm
overlap-p2p-communication-warmup-flush overlap-param-gather overlap-param-gather-with-optimizer-step
pipeline-model-parallel-comm-backend:{nccl,ucc} qk-l2-norm sharp-enabled-group:{dp,dp_replica} squared-relu
symmetric-ar-type:{two_shot,one_shot,multimem_all_reduce} tp-comm-bootstrap-backend:{nccl,mpi,gloo} tp-comm-overlap
tp-comm-overlap-cfg: tp-comm-overlap-rs-dgrad use-fused-weighted-squared-relu use-grouped-gemm-for-dense-mlp
use-grouped-gemm-for-shared-expert use-kitchen-attention use-nccl-ub use-ring-exchange-p2p use-sharp
use-te-activation-func use-transformer-engine-op-fuser wgrad-deferral-limit:
)";
// Options that change the memory alone.
constexpr std::string_view kMemory = R"(
cpu-offloading-retain-pinned-cpu-buffers ep-overlap-early-attn-memory-release exp-avg-dtype:{fp32,fp16,bf16,fp8}
exp-avg-sq-dtype:{fp32,fp16,bf16,fp8} fsdp-double-buffer keep-fp8-transpose-cache main-params-dtype:{fp32,fp16}
megatron-fsdp-main-params-dtype:{fp32,bf16,fp16,auto} megatron-fsdp-max-pool-double-buffer
moe-paged-stash-buffer-size-factor-cpu: moe-paged-stash-buffer-size-factor-cuda: moe-paged-stash-page-size:
no-pin-cpu-grads no-pin-cpu-params reuse-grad-buf-for-mxfp8-param-ag use-precision-aware-optimizer
)";
// Options that change both, or one of them as the model has it.
constexpr std::string_view kTimeAndMemory = R"(
activation-offload-fraction: attention-output-gate cpu-offloading-num-layers: cross-entropy-fusion-impl:{native,te}
cuda-graph-impl:{none,local,transformer_engine,full_iteration} cuda-graph-modules+ cuda-graph-scope+
dataloader-inter-document-masking delay-offload-until-cuda-graph delay-wgrad-compute
delta-offload-bytes-across-pp-ranks: distribute-saved-activations dsa-indexer-head-dim: dsa-indexer-n-heads:
dsa-indexer-topk: enable-cuda-graph enable-full-sharding-in-hsdp enable-mhc-connections
experimental-attention-variant:{gdn,gdn2,dsa,gated_delta_net} external-cuda-graph fine-grained-activation-offloading
fine-grained-offloading-max-inflight-offloads: first-last-layers-bf16 fp16-lm-cross-entropy fp32-residual-connection
fp4-param-gather fp8-output-proj fp8-param-gather freeze-all-layers gdp-num-chunk-states-to-recompute:
grad-reduce-in-bf16 gtp-remat-opt-in-modules+ is-hybrid-model linear-attention-freq: linear-conv-kernel-dim:
linear-key-head-dim: linear-num-key-heads: linear-num-value-heads: linear-value-head-dim: main-grads-dtype:{fp32,bf16}
mamba-head-dim: mamba-inference-conv-states-dtype:{bf16,fp16,fp32} mamba-inference-ssm-states-dtype:{bf16,fp16,fp32}
mamba-num-groups: mamba-num-heads: mamba-state-dim: mamba-training-ssm-states-dtype:{fp32,bf16}
max-seqlen-per-dp-cp-rank: megatron-fsdp-main-grads-dtype:{fp32,bf16,fp16,auto} mhc-num-residual-streams:
mhc-recompute-layer-num: min-offloaded-tensor-size: mlp-chunks-for-training: moe-expert-capacity-factor:
moe-expert-rank-capacity-factor: moe-latent-size: moe-layer-recompute moe-pad-expert-input-to-capacity moe-paged-stash
moe-shared-expert-gate moe-single-grouped-weight mtp-standalone mtp-use-repeated-layer muon-momentum:
no-gradient-accumulation-fusion num-layers-at-end-in-bf16: num-layers-at-start-in-bf16: offload-modules+
optimizer-cpu-offload optimizer-offload-fraction: outer-dp-sharding-strategy:{no_shard,optim}
output-logit-dtype:{bf16,fp32} overlap-cpu-optimizer-d2h-h2d perform-rl-step rampup-batch-size#3
relative-attention-num-buckets: rl-use-sequence-packing sft skip-train softmax-type:{vanilla,off-by-one,learnable}
spec* step-batch-size-schedule: te-precision-config-file: torch-fsdp2-no-reshard-after-forward
use-torch-optimizer-for-cpu-offload window-attn-skip-freq: window-size: yaml-cfg:
)";

// Options about data, logs, checkpoints, learning rates, initial weights, inference and other models.
constexpr std::string_view kWithoutUse = R"(
adam-beta1: adam-beta2: adam-eps: adlr-autoresume adlr-autoresume-interval: allow-ambiguous-pad-tokens
app-tag-run-name: app-tag-run-version: apply-layernorm-1p apply-query-key-layer-scaling
apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm async-ckpt-cpu-priority: async-ckpt-io-priority:
async-ckpt-use-cpu-shm async-save async-strategy: attention-softmax-in-fp32 auto-detect-ckpt-format batch-size:
bert-embedder-type: bert-load: bert-no-binary-head biencoder-projection-dim: biencoder-shared-query-context-model
block-data-path: cache-mla-latents calc-ft-timeouts calculate-per-token-loss chat-template: check-for-large-grads
check-for-spiky-loss check-weight-hash-across-dp-replicas-interval: ckpt-assume-constant-structure
ckpt-convert-format: ckpt-convert-save: ckpt-convert-update-legacy-dist-opt-format ckpt-drop-redundant-extra-state
ckpt-fully-parallel-load ckpt-fully-parallel-load-exchange-algo: ckpt-fully-parallel-load-per-rank-objects
ckpt-fully-parallel-load-process-group: ckpt-fully-parallel-save ckpt-fully-parallel-save-process-group:
ckpt-pg-tensors-cache-create ckpt-pg-tensors-cache-path: ckpt-step: classes-fraction: clip-grad: config-logger-dir:
cuda-graph-warmup-steps: data-args-path: data-cache-path: data-parallel-random-init data-path*
data-per-class-fraction: dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-type:
ddp-average-in-collective decode-only-cuda-graphs decoder-num-layers: decoder-seq-length: decoupled-lr:
decoupled-min-lr: decrease-batch-size-if-needed dino-bottleneck-size: dino-freeze-last-layer: dino-head-hidden-size:
dino-local-crops-number: dino-local-img-size: dino-norm-last-layer dino-teacher-temp: dino-warmup-teacher-temp:
dino-warmup-teacher-temp-epochs: disable-ckpt-load-validate-sharding-integrity
disable-clone-scatter-output-in-embedding disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu
disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec
disable-flight-recorder-include-only-active disable-gloo-process-groups disable-log-loss-scale-to-tensorboard
disable-manual-gc-eval disable-msc disable-save-tokenizer-assets disable-straggler-on-startup
disable-strict-fsdp-dtensor-load disable-tokenizer-sentencepiece-ignore-extra-whitespaces
disable-use-tokenizer-model-from-checkpoint-args dist-ckpt-format: dist-ckpt-optim-fully-reshardable
dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness: dist-ckpt-workers: distrib-optim-fully-reshardable-mem-efficient
distributed-backend: distributed-timeout-minutes: distributed-timeout-seconds-after-init:
dump-param-to-param-group-map: embedding-init-method-std: embedding-path: empty-unused-memory-level:
enable-chunked-prefill enable-experimental enable-ft-package enable-msc encoder-num-layers: encoder-seq-length:
end-weight-decay: eod-mask-loss error-injection-rate: error-injection-type: eval-global-batch-size: eval-interval:
eval-iters: eval-micro-batch-size: evidence-data-path: exit-duration-in-mins: exit-interval:
exit-on-missing-checkpoint exit-signal: exit-signal-handler exit-signal-handler-for-dataloader
exit-signal-handler-for-training fake-process-group fim-data fim-eod-token: fim-fragment-rate: fim-middle-token:
fim-no-prefix: fim-pad-token: fim-prefix-token: fim-rate: fim-split-sample: fim-spm-rate: fim-suffix-token: finetune
flash-decode flight-recorder-dump-path: flight-recorder-include-stack-trace flight-recorder-trace-buffer-size:
fp8-amax-compute-algo: fp8-interval: fp8-margin: fsdp-db-use-persist-buf-on-alloc-fail fsdp-manual-registration
ft-num-warmup-iters: full-validation glu-linear-offset: gpu-sniff-test-interval: grpo-clamp-eps-lower:
grpo-clamp-eps-upper: grpo-entropy-term-weight: grpo-filter-groups-with-same-reward grpo-group-size: grpo-iterations:
grpo-kl-beta: grpo-prompts-per-step: head-lr-mult: hysteresis: ict-head-size: ict-load: img-h: img-w:
indexer-batch-size: indexer-log-interval: inference-batch-times-seqlen-threshold: inference-coordinator-port:
inference-cuda-graph-all-prefills inference-cuda-graph-max-tokens: inference-cuda-graph-scope:
inference-disable-ep-consensus inference-disable-triton-nvls-kernels inference-dynamic-batching
inference-dynamic-batching-async-sched-mode: inference-dynamic-batching-block-size:
inference-dynamic-batching-buffer-size-gb: inference-dynamic-batching-cuda-graph-mixed-prefill-count:
inference-dynamic-batching-cuda-graph-sizing-distribution: inference-dynamic-batching-logprobs-mode:
inference-dynamic-batching-mamba-memory-ratio: inference-dynamic-batching-max-requests:
inference-dynamic-batching-max-tokens: inference-dynamic-batching-num-cuda-graphs:
inference-dynamic-batching-paused-buffer-size-gb: inference-dynamic-batching-prefix-caching
inference-dynamic-batching-prefix-caching-coordinator-policy:
inference-dynamic-batching-prefix-caching-eviction-policy: inference-dynamic-batching-prefix-caching-mamba-gb:
inference-dynamic-batching-prefix-caching-routing-alpha: inference-dynamic-batching-sampling-backend:
inference-dynamic-batching-track-generated-token-events inference-dynamic-batching-track-paused-request-events
inference-dynamic-batching-unified-memory-level: inference-fuse-tp-communication inference-grouped-gemm-backend:
inference-logging-step-interval: inference-max-requests: inference-max-seq-length:
inference-moe-disable-fused-quant-kernels inference-moe-token-dispatcher-type: inference-rng-tracker inference-shards:
inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging init-method-std:
init-method-xavier-uniform init-model-with-meta-device initial-loss-scale: inprocess-active-world-size:
inprocess-barrier-timeout: inprocess-completion-timeout: inprocess-empty-cuda-cache inprocess-granularity:
inprocess-hard-timeout: inprocess-heartbeat-interval: inprocess-heartbeat-timeout: inprocess-last-call-wait:
inprocess-max-iterations: inprocess-monitor-process-interval: inprocess-monitor-thread-interval:
inprocess-progress-watchdog-interval: inprocess-restart inprocess-soft-timeout: inprocess-termination-grace-time:
iter-per-epoch: iterations-to-skip+ langrl-env-config: lazy-mpu-init lion-beta1: lion-beta2: load:
load-main-params-from-ckpt local-rank: log-device-memory-used log-energy log-interval: log-max-attention-logit
log-memory-interval: log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler
log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard log-world-size-to-tensorboard
logging-level: logits-load-decode-threads: logits-load-dir: logits-load-ignore-errors logits-load-kd-loss-alpha:
logits-load-msc-prefetch-depth: logits-load-prefetch-factor: logits-save-dir: logits-save-dtype: logits-save-top-k:
logits-save-top-p: logits-save-top-p-min-k: loss-scale: loss-scale-window: lr: lr-decay-iters: lr-decay-samples:
lr-decay-style: lr-warmup-fraction: lr-warmup-init: lr-warmup-iters: lr-warmup-samples: lr-wsd-decay-iters:
lr-wsd-decay-samples: lr-wsd-decay-style: manual-gc manual-gc-interval: mask-factor: mask-prob: mask-type:
max-tokens-to-oom: memory-snapshot-path: merge-file: mid-level-dataset-surplus: min-loss-scale: min-lr:
mlp-chunks-for-prefill: mock-data model-parallel-size: moe-aux-loss-coeff+ moe-enable-routing-replay
moe-input-jitter-eps: moe-mlp-glu-interleave-size: moe-pad-experts-for-cuda-graph-inference moe-per-layer-logging
moe-permute-fusion moe-permute-fusion-into-hybridep moe-router-bias-update-rate: moe-router-dtype:
moe-router-enable-expert-bias moe-router-fusion moe-router-pre-softmax moe-router-quantile-balancing-ema:
moe-router-score-function: moe-router-topk-scaling-factor: moe-routing-trace-capture-hidden-states
moe-routing-trace-capture-logits moe-routing-trace-dump-weights moe-routing-trace-max-training-iters:
moe-routing-trace-path: moe-shared-expert-glu-interleave-size: moe-upcycling-granularity: moe-use-upcycling
moe-z-loss-coeff: mrope-section+ mscale: mscale-all-dim: mtp-hybrid-override-pattern: mtp-loss-scaling-factor:
multiple-validation-sets mup-attn-scale-power: mup-base-head-dim: mup-base-hidden-size: mup-embedding-mult:
mup-output-mult: mup-width-mult: nccl-all-reduce-for-prefill no-barrier-with-level-1-timing
no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity
no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding
no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout
no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active no-inference-disable-ep-consensus
no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization no-load-optim no-load-rng
no-log-loss-scale-to-tensorboard no-manual-gc-eval no-mmap-bin-files no-one-logger
no-rl-inference-logprobs-is-correction no-rl-offload-inference-model-weights-when-idle no-rl-partial-rollouts
no-rl-persist-cuda-graphs no-rl-skip-bos-token no-rl-training-cuda-graphs no-rl-use-sequence-packing
no-rl-verify-model-weights-swap no-save-optim no-save-rng no-save-tokenizer-assets no-strict-fsdp-dtensor-load
no-tokenizer-sentencepiece-ignore-extra-whitespaces no-use-layer-wise-param-layout
no-use-tokenizer-model-from-checkpoint-args no-weight-decay-cond-type: no-yarn-correction-range-round-to-int
non-persistent-ckpt-type: non-persistent-global-ckpt-dir: non-persistent-local-ckpt-algo:
non-persistent-local-ckpt-dir: non-persistent-save-interval: norm-epsilon: null-tokenizer-eod-id:
null-tokenizer-pad-id: num-channels: num-classes: num-dataset-builder-threads: num-speculative-tokens: num-workers:
nvtx-ranges object-storage-cache-path: one-logger-async one-logger-project: one-logger-run-name: onnx-safe:
openai-gelu optimizer-cuda-graph otel-enabled otel-service-name: otel-span-groups: output-bert-embeddings
override-ckpt-iteration: override-opt-param-scheduler override-opt_param-scheduler patch-dim:
per-dataset-sequences-path: per-split-data-args-path: persistent-save-interval: phase-transition-iterations:
pretrained-checkpoint: profile profile-ranks+ profile-step-end: profile-step-start: pytorch-profiler-collect-callstack
pytorch-profiler-collect-chakra pytorch-profiler-collect-shapes qk-clip qk-clip-alpha: qk-clip-threshold:
query-in-block-prob: record-memory-history record-shapes refit-method: relative-attention-max-distance: replication
replication-factor: replication-jump: rerun-mode: reset-attention-mask reset-position-ids
result-rejected-tracker-filename: retriever-report-topk-accuracies+ retriever-score-scaling
rl-consumption-granularity: rl-default-temperature: rl-default-top-k: rl-default-top-p: rl-durable-rollout-bank
rl-generation-lag: rl-importance-sampling-truncation-coef: rl-inference-expert-model-parallel-size:
rl-inference-expert-tensor-model-parallel-size: rl-inference-logprobs-is-correction
rl-inference-model-unified-memory-level: rl-inference-parsers* rl-inference-pipeline-model-parallel-size:
rl-inference-tensor-model-parallel-size: rl-kv-cache-management-mode: rl-max-inflight-requests:
rl-offload-inference-model-weights-when-idle rl-offload-optimizer-during-inference rl-partial-rollouts
rl-persist-cuda-graphs rl-profile rl-profile-dir: rl-prompts-per-eval: rl-rollout-bank-dir: rl-rollout-bank-max-bytes:
rl-sequence-packing-algo: rl-sequence-packing-max-sequences-per-bin: rl-skip-bos-token rl-submission-granularity:
rl-training-cuda-graphs rl-verify-model-weights-swap rope-scaling-factor: rope-type: rotary-base: rotary-interleaved
rotary-percent: rotary-scaling-factor: rotary-seq-len-interpolation-factor: run-workload-inspector-server sample-rate:
save: save-activations-interval: save-dgrads-interval: save-interval: save-params-interval: save-retain-interval:
save-tokens-per-expert-interval: save-wgrads-interval: seed: sft-tokenizer-prompt-format: sgd-momentum:
short-seq-prob: split: start-eval-at-iter: start-weight-decay: straggler-ctrlr-port: straggler-minmax-count:
suggested-communication-unit-size: swin-backbone-type: te-rng-tracker tensorboard-dir: tensorboard-log-interval:
tensorboard-queue-size: test-data-path* test-mode tiktoken-num-special-tokens: tiktoken-pattern: timing-log-level:
timing-log-option: titles-data-path: tokenizer-hf-no-include-special-tokens tokenizer-hf-no-use-fast
tokenizer-metadata: tokenizer-model: tokenizer-sentencepiece-legacy tokenizer-special-tokens+ tokenizer-type:
train-data-path* train-iters: train-samples: train-sync-interval: transformer-impl: trust-remote-code
use-checkpoint-args use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler use-cpu-initialization
use-dist-ckpt use-flash-attn use-gigatoken use-legacy-static-engine use-mcore-models use-mp-args-from-checkpoint-args
use-mup use-one-sent-docs use-persistent-ckpt-worker use-pytorch-profiler use-rope-scaling
use-same-sampling-seed-across-dp-ranks valid-data-path* validation-set-names+ verify-integrity vision-backbone-type:
vision-pretraining vision-pretraining-type: vocab-extra-ids: vocab-file: wandb-entity: wandb-exp-name: wandb-project:
wandb-save-dir: warmup: weight-decay: weight-decay-incr-style: yarn-beta-fast: yarn-beta-slow:
yarn-correction-range-round-to-int yarn-original-max-position-embeddings:
)";

// Options of Megatron-LM before 0.20, of Megatron-DeepSpeed and of other forks.
constexpr std::string_view kOlderFields = R"(
DDP-impl: deepspeed deepspeed-activation-checkpointing pad-vocab-size-to: use-custom-fsdp zero-stage:
)";
constexpr std::string_view kOlderUnmodeled = R"(
activations-checkpoint-method: activations-checkpoint-num-layers: checkpoint-in-cpu checkpoint-num-layers:
cpu-optimizer deepspeed-config: deepspeed_config: delay-grad-reduce delay-param-gather
distribute-checkpointed-activations ds-sequence-parallel-size: embed-layernorm enable-hyper-connections
enable-zbh1-pipeline enable-zero-bubble encoder-pipeline-model-parallel-size: encoder-tensor-model-parallel-size:
ffn_hidden_size: fp32-allreduce fp8-e4m3 fp8-hybrid glu-activation interleave-group-size: memory-centric-tiled-linear
moe-extended-tp no-async-tensor-model-parallel-allreduce no-contiguous-buffers-in-local-ddp no-delay-grad-reduce
no-delay-param-gather no-scaled-masked-softmax-fusion no-scatter-gather-tensors-in-pipeline num-residual-streams:
num-unique-layers: partition-activations pipeline-model-parallel-split-rank: pp-partition-method:
scatter-gather-tensors-in-pipeline use-contiguous-buffers-in-local-ddp zero-allgather-bucket-size:
zero-bubble-v-schedule zero-reduce-bucket-size:
)";
constexpr std::string_view kOlderWithoutUse = R"(
abort-on-unmet-fused-kernel-constraints activations-checkpoint-granularity: context-parallel-algo:
contigious-checkpointing cpu_torch_adam create-moe-param-group curriculum-learning data-impl: deepscale
deepscale_config: deepspeed_mpi ds-inference ds-sequence-parallel-fpdt enable-exactly-numeric-match enable-one-logger
enable-optimizer-post-validation enable-zbh1-exact-semantics expert-interval: force-ds-sequence-parallel
kill-switch-path: log-batch-size-to-tensorboard log-learning-rate-to-tensorboard log-optimizer-states-to-tensorboard:
lr-decay-tokens: lr-warmup-tokens: mlp-type: moe-eval-capacity-factor: moe-loss-coeff: moe-min-capacity:
moe-token-dropping moe-train-capacity-factor: no-load-lr-state no-log-learnig-rate-to-tensorboard
no-log-learning-rate-to-tensorboard no-pipeline-parallel no-query-key-layer-scaling num-key-value-heads:
one-logger-entity: param-sharing-style: profile-backward remote-device-cpu retro-project-dir: retro-workdir:
reweight-loss-based-on-position-frequency rope-theta: skip-train-iteration-range+ skip-warmup
sync-tp-duplicated-parameters synchronize-each-layer test-weighted-split-paths+ test-weighted-split-paths-path:
tile-factor: tokenizer-name-or-path: topk: train-tokens: train-weighted-split-paths+ train-weighted-split-paths-path:
universal-checkpoint use-flash-attn-triton use-flash-attn-v2 use-legacy-models use-pin-memory valid-num-workers:
valid-weighted-split-paths+ valid-weighted-split-paths-path: zero-bubble-interleaved-schedule
zero-bubble-max-pending-backward: zero-bubble-pipeline-timers-end-iter: zero-bubble-pipeline-timers-start-iter:
zero-contigious-gradients zero-reduce-scatter
)";

// Options of torchrun and torch.distributed.launch, which a script has before the name of the program.
constexpr std::string_view kLaunchers = R"(
local-addr: local-ranks-filter: local_addr: local_ranks_filter: log-dir: log_dir: master-addr: master-port:
master_addr: master_port: max-restarts: max_restarts: module monitor-interval: monitor_interval: nnodes: no-python
no_python node-rank: node_rank: nproc-per-node: nproc_per_node: rdzv-backend: rdzv-conf: rdzv-endpoint: rdzv-id:
rdzv_backend: rdzv_conf: rdzv_endpoint: rdzv_id: redirects: role: run-path run_path standalone start-method:
start_method: tee: use-env use_env
)";

}  // namespace

std::span<const MegatronOptionList> megatron_option_lists() {
  static constexpr MegatronOptionList kLists[] = {{MegatronUse::Field, false, kFields},
                                                  {MegatronUse::Time, false, kTime},
                                                  {MegatronUse::Memory, false, kMemory},
                                                  {MegatronUse::TimeAndMemory, false, kTimeAndMemory},
                                                  {MegatronUse::WithoutUse, false, kWithoutUse},
                                                  {MegatronUse::Field, true, kOlderFields},
                                                  {MegatronUse::TimeAndMemory, true, kOlderUnmodeled},
                                                  {MegatronUse::WithoutUse, true, kOlderWithoutUse},
                                                  {MegatronUse::Launcher, false, kLaunchers}};
  return kLists;
}

}  // namespace stagecraft
