// Options of Megatron-LM 0.20, of older versions and forks, and of launchers, by what they mean here. `name` is a
// switch; `name:` has one word after it, `name#3` three, `name+` one or more, `name*` any number. What its parser takes
// as such a word follows: `int`, `float`, `pattern` for a whole number or a list of layers such as [0]*3+[1]*58,
// `{a,b}` for the words a and b; nothing for any word.

#include "sim/interchange/imports/megatron_options.hpp"

namespace stagecraft {
namespace {

// Options that a reader of this folder uses, or refuses.
constexpr std::string_view kFields = R"(
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
add-qkv-bias attention-backend:{flash,fused,unfused,local,auto} attention-dropout:float bf16 checkpoint-activations
ckpt-format:{torch,torch_dist,torch_dcp,fsdp_dtensor} context-parallel-size:int cp-comm-type+
cross-entropy-loss-fusion data-parallel-sharding-strategy:{no_shard,optim,optim_grads,optim_grads_params}
ddp-bucket-size:int decoder-first-pipeline-num-layers:int decoder-last-pipeline-num-layers:int disable-bias-linear
disable-pad-vocab-size expert-model-parallel-size:int expert-tensor-parallel-num-weight-shards:int
expert-tensor-parallel-size:int ffn-hidden-size:int fp16 fp4-format:{e2m1} fp4-recipe:{nvfp4,custom}
fp8-amax-history-len:int fp8-format:{e4m3,hybrid} fp8-recipe:{tensorwise,delayed,mxfp8,blockwise,custom}
global-batch-size:int group-query-attention heterogeneous-layers-config-encoded-json:
heterogeneous-layers-config-path: hidden-dropout:float hidden-size:int hybrid-context-parallel hybrid-layer-pattern:
hybrid-override-pattern: kv-channels:int kv-lora-rank:int make-vocab-size-divisible-by:int max-position-embeddings:int
micro-batch-size:int microbatch-group-size-per-virtual-pipeline-stage:int moe-enable-deepep moe-ffn-hidden-size:int
moe-flex-dispatcher-backend:{deepep,hybridep,ncclep} moe-grouped-gemm moe-layer-freq:pattern moe-router-group-topk:int
moe-router-num-groups:int moe-router-topk:int moe-shared-expert-intermediate-size:int moe-shared-expert-overlap
moe-token-dispatcher-type:{allgather,alltoall,flex} mtp-num-layers:int multi-latent-attention no-pad-vocab-size
no-position-embedding normalization:{LayerNorm,RMSNorm} num-attention-heads:int
num-distributed-optimizer-instances:int num-experts:int num-layers:int num-layers-per-virtual-pipeline-stage:int
num-query-groups:int num-virtual-stages-per-pipeline-rank:int
optimizer:{adam,sgd,muon,dist_muon,lion,soap,adaptive_muon} overlap-grad-reduce padded-vocab-size:int
pipeline-model-parallel-layout: pipeline-model-parallel-size:int
position-embedding-type:{learned_absolute,rope,yarn,mrope,relative,none} q-lora-rank:int qk-head-dim:int qk-layernorm
qk-pos-emb-head-dim:int quick-geglu recompute-activations recompute-granularity:{full,selective}
recompute-method:{uniform,block} recompute-modules+ recompute-num-layers:int seq-length:int sequence-parallel swiglu
tensor-model-parallel-size:int tensor-parallel-num-weight-shards:int untie-embeddings-and-output-weights
use-distributed-optimizer use-megatron-fsdp use-rotary-position-embeddings use-torch-fsdp2 use-tp-pp-dp-mapping
v-head-dim:int vocab-size:int
)";

// Options that change the time of an iteration, and that no field of a scenario stands for, or only with the stack
// megatron-core. How much is not known here.
constexpr std::string_view kTime = R"(
activation-func-clamp-value:float batch-invariant-backend:{te_native,deepgemm,triton}=te_native batch-invariant-mode
create-all-gather-group ddp-num-buckets:int ddp-pad-buckets-for-high-nccl-busbw
ddp-param-name-patterns-for-fp32-local-accumulation+ ddp-reduce-scatter-with-fp32-accumulation
defer-embedding-wgrad-compute deterministic-mode disable-align-grad-reduce disable-bf16-reduced-precision-matmul
disable-fp8-wgrad disable-jit-fuser disable-mamba-mem-eff-path disable-symmetric-registration
disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs
disable-tp-comm-split-ag disable-tp-comm-split-rs dsa-indexer-k-norm-epsilon:float dsa-indexer-k-norm-fp32
dsa-indexer-loss-coeff:float dsa-indexer-rope-interleaved dsa-indexer-skip-topk-offset:int=0
dsa-indexer-topk-freq:int=1 dsa-indexer-use-sparse-loss dsa-kernel-backend:{none,tilelang,cudnn}=none
flash-attention-version:{2,3,4} fp4-quantizer-factory: fp8-quantizer-factory: fused-residual-rmsnorm
gdp-cutedsl-kernel gdp-num-householder:int=3 gtp-expert-remat-nccl-ub gtp-remat-nccl-ub
gtp-remat-reduce-scatter-with-fp32-accumulation hierarchical-context-parallel-sizes+int high-priority-a2a-comm-stream
high-priority-stream-groups+ kitchen-attention-backend:{sdpa,fa}=sdpa megatron-fsdp-enable-fine-grained-param-gather
megatron-fsdp-grad-comm-dtype:{fp32,fp16,bf16,auto}=auto megatron-fsdp-version:{1,2}=1
mhc-init-gating-factor:float=0.01 mhc-sinkhorn-iterations:int=20 mla-down-proj-fusion moe-apply-probs-on-input
moe-combine-bwd-dtype:{bf16,mxfp8}=bf16 moe-deepep-num-sms:int moe-dispatch-fwd-dtype:{bf16,mxfp8}=bf16
moe-flex-dispatcher-num-sms:int moe-hybridep-num-blocks-permute:int moe-hybridep-num-blocks-unpermute:int
moe-hybridep-num-sms:int moe-hybridep-num-sms-preprocessing:int=108 moe-hybridep-pad-uneven-dispatch-inputs
moe-ncclep-zero-copy moe-router-force-biased:float moe-router-force-load-balancing
moe-router-load-balancing-type+{aux_loss,seq_aux_loss,global_aux_loss,sinkhorn,quantile_balancing,none}=aux_loss
moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-single-grouped-bias
moe-token-drop-policy:{probs,position}=probs moe-use-grouped-tensor mtp-detach-heads mtp-hsm
muon-coefficient-type:=quintic muon-extra-scale-factor:float=1.0 muon-fp32-matmul-prec:{low,medium,high}=medium
muon-nesterov muon-no-split-qkv muon-num-ns-steps:int=5 muon-scalar-optimizer:{adam,lion}=adam
muon-scale-mode:{spectral,unit_rms_norm,shape_scaling}=spectral
muon-tp-mode:{blockwise,duplicated,distributed}=duplicated muon-use-syrk nccl-communicator-config-path:
no-align-grad-reduce no-align-param-gather no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
no-fp8-wgrad no-gradient-reduce-div-fusion no-masked-softmax-fusion no-overlap-p2p-communication no-persist-layer-norm
no-rope-freq:pattern no-rope-fusion no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad no-tp-comm-overlap-ag
no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs overlap-dispatch-backward-with-experts-wgrad
overlap-moe-expert-parallel-comm overlap-p2p-communication-warmup-flush overlap-param-gather
overlap-param-gather-with-optimizer-step pipeline-model-parallel-comm-backend:{nccl,ucc} qk-l2-norm
sharp-enabled-group:{dp,dp_replica} squared-relu symmetric-ar-type:{two_shot,one_shot,multimem_all_reduce}
tp-comm-bootstrap-backend:{nccl,mpi,gloo}=nccl tp-comm-overlap tp-comm-overlap-cfg: tp-comm-overlap-rs-dgrad
use-fused-weighted-squared-relu use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert
use-kitchen-attention use-nccl-ub use-ring-exchange-p2p use-sharp use-te-activation-func
use-transformer-engine-op-fuser wgrad-deferral-limit:int=0
)";
// Options that change the memory alone.
constexpr std::string_view kMemory = R"(
cpu-offloading-retain-pinned-cpu-buffers ep-overlap-early-attn-memory-release exp-avg-dtype:{fp32,fp16,bf16,fp8}=fp32
exp-avg-sq-dtype:{fp32,fp16,bf16,fp8}=fp32 fsdp-double-buffer keep-fp8-transpose-cache
main-params-dtype:{fp32,fp16}=fp32 megatron-fsdp-main-params-dtype:{fp32,bf16,fp16,auto}=fp32
megatron-fsdp-max-pool-double-buffer moe-paged-stash-buffer-size-factor-cpu:float=0.0
moe-paged-stash-buffer-size-factor-cuda:float=1.1 moe-paged-stash-page-size:int=64 no-pin-cpu-grads no-pin-cpu-params
reuse-grad-buf-for-mxfp8-param-ag use-precision-aware-optimizer
)";
// Options that change both, or one of them as the model has it.
constexpr std::string_view kTimeAndMemory = R"(
activation-offload-fraction:float=1.0 attention-output-gate cpu-offloading-num-layers:int=0
cross-entropy-fusion-impl:{native,te}=native cuda-graph-impl:{none,local,transformer_engine,full_iteration}=none
cuda-graph-modules+{attn,mlp,moe,moe_router,moe_preprocess,mamba,full,full_iteration,full_iteration_inference}
cuda-graph-scope+{attn,mlp,moe,moe_router,moe_preprocess,mamba,full,full_iteration,full_iteration_inference}
dataloader-inter-document-masking delay-offload-until-cuda-graph delay-wgrad-compute
delta-offload-bytes-across-pp-ranks:int=0 distribute-saved-activations dsa-indexer-head-dim:int
dsa-indexer-n-heads:int dsa-indexer-topk:int enable-cuda-graph enable-full-sharding-in-hsdp enable-mhc-connections
experimental-attention-variant:{gdn,gdn2,dsa,gated_delta_net} external-cuda-graph fine-grained-activation-offloading
fine-grained-offloading-max-inflight-offloads:int first-last-layers-bf16 fp16-lm-cross-entropy
fp32-residual-connection fp4-param-gather fp8-output-proj fp8-param-gather freeze-all-layers
gdp-num-chunk-states-to-recompute:int=2 grad-reduce-in-bf16 gtp-remat-opt-in-modules+ is-hybrid-model
linear-attention-freq:pattern linear-conv-kernel-dim:int=4 linear-key-head-dim:int=128 linear-num-key-heads:int=16
linear-num-value-heads:int=32 linear-value-head-dim:int=128 main-grads-dtype:{fp32,bf16}=fp32 mamba-head-dim:int=64
mamba-inference-conv-states-dtype:{bf16,fp16,fp32}=bf16 mamba-inference-ssm-states-dtype:{bf16,fp16,fp32}=bf16
mamba-num-groups:int=8 mamba-num-heads:int mamba-state-dim:int=128 mamba-training-ssm-states-dtype:{fp32,bf16}
max-seqlen-per-dp-cp-rank:int megatron-fsdp-main-grads-dtype:{fp32,bf16,fp16,auto}=auto mhc-num-residual-streams:int=4
mhc-recompute-layer-num:int min-offloaded-tensor-size:int=1048576 mlp-chunks-for-training:int=1
moe-expert-capacity-factor:float moe-expert-rank-capacity-factor:float moe-latent-size:int moe-layer-recompute
moe-pad-expert-input-to-capacity moe-paged-stash moe-shared-expert-gate moe-single-grouped-weight mtp-standalone
mtp-use-repeated-layer muon-momentum:float=0.9 no-gradient-accumulation-fusion num-layers-at-end-in-bf16:int=1
num-layers-at-start-in-bf16:int=1 offload-modules+ optimizer-cpu-offload optimizer-offload-fraction:float=1.0
outer-dp-sharding-strategy:{no_shard,optim}=no_shard output-logit-dtype:{bf16,fp32} overlap-cpu-optimizer-d2h-h2d
perform-rl-step rampup-batch-size#3int relative-attention-num-buckets:int=32 rl-use-sequence-packing sft skip-train
softmax-type:{vanilla,off-by-one,learnable}=vanilla spec* step-batch-size-schedule: te-precision-config-file:
torch-fsdp2-no-reshard-after-forward use-torch-optimizer-for-cpu-offload window-attn-skip-freq:pattern window-size:
yaml-cfg:
)";

