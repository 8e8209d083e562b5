// Options of Megatron-LM 0.11 to 0.20, of older versions and forks, and of launchers, by what they mean here. `name` is
// a switch; `name:` has one word after it, `name#3` three, `name+` one or more, `name*` any number. What its parser
// takes as such a word follows: `int`, `float`, `pattern` for a whole number or a list of layers such as
// [0]*3+[1]*58, `{a,b}` for the words a and b; nothing for any word. `name@0.14` is there since 0.14, `name@0.12-0.15`
// until 0.15, and `{a,b@0.14}` has b since 0.14: by the parsers of the tags v0.11.0 and core_v0.12.0 to core_v0.19.0,
// and of d98e8a64 (0.20, 2026-08-22), whose defaults and choices these are, with the options of ModelOpt that
// pretrain_gpt.py adds.

#include "sim/interchange/imports/megatron_options.hpp"

namespace stagecraft {
namespace {

// Options that a reader of this folder uses, or refuses.
constexpr std::string_view kFields = R"(
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
add-qkv-bias attention-backend:{flash,fused,unfused,local,auto} attention-dropout:float bf16 checkpoint-activations
ckpt-format:{torch,torch_dist,torch_dcp@0.12,fsdp_dtensor@0.14} context-parallel-size:int cp-comm-type+
cross-entropy-loss-fusion data-parallel-sharding-strategy@0.12:{no_shard,optim,optim_grads,optim_grads_params}
ddp-bucket-size:int decoder-first-pipeline-num-layers:int decoder-last-pipeline-num-layers:int disable-bias-linear
disable-pad-vocab-size@0.18 expert-model-parallel-size:int expert-tensor-parallel-num-weight-shards@0.19:int
expert-tensor-parallel-size:int ffn-hidden-size:int fp16 fp4-format@0.15:{e2m1} fp4-recipe@0.15:{nvfp4,custom@0.16}
fp8-amax-history-len:int fp8-format:{e4m3,hybrid} fp8-recipe@0.12:{tensorwise,delayed,mxfp8,blockwise@0.13,custom@0.16}
global-batch-size:int group-query-attention heterogeneous-layers-config-encoded-json@0.12:
heterogeneous-layers-config-path@0.12: hidden-dropout:float hidden-size:int hybrid-context-parallel@0.16
hybrid-layer-pattern@0.17: hybrid-override-pattern: kv-channels:int kv-lora-rank:int make-vocab-size-divisible-by:int
max-position-embeddings:int micro-batch-size:int microbatch-group-size-per-virtual-pipeline-stage:int
moe-enable-deepep@0.12 moe-ffn-hidden-size:int moe-flex-dispatcher-backend@0.16:{deepep,hybridep,ncclep@0.19}
moe-grouped-gemm moe-layer-freq:pattern moe-router-group-topk:int moe-router-num-groups:int moe-router-topk:int
moe-shared-expert-intermediate-size:int moe-shared-expert-overlap
moe-token-dispatcher-type:{allgather,alltoall,flex@0.12} mtp-num-layers@0.12:int multi-latent-attention
no-pad-vocab-size@0.18 no-position-embedding normalization:{LayerNorm,RMSNorm} num-attention-heads:int
num-distributed-optimizer-instances:int num-experts:int num-layers:int num-layers-per-virtual-pipeline-stage:int
num-query-groups:int num-virtual-stages-per-pipeline-rank:int
optimizer:{adam,sgd,muon@0.16,dist_muon@0.16,lion@0.17,soap@0.18,adaptive_muon@0.18} overlap-grad-reduce
padded-vocab-size@0.14:int pipeline-model-parallel-layout@0.13: pipeline-model-parallel-size:int
position-embedding-type:{learned_absolute,rope,yarn@0.18,mrope@0.12,relative,none} q-lora-rank:int qk-head-dim:int
qk-layernorm qk-pos-emb-head-dim:int quick-geglu@0.15 recompute-activations recompute-granularity:{full,selective}
recompute-method:{uniform,block} recompute-modules@0.12+ recompute-num-layers:int seq-length:int sequence-parallel
step-batch-size-schedule@0.18: swiglu tensor-model-parallel-size:int tensor-parallel-num-weight-shards@0.19:int
untie-embeddings-and-output-weights use-distributed-optimizer use-megatron-fsdp@0.14 use-rotary-position-embeddings
use-torch-fsdp2 use-tp-pp-dp-mapping v-head-dim:int vocab-size:int
)";

// Options that change the time of an iteration, and that no field of a scenario stands for, or only with the stack
// megatron-core. How much is not known here.
constexpr std::string_view kTime = R"(
activation-func-clamp-value@0.15:float batch-invariant-backend@0.20:{te_native,deepgemm,triton}=te_native
batch-invariant-mode@0.16 create-all-gather-group@0.16 ddp-num-buckets@0.12:int
ddp-pad-buckets-for-high-nccl-busbw@0.12 ddp-param-name-patterns-for-fp32-local-accumulation@0.17+
ddp-reduce-scatter-with-fp32-accumulation@0.16 defer-embedding-wgrad-compute deterministic-mode
disable-align-grad-reduce@0.17 disable-bf16-reduced-precision-matmul@0.12 disable-fp8-wgrad@0.16
disable-jit-fuser@0.16 disable-mamba-mem-eff-path@0.13 disable-symmetric-registration@0.15 disable-tp-comm-bulk-dgrad
disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag
disable-tp-comm-split-rs dsa-indexer-k-norm-epsilon@0.19:float dsa-indexer-k-norm-fp32@0.19
dsa-indexer-loss-coeff@0.16:float dsa-indexer-rope-interleaved@0.19 dsa-indexer-skip-topk-offset@0.19:int=0
dsa-indexer-topk-freq@0.19:int=1 dsa-indexer-use-sparse-loss@0.16 dsa-kernel-backend@0.19:{none,tilelang,cudnn}=none
flash-attention-version@0.19:{2,3,4} fp4-quantizer-factory@0.16: fp8-quantizer-factory@0.16:
fused-residual-rmsnorm@0.17 gdp-cutedsl-kernel@0.20 gdp-num-householder@0.20:int=3 gtp-expert-remat-nccl-ub@0.20
gtp-remat-nccl-ub@0.20 gtp-remat-reduce-scatter-with-fp32-accumulation@0.20 hierarchical-context-parallel-sizes+int
high-priority-a2a-comm-stream@0.18 high-priority-stream-groups@0.13+ kitchen-attention-backend@0.16:{sdpa,fa}=sdpa
megatron-fsdp-enable-fine-grained-param-gather@0.18 megatron-fsdp-grad-comm-dtype@0.17:{fp32,fp16,bf16,auto}=auto
megatron-fsdp-version@0.20:{1,2}=1 mhc-init-gating-factor@0.20:float=0.01 mhc-sinkhorn-iterations@0.20:int=20
mla-down-proj-fusion@0.17 moe-apply-probs-on-input@0.13 moe-combine-bwd-dtype@0.20:{bf16,mxfp8}=bf16
moe-deepep-num-sms@0.13:int moe-dispatch-fwd-dtype@0.20:{bf16,mxfp8}=bf16 moe-flex-dispatcher-num-sms@0.19:int
moe-hybridep-num-blocks-permute@0.18:int moe-hybridep-num-blocks-unpermute@0.18:int moe-hybridep-num-sms@0.16:int
moe-hybridep-num-sms-preprocessing@0.18:int=108 moe-hybridep-pad-uneven-dispatch-inputs@0.19
moe-ncclep-zero-copy@0.19 moe-router-force-biased@0.17:float moe-router-force-load-balancing@0.13
moe-router-load-balancing-type+{aux_loss,seq_aux_loss,global_aux_loss@0.15,sinkhorn,quantile_balancing@0.19,none}=aux_loss
moe-router-padding-for-fp8@0.13 moe-router-padding-for-quantization@0.16 moe-single-grouped-bias@0.18
moe-token-drop-policy:{probs,position}=probs moe-use-grouped-tensor@0.20 mtp-detach-heads@0.19 mtp-hsm@0.20
muon-coefficient-type@0.17:=quintic muon-extra-scale-factor@0.16:float=1.0
muon-fp32-matmul-prec@0.16:{low,medium,high}=medium muon-nesterov@0.18 muon-no-split-qkv@0.16
muon-num-ns-steps@0.16:int=5 muon-scalar-optimizer@0.17:{adam,lion}=adam
muon-scale-mode@0.16:{spectral,unit_rms_norm,shape_scaling}=spectral
muon-tp-mode@0.16:{blockwise,duplicated,distributed}=duplicated muon-use-syrk@0.20 nccl-communicator-config-path:
no-align-grad-reduce no-align-param-gather no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
no-fp8-wgrad no-gradient-reduce-div-fusion@0.12 no-masked-softmax-fusion no-overlap-p2p-communication
no-persist-layer-norm no-rope-freq@0.13:pattern no-rope-fusion no-tp-comm-bulk-dgrad@0.16 no-tp-comm-bulk-wgrad@0.16
no-tp-comm-overlap-ag@0.16 no-tp-comm-overlap-rs@0.16 no-tp-comm-split-ag@0.16 no-tp-comm-split-rs@0.16
overlap-dispatch-backward-with-experts-wgrad@0.18 overlap-moe-expert-parallel-comm@0.14
overlap-p2p-communication-warmup-flush overlap-param-gather overlap-param-gather-with-optimizer-step
pipeline-model-parallel-comm-backend@0.12:{nccl,ucc} qk-l2-norm@0.13 sharp-enabled-group@0.14:{dp,dp_replica}
squared-relu symmetric-ar-type@0.13:{two_shot,one_shot,multimem_all_reduce}
tp-comm-bootstrap-backend:{nccl,mpi,gloo}=nccl tp-comm-overlap tp-comm-overlap-cfg: tp-comm-overlap-rs-dgrad
use-fused-weighted-squared-relu@0.14 use-grouped-gemm-for-dense-mlp@0.18 use-grouped-gemm-for-shared-expert@0.19
use-kitchen-attention@0.16 use-nccl-ub@0.13 use-ring-exchange-p2p use-sharp@0.13 use-te-activation-func@0.15
use-transformer-engine-op-fuser@0.18 wgrad-deferral-limit:int=0
)";
// Options that change the memory alone.
constexpr std::string_view kMemory = R"(
cpu-offloading-retain-pinned-cpu-buffers@0.17 ep-overlap-early-attn-memory-release@0.16
exp-avg-dtype:{fp32,fp16,bf16@0.13,fp8}=fp32 exp-avg-sq-dtype:{fp32,fp16,bf16@0.13,fp8}=fp32 fsdp-double-buffer@0.13
keep-fp8-transpose-cache@0.14 main-params-dtype:{fp32,fp16}=fp32
megatron-fsdp-main-params-dtype@0.17:{fp32,bf16,fp16,auto}=fp32 megatron-fsdp-max-pool-double-buffer@0.19
moe-paged-stash-buffer-size-factor-cpu@0.18:float=0.0 moe-paged-stash-buffer-size-factor-cuda@0.18:float=1.1
moe-paged-stash-page-size@0.18:int=64 no-pin-cpu-grads@0.12 no-pin-cpu-params@0.12
reuse-grad-buf-for-mxfp8-param-ag@0.13 use-precision-aware-optimizer
)";
// Options that change both, or one of them as the model has it.
constexpr std::string_view kTimeAndMemory = R"(
activation-offload-fraction@0.19:float=1.0 attention-output-gate@0.16 cpu-offloading-num-layers@0.16:int=0
cross-entropy-fusion-impl@0.12:{native,te}=native
cuda-graph-impl@0.15:{none,local,transformer_engine,full_iteration@0.18}=none
cuda-graph-modules@0.18+{attn,mlp,moe,moe_router,moe_preprocess,mamba,full,full_iteration,full_iteration_inference}
cuda-graph-scope@0.12+{attn,mlp@0.16,moe@0.16,moe_router@0.16,moe_preprocess@0.16,mamba@0.16,full,full_iteration@0.14,full_iteration_inference@0.16}
dataloader-inter-document-masking@0.19 delay-offload-until-cuda-graph@0.19 delay-wgrad-compute@0.13
delta-offload-bytes-across-pp-ranks@0.19:int=0 distribute-saved-activations dsa-indexer-head-dim@0.16:int
dsa-indexer-n-heads@0.16:int dsa-indexer-topk@0.16:int enable-cuda-graph enable-full-sharding-in-hsdp@0.14
enable-mhc-connections@0.20 experimental-attention-variant@0.16:{gdn@0.20,gdn2@0.20,dsa,gated_delta_net}
export-force-local-attention export-kd-cfg: export-kd-teacher-load: export-qk-l2-norm export-quant-cfg:
export-real-quant-cfg: external-cuda-graph@0.12 fine-grained-activation-offloading@0.16
fine-grained-offloading-max-inflight-offloads@0.18:int first-last-layers-bf16@0.12 fp16-lm-cross-entropy
fp32-residual-connection fp4-param-gather@0.15 fp8-output-proj@0.18 fp8-param-gather freeze-all-layers@0.19
freeze-base-for-mtp gdp-num-chunk-states-to-recompute@0.20:int=2 grad-reduce-in-bf16@0.12
gtp-remat-opt-in-modules@0.20+ is-hybrid-model@0.12 linear-attention-freq@0.16:pattern
linear-conv-kernel-dim@0.16:int=4 linear-key-head-dim@0.16:int=128 linear-num-key-heads@0.16:int=16
linear-num-value-heads@0.16:int=32 linear-value-head-dim@0.16:int=128 main-grads-dtype:{fp32,bf16}=fp32
mamba-head-dim@0.12:int=64 mamba-inference-conv-states-dtype@0.17:{bf16,fp16,fp32}=bf16
mamba-inference-ssm-states-dtype@0.17:{bf16,fp16,fp32}=bf16 mamba-num-groups@0.12:int=8 mamba-num-heads@0.13:int
mamba-state-dim@0.12:int=128 mamba-training-ssm-states-dtype@0.19:{fp32,bf16} max-seqlen-per-dp-cp-rank@0.16:int
megatron-fsdp-main-grads-dtype@0.17:{fp32,bf16,fp16,auto}=auto mhc-num-residual-streams@0.20:int=4
mhc-recompute-layer-num@0.20:int min-offloaded-tensor-size@0.16:int=1048576 mlp-chunks-for-training@0.18:int=1
moe-expert-capacity-factor:float moe-expert-rank-capacity-factor@0.18:float moe-latent-size@0.16:int
moe-layer-recompute moe-pad-expert-input-to-capacity moe-paged-stash@0.18 moe-shared-expert-gate@0.16
moe-single-grouped-weight@0.18 mtp-standalone@0.16 mtp-use-repeated-layer@0.17 muon-momentum@0.16:float=0.9
no-gradient-accumulation-fusion num-layers-at-end-in-bf16@0.12:int=1 num-layers-at-start-in-bf16@0.12:int=1
offload-modules@0.16+ optimizer-cpu-offload@0.12 optimizer-offload-fraction@0.12:float=1.0
outer-dp-sharding-strategy@0.16:{no_shard,optim}=no_shard output-logit-dtype@0.20:{bf16,fp32}
overlap-cpu-optimizer-d2h-h2d@0.12 perform-rl-step@0.15 qad-train-target:{base,mtp,both} rampup-batch-size#3int
relative-attention-num-buckets:int=32 rl-use-sequence-packing@0.15 sft@0.13 skip-train
softmax-type@0.15:{vanilla,off-by-one,learnable}=vanilla spec* te-precision-config-file@0.16:
torch-fsdp2-no-reshard-after-forward@0.13 use-torch-optimizer-for-cpu-offload@0.12 window-attn-skip-freq@0.15:pattern
window-size@0.15: yaml-cfg:
)";