// Options about data, logs, checkpoints, learning rates, initial weights, inference and other models.
constexpr std::string_view kWithoutUse = R"(
adam-beta1:float adam-beta2:float adam-eps:float adlr-autoresume adlr-autoresume-interval:int
allow-ambiguous-pad-tokens app-tag-run-name: app-tag-run-version: apply-layernorm-1p apply-query-key-layer-scaling
apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm async-ckpt-cpu-priority:int
async-ckpt-io-priority:int async-ckpt-use-cpu-shm async-save async-strategy:{nvrx,mcore} attention-softmax-in-fp32
auto-detect-ckpt-format batch-size:int bert-embedder-type:{megatron,huggingface} bert-load: bert-no-binary-head
biencoder-projection-dim:int biencoder-shared-query-context-model block-data-path: cache-mla-latents calc-ft-timeouts
calculate-per-token-loss chat-template: check-for-large-grads check-for-spiky-loss
check-weight-hash-across-dp-replicas-interval:int ckpt-assume-constant-structure
ckpt-convert-format:{torch,torch_dist} ckpt-convert-save: ckpt-convert-update-legacy-dist-opt-format
ckpt-drop-redundant-extra-state ckpt-fully-parallel-load
ckpt-fully-parallel-load-exchange-algo:{broadcast,gather_rounds,gather_object}
ckpt-fully-parallel-load-per-rank-objects ckpt-fully-parallel-load-process-group:{dp,ep_dp} ckpt-fully-parallel-save
ckpt-fully-parallel-save-process-group:{dp,ep_dp} ckpt-pg-tensors-cache-create ckpt-pg-tensors-cache-path:
ckpt-step:int classes-fraction:float clip-grad:float config-logger-dir: cuda-graph-warmup-steps:int data-args-path:
data-cache-path: data-parallel-random-init data-path* data-per-class-fraction:float dataloader-defer-npy-index-mmap
dataloader-fast-cache-load dataloader-type:{single,cyclic,external} ddp-average-in-collective decode-only-cuda-graphs
decoder-num-layers:int decoder-seq-length:int decoupled-lr:float decoupled-min-lr:float decrease-batch-size-if-needed
dino-bottleneck-size:int dino-freeze-last-layer:float dino-head-hidden-size:int dino-local-crops-number:int
dino-local-img-size:int dino-norm-last-layer dino-teacher-temp:float dino-warmup-teacher-temp:float
dino-warmup-teacher-temp-epochs:int disable-ckpt-load-validate-sharding-integrity
disable-clone-scatter-output-in-embedding disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu
disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec
disable-flight-recorder-include-only-active disable-gloo-process-groups disable-log-loss-scale-to-tensorboard
disable-manual-gc-eval disable-msc disable-save-tokenizer-assets disable-straggler-on-startup
disable-strict-fsdp-dtensor-load disable-tokenizer-sentencepiece-ignore-extra-whitespaces
disable-use-tokenizer-model-from-checkpoint-args dist-ckpt-format: dist-ckpt-optim-fully-reshardable
dist-ckpt-save-pre-mcore-014
dist-ckpt-strictness:{assume_ok_unexpected,log_unexpected,log_all,raise_unexpected,raise_all,return_unexpected,return_all,ignore_all}
dist-ckpt-workers:int distrib-optim-fully-reshardable-mem-efficient distributed-backend:{nccl,gloo}
distributed-timeout-minutes:int distributed-timeout-seconds-after-init:int dump-param-to-param-group-map:
embedding-init-method-std:float embedding-path: empty-unused-memory-level:{0,1,2} enable-chunked-prefill
enable-experimental enable-ft-package enable-msc encoder-num-layers:int encoder-seq-length:int end-weight-decay:float
eod-mask-loss error-injection-rate:int error-injection-type:{correct_result,transient_error,persistent_error}
eval-global-batch-size:int eval-interval:int eval-iters:int eval-micro-batch-size:int evidence-data-path:
exit-duration-in-mins:int exit-interval:int exit-on-missing-checkpoint
exit-signal:{SIGHUP,SIGINT,SIGQUIT,SIGILL,SIGTRAP,SIGABRT,SIGBUS,SIGFPE,SIGKILL,SIGUSR1,SIGSEGV,SIGUSR2,SIGPIPE,SIGALRM,SIGTERM,SIGSTKFLT,SIGCHLD,SIGCONT,SIGSTOP,SIGTSTP,SIGTTIN,SIGTTOU,SIGURG,SIGXCPU,SIGXFSZ,SIGVTALRM,SIGPROF,SIGWINCH,SIGIO,SIGPWR,SIGSYS,SIGRTMIN,SIGRTMAX}
exit-signal-handler exit-signal-handler-for-dataloader exit-signal-handler-for-training fake-process-group
fault-injector-delay-start-iteration:int fault-injector-fault-delay:float fault-injector-fault-probabilities:
fault-injector-fault-types: fault-injector-mtti-seconds:float fault-injector-num-ranks:int
fault-injector-offset-seconds:float fault-injector-ranks: fault-injector-seed:int fim-data fim-eod-token:
fim-fragment-rate:float fim-middle-token: fim-no-prefix: fim-pad-token: fim-prefix-token: fim-rate:float
fim-split-sample: fim-spm-rate:float fim-suffix-token: finetune flash-decode flight-recorder-dump-path:
flight-recorder-include-stack-trace flight-recorder-trace-buffer-size:int fp8-amax-compute-algo:{most_recent,max}
fp8-interval:int fp8-margin:int fsdp-db-use-persist-buf-on-alloc-fail fsdp-manual-registration ft-num-warmup-iters:int
full-validation glu-linear-offset:float gpu-sniff-test-interval:int grpo-clamp-eps-lower:float
grpo-clamp-eps-upper:float grpo-entropy-term-weight:float grpo-filter-groups-with-same-reward grpo-group-size:int
grpo-iterations:int grpo-kl-beta:float grpo-prompts-per-step:int head-lr-mult:float hysteresis:int ict-head-size:int
ict-load: img-h:int img-w:int indexer-batch-size:int indexer-log-interval:int
inference-batch-times-seqlen-threshold:int inference-coordinator-port:int inference-cuda-graph-all-prefills
inference-cuda-graph-max-tokens:int inference-cuda-graph-scope:{none,layer,block} inference-disable-ep-consensus
inference-disable-triton-nvls-kernels inference-dynamic-batching
inference-dynamic-batching-async-sched-mode:{legacy,async} inference-dynamic-batching-block-size:int
inference-dynamic-batching-buffer-size-gb:float inference-dynamic-batching-cuda-graph-mixed-prefill-count:int
inference-dynamic-batching-cuda-graph-sizing-distribution:{exponential,linear}
inference-dynamic-batching-logprobs-mode:{raw_logprobs,processed_logprobs}
inference-dynamic-batching-mamba-memory-ratio:float inference-dynamic-batching-max-requests:int
inference-dynamic-batching-max-tokens:int inference-dynamic-batching-num-cuda-graphs:int
inference-dynamic-batching-paused-buffer-size-gb:float inference-dynamic-batching-prefix-caching
inference-dynamic-batching-prefix-caching-coordinator-policy:{longest_prefix,first_prefix_block,load_balanced}
inference-dynamic-batching-prefix-caching-eviction-policy:{ref_zero,lru}
inference-dynamic-batching-prefix-caching-mamba-gb:float inference-dynamic-batching-prefix-caching-routing-alpha:float
inference-dynamic-batching-sampling-backend:{torch,flashinfer} inference-dynamic-batching-track-generated-token-events
inference-dynamic-batching-track-paused-request-events inference-dynamic-batching-unified-memory-level:{0,1}
inference-fuse-tp-communication inference-grouped-gemm-backend:{flashinfer,torch,vllm}
inference-logging-step-interval:int inference-max-requests:int inference-max-seq-length:int
inference-moe-disable-fused-quant-kernels inference-moe-token-dispatcher-type:{nccl,nvls} inference-rng-tracker
inference-shards: inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging
init-method-std:float init-method-xavier-uniform init-model-with-meta-device initial-loss-scale:float
inprocess-active-world-size:int inprocess-barrier-timeout:float inprocess-completion-timeout:float
inprocess-empty-cuda-cache inprocess-granularity:{node,rank} inprocess-hard-timeout:float
inprocess-heartbeat-interval:float inprocess-heartbeat-timeout:float inprocess-last-call-wait:float
inprocess-max-iterations:int inprocess-monitor-process-interval:float inprocess-monitor-thread-interval:float
inprocess-progress-watchdog-interval:float inprocess-restart inprocess-soft-timeout:float
inprocess-termination-grace-time:float iter-per-epoch:int iterations-to-skip+int langrl-env-config: lazy-mpu-init
lion-beta1:float lion-beta2:float load: load-main-params-from-ckpt local-rank:int log-device-memory-used log-energy
log-interval:int log-max-attention-logit log-memory-interval:int log-memory-to-tensorboard log-num-zeros-in-grad
log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard
log-world-size-to-tensorboard logging-level:int logits-load-decode-threads:int logits-load-dir:
logits-load-ignore-errors logits-load-kd-loss-alpha:float logits-load-msc-prefetch-depth:int
logits-load-prefetch-factor:int logits-save-dir: logits-save-dtype:{fp16,bf16,fp32} logits-save-top-k:int
logits-save-top-p:float logits-save-top-p-min-k:int loss-scale:float loss-scale-window:float lr:float
lr-decay-iters:int lr-decay-samples:int lr-decay-style:{constant,linear,cosine,inverse-square-root,WSD}
lr-warmup-fraction:float lr-warmup-init:float lr-warmup-iters:int lr-warmup-samples:int lr-wsd-decay-iters:int
lr-wsd-decay-samples:int lr-wsd-decay-style:{exponential,linear,cosine,minus_sqrt} manual-gc manual-gc-interval:int
mask-factor:float mask-prob:float mask-type:{random,row} max-tokens-to-oom:int memory-snapshot-path: merge-file:
mid-level-dataset-surplus:float min-loss-scale:float min-lr:float mlp-chunks-for-prefill:int mock-data
model-parallel-size:int moe-aux-loss-coeff+float moe-enable-routing-replay moe-input-jitter-eps:float
moe-mlp-glu-interleave-size:int moe-pad-experts-for-cuda-graph-inference moe-per-layer-logging moe-permute-fusion
moe-permute-fusion-into-hybridep moe-router-bias-update-rate:float moe-router-dtype:{fp32,fp64}
moe-router-enable-expert-bias moe-router-fusion moe-router-pre-softmax moe-router-quantile-balancing-ema:float
moe-router-score-function:{softmax,sigmoid,sqrtsoftplus} moe-router-topk-scaling-factor:float
moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits moe-routing-trace-dump-weights
moe-routing-trace-max-training-iters:int moe-routing-trace-path: moe-shared-expert-glu-interleave-size:int
moe-upcycling-granularity:int moe-use-upcycling moe-z-loss-coeff:float mrope-section+int mscale:float
mscale-all-dim:float mtp-hybrid-override-pattern: mtp-loss-scaling-factor:float multiple-validation-sets
mup-attn-scale-power:float mup-base-head-dim:float mup-base-hidden-size:int mup-embedding-mult:float
mup-output-mult:float mup-width-mult:float nccl-all-reduce-for-prefill no-barrier-with-level-1-timing
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
no-use-tokenizer-model-from-checkpoint-args no-weight-decay-cond-type:{apply_wd_to_qk_layernorm}
no-yarn-correction-range-round-to-int non-persistent-ckpt-type:{global,local,in_memory}
non-persistent-global-ckpt-dir: non-persistent-local-ckpt-algo:{fully_parallel,atomic} non-persistent-local-ckpt-dir:
non-persistent-save-interval:int norm-epsilon:float null-tokenizer-eod-id:int null-tokenizer-pad-id:int
num-channels:int num-classes:int num-dataset-builder-threads:int num-speculative-tokens:int num-workers:int
nvtx-ranges object-storage-cache-path: one-logger-async one-logger-project: one-logger-run-name: onnx-safe:
openai-gelu optimizer-cuda-graph otel-enabled otel-service-name: otel-span-groups: output-bert-embeddings
override-ckpt-iteration:int override-opt-param-scheduler override-opt_param-scheduler patch-dim:int
per-dataset-sequences-path: per-split-data-args-path: persistent-save-interval:int phase-transition-iterations:
pretrained-checkpoint: profile profile-ranks+int profile-step-end:int profile-step-start:int
pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra pytorch-profiler-collect-shapes qk-clip
qk-clip-alpha:float qk-clip-threshold:float query-in-block-prob:float record-memory-history record-shapes
refit-method:{nccl,gloo,nvshmem} relative-attention-max-distance:int replication replication-factor:int
replication-jump:int rerun-mode:{disabled,validate_results,report_stats} reset-attention-mask reset-position-ids
result-rejected-tracker-filename: retriever-report-topk-accuracies+int retriever-score-scaling
rl-consumption-granularity:{R,G,B} rl-default-temperature:float rl-default-top-k:int rl-default-top-p:float
rl-durable-rollout-bank rl-generation-lag:float rl-importance-sampling-truncation-coef:float
rl-inference-expert-model-parallel-size:int rl-inference-expert-tensor-model-parallel-size:int
rl-inference-logprobs-is-correction rl-inference-model-unified-memory-level:{0,1} rl-inference-parsers*
rl-inference-pipeline-model-parallel-size:int rl-inference-tensor-model-parallel-size:int
rl-kv-cache-management-mode:{persist,offload,recompute} rl-max-inflight-requests:int
rl-offload-inference-model-weights-when-idle rl-offload-optimizer-during-inference rl-partial-rollouts
rl-persist-cuda-graphs rl-profile rl-profile-dir: rl-prompts-per-eval:int rl-rollout-bank-dir:
rl-rollout-bank-max-bytes:int rl-sequence-packing-algo:{fifo,round-robin}
rl-sequence-packing-max-sequences-per-bin:int rl-skip-bos-token rl-submission-granularity:{R,G,B}
rl-training-cuda-graphs rl-verify-model-weights-swap rope-scaling-factor:float rope-type:{rope,yarn} rotary-base:int
rotary-interleaved rotary-percent:float rotary-scaling-factor:float rotary-seq-len-interpolation-factor:int
run-workload-inspector-server sample-rate:float save: save-activations-interval:int save-dgrads-interval:int
save-interval:int save-params-interval:int save-retain-interval:int save-tokens-per-expert-interval:int
save-wgrads-interval:int seed:int sft-tokenizer-prompt-format: sgd-momentum:float short-seq-prob:float split:
start-eval-at-iter:int start-weight-decay:float straggler-ctrlr-port:int straggler-minmax-count:int
suggested-communication-unit-size:int swin-backbone-type:{tiny,base,h3} te-rng-tracker tensorboard-dir:
tensorboard-log-interval:int tensorboard-queue-size:int test-data-path* test-mode tiktoken-num-special-tokens:int
tiktoken-pattern:{v1,v2} timing-log-level:{0,1,2} timing-log-option:{max,minmax,all} titles-data-path:
tokenizer-hf-no-include-special-tokens tokenizer-hf-no-use-fast tokenizer-metadata: tokenizer-model:
tokenizer-sentencepiece-legacy tokenizer-special-tokens+
tokenizer-type:{BertWordPieceLowerCase,BertWordPieceCase,GPT2BPETokenizer,SentencePieceTokenizer,GPTSentencePieceTokenizer,HuggingFaceTokenizer,Llama2Tokenizer,TikTokenizer,MultimodalTokenizer,NullTokenizer,NullMultimodalTokenizer,SFTTokenizer}
train-data-path* train-iters:int train-samples:int train-sync-interval:int
transformer-impl:{local,transformer_engine,inference_optimized} trust-remote-code use-checkpoint-args
use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler use-cpu-initialization use-dist-ckpt
use-flash-attn use-gigatoken use-legacy-static-engine use-mcore-models use-mp-args-from-checkpoint-args use-mup
use-one-sent-docs use-persistent-ckpt-worker use-pytorch-profiler use-rope-scaling
use-same-sampling-seed-across-dp-ranks valid-data-path* validation-set-names+ verify-integrity
vision-backbone-type:{vit,mit,swin} vision-pretraining vision-pretraining-type:{classify,inpaint,dino}
vocab-extra-ids:int vocab-file: wandb-entity: wandb-exp-name: wandb-project: wandb-save-dir: warmup:int
weight-decay:float weight-decay-incr-style:{constant,linear,cosine} yarn-beta-fast:float yarn-beta-slow:float
yarn-correction-range-round-to-int yarn-original-max-position-embeddings:int
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