// Options about data, logs, checkpoints, learning rates, initial weights, inference and other models.
constexpr std::string_view kWithoutUse = R"(
adam-beta1:float adam-beta2:float adam-eps:float adlr-autoresume adlr-autoresume-interval:int
allow-ambiguous-pad-tokens@0.16 app-tag-run-name: app-tag-run-version: apply-layernorm-1p apply-query-key-layer-scaling
apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm@0.16 async-ckpt-cpu-priority@0.17:int
async-ckpt-io-priority@0.17:int async-ckpt-use-cpu-shm@0.18 async-save async-strategy@0.17:{nvrx,mcore}
attention-softmax-in-fp32 auto-detect-ckpt-format batch-size:int bert-embedder-type:{megatron,huggingface} bert-load:
bert-no-binary-head biencoder-projection-dim:int biencoder-shared-query-context-model block-data-path:
cache-mla-latents@0.14 calc-ft-timeouts calculate-per-token-loss chat-template@0.18: check-for-large-grads@0.12
check-for-spiky-loss check-weight-hash-across-dp-replicas-interval:int ckpt-assume-constant-structure
ckpt-convert-format:{torch,torch_dist} ckpt-convert-save: ckpt-convert-update-legacy-dist-opt-format
ckpt-drop-redundant-extra-state@0.20 ckpt-fully-parallel-load
ckpt-fully-parallel-load-exchange-algo@0.17:{broadcast,gather_rounds,gather_object}
ckpt-fully-parallel-load-per-rank-objects@0.20 ckpt-fully-parallel-load-process-group@0.17:{dp,ep_dp}
ckpt-fully-parallel-save ckpt-fully-parallel-save-process-group@0.17:{dp,ep_dp} ckpt-pg-tensors-cache-create@0.20
ckpt-pg-tensors-cache-path@0.20: ckpt-step:int classes-fraction:float clip-grad:float config-logger-dir:
cuda-graph-warmup-steps:int data-args-path: data-cache-path: data-parallel-random-init data-path*
data-per-class-fraction:float dataloader-defer-npy-index-mmap@0.16 dataloader-fast-cache-load@0.16
dataloader-type:{single,cyclic,external} ddp-average-in-collective decode-only-cuda-graphs@0.15 decoder-num-layers:int
decoder-seq-length:int decoupled-lr:float decoupled-min-lr:float decrease-batch-size-if-needed dino-bottleneck-size:int
dino-freeze-last-layer:float dino-head-hidden-size:int dino-local-crops-number:int dino-local-img-size:int
dino-norm-last-layer dino-teacher-temp:float dino-warmup-teacher-temp:float dino-warmup-teacher-temp-epochs:int
disable-ckpt-load-validate-sharding-integrity@0.18 disable-clone-scatter-output-in-embedding@0.16
disable-dsa-indexer-rotate-activation@0.19 disable-dsa-indexer-scoring-relu@0.19
disable-flight-recorder-dump-on-timeout@0.17 disable-flight-recorder-extra-dump-on-exec@0.17
disable-flight-recorder-include-only-active@0.17 disable-gloo-process-groups@0.12
disable-log-loss-scale-to-tensorboard@0.16 disable-manual-gc-eval@0.16 disable-msc@0.13
disable-save-tokenizer-assets@0.20 disable-straggler-on-startup disable-strict-fsdp-dtensor-load@0.16
disable-tokenizer-sentencepiece-ignore-extra-whitespaces@0.18 disable-use-tokenizer-model-from-checkpoint-args@0.16
dist-ckpt-format: dist-ckpt-optim-fully-reshardable@0.15 dist-ckpt-save-pre-mcore-014@0.15
dist-ckpt-strictness:{assume_ok_unexpected,log_unexpected,log_all,raise_unexpected,raise_all,return_unexpected,return_all,ignore_all}
dist-ckpt-workers@0.17:int distrib-optim-fully-reshardable-mem-efficient@0.15 distributed-backend:{nccl,gloo}
distributed-timeout-minutes:int distributed-timeout-seconds-after-init@0.15:int dump-param-to-param-group-map@0.16:
embedding-init-method-std@0.14:float embedding-path: empty-unused-memory-level:{0,1,2} enable-chunked-prefill@0.16
enable-experimental@0.13 enable-ft-package enable-gpt-oss enable-msc@0.18 encoder-num-layers:int encoder-seq-length:int
end-weight-decay:float eod-mask-loss error-injection-rate:int
error-injection-type:{correct_result,transient_error,persistent_error} eval-global-batch-size@0.18:int
eval-interval:int eval-iters:int eval-micro-batch-size@0.18:int evidence-data-path: exit-duration-in-mins:int
exit-interval:int exit-on-missing-checkpoint
exit-signal@0.16:{SIGHUP,SIGINT,SIGQUIT,SIGILL,SIGTRAP,SIGABRT,SIGBUS,SIGFPE,SIGKILL,SIGUSR1,SIGSEGV,SIGUSR2,SIGPIPE,SIGALRM,SIGTERM,SIGSTKFLT,SIGCHLD,SIGCONT,SIGSTOP,SIGTSTP,SIGTTIN,SIGTTOU,SIGURG,SIGXCPU,SIGXFSZ,SIGVTALRM,SIGPROF,SIGWINCH,SIGIO,SIGPWR,SIGSYS,SIGRTMIN,SIGRTMAX}
exit-signal-handler exit-signal-handler-for-dataloader@0.16 exit-signal-handler-for-training@0.17
export-default-te-spec export-kd-teacher-ckpt-format: export-kd-teacher-model-config: export-kv-cache-quant:
export-legacy-megatron export-model-type:{GPTModel,HybridModel,MambaModel}=GPTModel export-moe-apply-probs-on-input
export-offline-model export-te-mcore-model fake-process-group@0.16 fault-injector-delay-start-iteration@0.18:int
fault-injector-fault-delay@0.18:float fault-injector-fault-probabilities@0.18: fault-injector-fault-types@0.18:
fault-injector-mtti-seconds@0.18:float fault-injector-num-ranks@0.18:int fault-injector-offset-seconds@0.18:float
fault-injector-ranks@0.18: fault-injector-seed@0.18:int fim-data@0.16 fim-eod-token@0.16: fim-fragment-rate@0.16:float
fim-middle-token@0.16: fim-no-prefix@0.16: fim-pad-token@0.16: fim-prefix-token@0.16: fim-rate@0.16:float
fim-split-sample@0.16: fim-spm-rate@0.16:float fim-suffix-token@0.16: finetune finetune-data-files+
finetune-data-split: finetune-hf-dataset: flash-decode flight-recorder-dump-path@0.17:
flight-recorder-include-stack-trace@0.17 flight-recorder-trace-buffer-size@0.17:int
fp8-amax-compute-algo:{most_recent,max} fp8-interval:int fp8-margin:int fsdp-db-use-persist-buf-on-alloc-fail@0.19
fsdp-manual-registration@0.16 ft-num-warmup-iters@0.16:int full-validation@0.14 glu-linear-offset@0.15:float
gpu-sniff-test-interval@0.18:int grpo-clamp-eps-lower@0.15:float grpo-clamp-eps-upper@0.15:float
grpo-entropy-term-weight@0.15:float grpo-filter-groups-with-same-reward@0.15 grpo-group-size@0.15:int
grpo-iterations@0.15:int grpo-kl-beta@0.15:float grpo-prompts-per-step@0.15:int head-lr-mult:float hysteresis:int
ict-head-size:int ict-load: img-h:int img-w:int indexer-batch-size:int indexer-log-interval:int
inference-batch-times-seqlen-threshold:int inference-coordinator-port@0.16:int inference-cuda-graph-all-prefills@0.18
inference-cuda-graph-max-tokens@0.19:int inference-cuda-graph-scope@0.18:{none,layer,block}
inference-disable-ep-consensus@0.18 inference-disable-triton-nvls-kernels@0.17 inference-dynamic-batching@0.12
inference-dynamic-batching-async-sched-mode@0.19:{legacy,async} inference-dynamic-batching-block-size@0.15:int
inference-dynamic-batching-buffer-size-gb@0.12:float inference-dynamic-batching-cuda-graph-mixed-prefill-count@0.16:int
inference-dynamic-batching-cuda-graph-sizing-distribution@0.19:{exponential,linear}
inference-dynamic-batching-logprobs-mode@0.19:{raw_logprobs,processed_logprobs}
inference-dynamic-batching-mamba-memory-ratio@0.17:float inference-dynamic-batching-max-requests@0.16:int
inference-dynamic-batching-max-tokens@0.16:int inference-dynamic-batching-num-cuda-graphs@0.14:int
inference-dynamic-batching-paused-buffer-size-gb@0.16:float inference-dynamic-batching-prefix-caching@0.17
inference-dynamic-batching-prefix-caching-coordinator-policy@0.17:{longest_prefix,first_prefix_block,load_balanced@0.19}
inference-dynamic-batching-prefix-caching-eviction-policy@0.17:{ref_zero,lru}
inference-dynamic-batching-prefix-caching-mamba-gb@0.17:float
inference-dynamic-batching-prefix-caching-routing-alpha@0.17:float
inference-dynamic-batching-sampling-backend@0.18:{torch,flashinfer}
inference-dynamic-batching-track-generated-token-events@0.17
inference-dynamic-batching-track-paused-request-events@0.15 inference-dynamic-batching-unified-memory-level@0.15:{0,1}
inference-fuse-tp-communication@0.16 inference-grouped-gemm-backend@0.17:{flashinfer@0.18,torch,vllm@0.18}
inference-logging-step-interval@0.16:int inference-max-requests@0.12:int inference-max-seq-length:int
inference-moe-disable-fused-quant-kernels@0.17 inference-moe-token-dispatcher-type@0.18:{nccl,nvls}
inference-rng-tracker inference-shards@0.19: inference-text-gen-server-logging@0.17
inference-use-synchronous-zmq-collectives@0.17 inference-wandb-logging@0.16 init-method-std:float
init-method-xavier-uniform init-model-with-meta-device@0.12 initial-loss-scale:float
inprocess-active-world-size@0.13:int inprocess-barrier-timeout@0.13:float inprocess-completion-timeout@0.13:float
inprocess-empty-cuda-cache@0.13 inprocess-granularity@0.13:{node,rank} inprocess-hard-timeout@0.13:float
inprocess-heartbeat-interval@0.13:float inprocess-heartbeat-timeout@0.13:float inprocess-last-call-wait@0.13:float
inprocess-max-iterations@0.13:int inprocess-monitor-process-interval@0.13:float
inprocess-monitor-thread-interval@0.13:float inprocess-progress-watchdog-interval@0.13:float inprocess-restart@0.13
inprocess-soft-timeout@0.13:float inprocess-termination-grace-time@0.13:float iter-per-epoch:int
iterations-to-skip@0.12+int langrl-env-config@0.15: lazy-mpu-init lion-beta1@0.17:float lion-beta2@0.17:float load:
load-main-params-from-ckpt@0.14 local-rank:int log-device-memory-used@0.16 log-energy@0.13 log-interval:int
log-max-attention-logit@0.16 log-memory-interval@0.16:int log-memory-to-tensorboard log-num-zeros-in-grad
log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard
log-world-size-to-tensorboard logging-level:int logits-load-decode-threads@0.19:int logits-load-dir@0.19:
logits-load-ignore-errors@0.19 logits-load-kd-loss-alpha@0.19:float logits-load-msc-prefetch-depth@0.19:int
logits-load-prefetch-factor@0.19:int logits-save-dir@0.19: logits-save-dtype@0.19:{fp16,bf16,fp32}
logits-save-top-k@0.19:int logits-save-top-p@0.19:float logits-save-top-p-min-k@0.19:int loss-scale:float
loss-scale-window:float lr:float lr-decay-iters:int lr-decay-samples:int
lr-decay-style:{constant,linear,cosine,inverse-square-root,WSD} lr-warmup-fraction:float lr-warmup-init:float
lr-warmup-iters:int lr-warmup-samples:int lr-wsd-decay-iters:int lr-wsd-decay-samples:int
lr-wsd-decay-style:{exponential,linear,cosine,minus_sqrt@0.13} manual-gc manual-gc-interval:int mask-factor:float
mask-prob:float mask-type:{random,row} max-tokens-to-oom:int memory-snapshot-path: merge-file:
mid-level-dataset-surplus@0.13:float min-loss-scale:float min-lr:float mlp-chunks-for-prefill@0.13:int mock-data
model-parallel-size:int modelopt-enabled moe-aux-loss-coeff+float moe-enable-routing-replay@0.16
moe-input-jitter-eps:float moe-mlp-glu-interleave-size@0.18:int moe-pad-experts-for-cuda-graph-inference@0.15
moe-per-layer-logging moe-permute-fusion moe-permute-fusion-into-hybridep@0.18 moe-router-bias-update-rate:float
moe-router-dtype@0.12:{fp32,fp64} moe-router-enable-expert-bias moe-router-fusion@0.14 moe-router-pre-softmax
moe-router-quantile-balancing-ema@0.19:float moe-router-score-function:{softmax,sigmoid,sqrtsoftplus@0.18}
moe-router-topk-scaling-factor:float moe-routing-trace-capture-hidden-states@0.19 moe-routing-trace-capture-logits@0.19
moe-routing-trace-dump-weights@0.19 moe-routing-trace-max-training-iters@0.19:int moe-routing-trace-path@0.19:
moe-shared-expert-glu-interleave-size@0.19:int moe-upcycling-granularity@0.13:int moe-use-upcycling
moe-z-loss-coeff:float mrope-section@0.12+int mscale:float mscale-all-dim:float mtp-hybrid-override-pattern@0.17:
mtp-loss-scaling-factor@0.12:float multiple-validation-sets@0.14 mup-attn-scale-power@0.17:float
mup-base-head-dim@0.17:float mup-base-hidden-size@0.17:int mup-embedding-mult@0.17:float mup-output-mult@0.17:float
mup-width-mult@0.17:float nccl-all-reduce-for-prefill@0.13 no-barrier-with-level-1-timing
no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity@0.18
no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding
no-dsa-indexer-rotate-activation@0.19 no-dsa-indexer-scoring-relu@0.19 no-flight-recorder-dump-on-timeout@0.17
no-flight-recorder-extra-dump-on-exec@0.17 no-flight-recorder-include-only-active@0.17
no-inference-disable-ep-consensus@0.18 no-inference-dynamic-batching-prefix-caching@0.17
no-inference-text-gen-server-logging@0.17 no-inference-use-synchronous-zmq-collectives@0.17
no-inference-wandb-logging@0.16 no-initialization no-load-optim no-load-rng no-log-loss-scale-to-tensorboard
no-manual-gc-eval no-mmap-bin-files no-one-logger no-rl-inference-logprobs-is-correction@0.15
no-rl-offload-inference-model-weights-when-idle@0.16 no-rl-partial-rollouts@0.15 no-rl-persist-cuda-graphs@0.17
no-rl-skip-bos-token@0.16 no-rl-training-cuda-graphs@0.16 no-rl-use-sequence-packing@0.16
no-rl-verify-model-weights-swap@0.16 no-save-optim no-save-rng no-save-tokenizer-assets@0.20
no-strict-fsdp-dtensor-load@0.14 no-tokenizer-sentencepiece-ignore-extra-whitespaces@0.18
no-use-layer-wise-param-layout@0.18 no-use-tokenizer-model-from-checkpoint-args
no-weight-decay-cond-type@0.16:{apply_wd_to_qk_layernorm} no-yarn-correction-range-round-to-int@0.19
non-persistent-ckpt-type:{global,local,in_memory} non-persistent-global-ckpt-dir:
non-persistent-local-ckpt-algo:{fully_parallel,atomic} non-persistent-local-ckpt-dir: non-persistent-save-interval:int
norm-epsilon:float null-tokenizer-eod-id@0.18:int null-tokenizer-pad-id@0.18:int num-channels:int num-classes:int
num-dataset-builder-threads:int num-speculative-tokens@0.17:int num-workers:int nvtx-ranges@0.18
object-storage-cache-path@0.13: one-logger-async one-logger-project: one-logger-run-name: onnx-safe: openai-gelu
optimizer-cuda-graph@0.17 otel-enabled@0.20 otel-service-name@0.20: otel-span-groups@0.20: output-bert-embeddings
override-ckpt-iteration@0.19:int override-opt-param-scheduler@0.15 override-opt_param-scheduler patch-dim:int
per-dataset-sequences-path@0.16: per-split-data-args-path: persistent-save-interval:int
phase-transition-iterations@0.16: pretrained-checkpoint: profile profile-ranks+int profile-step-end:int
profile-step-start:int pytorch-profiler-collect-callstack@0.17 pytorch-profiler-collect-chakra@0.17
pytorch-profiler-collect-shapes@0.17 qk-clip@0.16 qk-clip-alpha@0.16:float qk-clip-threshold@0.16:float
query-in-block-prob:float record-memory-history record-shapes@0.18 refit-method@0.16:{nccl,gloo,nvshmem}
relative-attention-max-distance:int replication replication-factor:int replication-jump:int
rerun-mode:{disabled,validate_results,report_stats} reset-attention-mask reset-position-ids
result-rejected-tracker-filename@0.12: retriever-report-topk-accuracies+int retriever-score-scaling
rl-consumption-granularity@0.19:{R,G,B} rl-default-temperature@0.16:float rl-default-top-k@0.16:int
rl-default-top-p@0.16:float rl-durable-rollout-bank@0.20 rl-generation-lag@0.19:float
rl-importance-sampling-truncation-coef@0.15:float rl-inference-expert-model-parallel-size@0.16:int
rl-inference-expert-tensor-model-parallel-size@0.16:int rl-inference-logprobs-is-correction@0.15
rl-inference-model-unified-memory-level@0.16:{0,1} rl-inference-parsers@0.17*
rl-inference-pipeline-model-parallel-size@0.16:int rl-inference-tensor-model-parallel-size@0.16:int
rl-kv-cache-management-mode@0.17:{persist,offload,recompute} rl-max-inflight-requests@0.20:int
rl-offload-inference-model-weights-when-idle@0.16 rl-offload-optimizer-during-inference@0.15 rl-partial-rollouts@0.15
rl-persist-cuda-graphs@0.17 rl-profile@0.19 rl-profile-dir@0.19: rl-prompts-per-eval@0.15:int rl-rollout-bank-dir@0.20:
rl-rollout-bank-max-bytes@0.20:int rl-sequence-packing-algo@0.15:{fifo,round-robin}
rl-sequence-packing-max-sequences-per-bin@0.16:int rl-skip-bos-token@0.16 rl-submission-granularity@0.19:{R,G,B}
rl-training-cuda-graphs@0.16 rl-verify-model-weights-swap@0.16 rope-scaling-factor:float rope-type@0.14:{rope,yarn}
rotary-base:int rotary-interleaved rotary-percent:float rotary-scaling-factor:float
rotary-seq-len-interpolation-factor:int run-workload-inspector-server@0.12 sample-rate:float save:
save-activations-interval@0.18:int save-dgrads-interval@0.16:int save-interval:int save-params-interval@0.18:int
save-retain-interval@0.14:int save-tokens-per-expert-interval@0.18:int save-wgrads-interval@0.16:int seed:int
sft-tokenizer-prompt-format@0.13: sgd-momentum:float short-seq-prob:float split: start-eval-at-iter@0.18:int
start-weight-decay:float straggler-ctrlr-port:int straggler-minmax-count:int suggested-communication-unit-size@0.12:int
swin-backbone-type:{tiny,base,h3} te-rng-tracker tensorboard-dir: tensorboard-log-interval:int
tensorboard-queue-size:int test-data-path* test-mode tiktoken-num-special-tokens:int tiktoken-pattern:{v1,v2}
timing-log-level:{0,1,2} timing-log-option:{max,minmax,all} titles-data-path:
tokenizer-hf-no-include-special-tokens@0.17 tokenizer-hf-no-use-fast@0.17 tokenizer-metadata@0.15: tokenizer-model:
tokenizer-sentencepiece-legacy@0.16 tokenizer-special-tokens@0.16+
tokenizer-type:{BertWordPieceLowerCase,BertWordPieceCase,GPT2BPETokenizer,SentencePieceTokenizer,GPTSentencePieceTokenizer,HuggingFaceTokenizer,Llama2Tokenizer,TikTokenizer,MultimodalTokenizer,NullTokenizer,NullMultimodalTokenizer@0.12,SFTTokenizer@0.13}
train-data-path* train-iters:int train-samples:int train-sync-interval:int
transformer-impl:{local,transformer_engine,inference_optimized@0.16} trust-remote-code@0.15 use-checkpoint-args
use-checkpoint-opt-param-scheduler@0.15 use-checkpoint-opt_param-scheduler use-cpu-initialization use-dist-ckpt
use-flash-attn use-gigatoken@0.20 use-legacy-static-engine@0.16 use-mcore-models use-mp-args-from-checkpoint-args
use-mup@0.17 use-one-sent-docs use-persistent-ckpt-worker@0.12 use-pytorch-profiler use-rope-scaling
use-same-sampling-seed-across-dp-ranks@0.19 valid-data-path* validation-set-names@0.18+ verify-integrity@0.18
vision-backbone-type:{vit,mit,swin} vision-pretraining vision-pretraining-type:{classify,inpaint,dino}
vocab-extra-ids:int vocab-file: wandb-entity@0.15: wandb-exp-name: wandb-project: wandb-save-dir: warmup:int
weight-decay:float weight-decay-incr-style:{constant,linear,cosine} yarn-beta-fast@0.19:float yarn-beta-slow@0.19:float
yarn-correction-range-round-to-int@0.19 yarn-original-max-position-embeddings@0.19:int
)";

// Options that Megatron-LM 0.20 does not have: of older versions, of Megatron-DeepSpeed and of other forks.
constexpr std::string_view kOlderFields = R"(
DDP-impl: deepspeed deepspeed-activation-checkpointing pad-vocab-size-to: use-custom-fsdp@0.12-0.13 zero-stage:
)";
constexpr std::string_view kOlderUnmodeled = R"(
activations-checkpoint-method: activations-checkpoint-num-layers: checkpoint-in-cpu checkpoint-num-layers:
cpu-optimizer deepspeed-config: deepspeed_config: delay-grad-reduce delay-param-gather@-0.8
disable-async-tensor-model-parallel-allreduce@0.16-0.16 distribute-checkpointed-activations
ds-sequence-parallel-fpdt-chunk-size: ds-sequence-parallel-fpdt-offloading ds-sequence-parallel-size: embed-layernorm
enable-hyper-connections enable-zbh1-pipeline enable-zero-bubble encoder-pipeline-model-parallel-size@-0.13:
encoder-tensor-model-parallel-size@-0.13: ffn_hidden_size: fp32-allreduce fp8-e4m3 fp8-hybrid glu-activation
hidden-size-teacher: hybrid-attention-ratio@-0.16: hybrid-mlp-ratio@-0.16: interleave-group-size: kd kd-beta-ce:
keep-fp8-transpose-cache-when-using-custom-fsdp@0.12-0.13 kitchen-config-file@0.13-0.15:
kitchen-recipe-number@0.13-0.15: memory-centric-tiled-linear moe-expert-parallel-size: moe-extended-tp@-0.16
moe-ncclep-static-shape@0.19-0.19 moe-use-legacy-grouped-gemm@-0.16 mos muon-use-nesterov@0.16-0.17
no-async-tensor-model-parallel-allreduce@-0.16 no-contiguous-buffers-in-local-ddp no-delay-grad-reduce@-0.8
no-delay-param-gather no-scaled-masked-softmax-fusion no-scatter-gather-tensors-in-pipeline@-0.17
num-attention-heads-teacher: num-experts-teacher+ num-layers-teacher: num-residual-streams: num-unique-layers:
partition-activations pipeline-model-parallel-split-rank@-0.13: pp-partition-method: retro-add-retriever@-0.15
scatter-gather-tensors-in-pipeline use-contiguous-buffers-in-local-ddp zero-allgather-bucket-size:
zero-bubble-v-schedule zero-reduce-bucket-size:
)";
constexpr std::string_view kOlderWithoutUse = R"(
abort-on-unmet-fused-kernel-constraints activations-checkpoint-granularity: context-parallel-algo:
contigious-checkpointing cpu_torch_adam create-moe-param-group curriculum-learning data-impl: deepscale
deepscale_config: deepspeed_mpi disable-chunked-prefill@0.15-0.16 disable-ckpt-fully-parallel-save@0.16-0.16
disable-stream-ckpt-dequant@0.19-0.19 ds-inference ds-sequence-parallel-fpdt enable-exactly-numeric-match
enable-one-logger enable-optimizer-post-validation enable-zbh1-exact-semantics expert-interval:
force-ds-sequence-parallel grpo-default-temperature@0.15-0.15: grpo-default-top-p@0.15-0.15:
inference-dynamic-batching-buffer-guaranteed-fraction@0.12-0.15:
inference-dynamic-batching-buffer-overflow-factor@0.12-0.15: inference-dynamic-batching-chunk-size@0.13-0.14:
inference-dynamic-batching-cuda-graph-max-tokens@0.16-0.17: inference-dynamic-batching-max-requests-override@0.12-0.15:
inference-dynamic-batching-max-tokens-override@0.12-0.15: inference-max-batch-size@0.15-0.16: kill-switch-path:
langrl-external-server@0.15-0.16 langrl-inference-server-conversation-template@0.15-0.16:
langrl-inference-server-type@0.15-0.16: legacy-tokenizer@0.15-0.16 load-model-opt-format@0.13-0.14 load-teacher:
log-batch-size-to-tensorboard@-0.8 log-learning-rate-to-tensorboard log-optimizer-states-to-tensorboard
lr-decay-tokens: lr-warmup-tokens: mlp-type: moe-eval-capacity-factor: moe-loss-coeff: moe-min-capacity:
moe-token-dropping moe-train-capacity-factor: no-langrl-external-server@0.15-0.16 no-load-lr-state
no-log-learnig-rate-to-tensorboard@-0.8 no-log-learning-rate-to-tensorboard no-pipeline-parallel
no-query-key-layer-scaling no-rl-calculate-intra-group-similarity@0.15-0.15
no-rl-offload-kv-cache-during-training@0.15-0.16 no-rl-remove-kv-cache-during-training@0.15-0.16
no-rl-reset-cuda-graphs@0.15-0.16 no-stream-ckpt-dequant@0.19-0.19 num-key-value-heads: one-logger-entity:
param-sharing-style: profile-backward remote-device-cpu retriever-seq-length@-0.15: retro-attention-gate@-0.15:
retro-cyclic-train-iters@-0.15: retro-encoder-attention-dropout@-0.15: retro-encoder-hidden-dropout@-0.15:
retro-encoder-layers@-0.15: retro-no-verify-neighbor-count@-0.15 retro-num-neighbors@-0.15:
retro-num-retrieved-chunks@-0.15: retro-project-dir@-0.15: retro-workdir: reweight-loss-based-on-position-frequency
rl-calculate-intra-group-similarity@0.15-0.15 rl-generation-batch-size@0.17-0.18:
rl-num-parallel-generation-batches@0.17-0.18: rl-num-parallel-generations@0.17-0.18:
rl-offload-kv-cache-during-training@0.15-0.16 rl-parallel-generation-tasks@0.16-0.18:
rl-remove-kv-cache-during-training@0.15-0.16 rl-reset-cuda-graphs@0.15-0.16 rl-sequence-packing-bin-size@0.15-0.15:
rope-theta: rotary-position-embeddings-theta: s3-cache-path@-0.12: skip-train-iteration-range+ skip-warmup
sync-tp-duplicated-parameters synchronize-each-layer test-weighted-split-paths+ test-weighted-split-paths-path:
tiktoken-special-tokens@-0.17+ tile-factor: tokenizer-hf-include-special-tokens@0.16-0.17
tokenizer-hf-use-fast@0.16-0.17 tokenizer-name-or-path: topk: train-tokens: train-weighted-split-paths+
train-weighted-split-paths-path: universal-checkpoint use-flash-attn-triton use-flash-attn-v2 use-legacy-models@-0.17
use-pin-memory valid-num-workers: valid-weighted-split-paths+ valid-weighted-split-paths-path:
zero-bubble-interleaved-schedule zero-bubble-max-pending-backward: zero-bubble-pipeline-timers-end-iter:
zero-bubble-pipeline-timers-start-iter: zero-contigious-gradients zero-reduce-scatter
)";

// Options of torchrun, torch.distributed.launch and deepspeed, which a script has before the name of the program.
constexpr std::string_view kLaunchers = R"(
local-addr: local-ranks-filter: local_addr: local_ranks_filter: log-dir: log_dir: master-addr: master-port:
master_addr: master_port: max-restarts: max_restarts: module monitor-interval: monitor_interval: nnodes: no-python
no_python node-rank: node_rank: nproc-per-node: nproc_per_node: num_gpus: num_nodes: rdzv-backend: rdzv-conf:
rdzv-endpoint: rdzv-id: rdzv_backend: rdzv_conf: rdzv_endpoint: rdzv_id: redirects: role: run-path run_path
standalone start-method: start_method: tee: use-env use_env
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
