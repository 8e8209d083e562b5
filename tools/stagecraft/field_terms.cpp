// Words of frameworks and machines that no output has, such as GQA: what stands for them here, or what is nearest if
// they are not modeled; glossary.cpp looks them up. Comments in the table are headings of the glossary page.

#include "tools/stagecraft/explanation.hpp"

namespace stagecraft {
namespace {

constexpr GlossaryTerm kFieldTerms[] = {
    // Words of frameworks and machines.
    {"MBS|micro-batch size", "Samples of one micro-batch on one replica: plan.micro_batch_size."},
    {"GBS|global batch size", "Samples of an iteration over all replicas: run.global_batch."},
    {"GA|gradient accumulation",
     "Micro-batches of an iteration, whose gradients are summed before the update: run.micro_batches."},
    {"DDP", "Data parallelism with whole weights on each replica: plan.replicas with plan.shard: none."},
    {"FSDP2", "Replicas divide weights, gradients and the optimizer's state: plan.shard: weights."},
    {"ring attention", "Context parallelism that passes keys and values on in a ring: plan.group.context_type: p2p."},
    {"Ulysses", "Context parallelism that divides heads by all-to-alls: plan.group.context_type: a2a."},
    {"DeepEP|HybridEP", "One copy of a row for each node of its experts: plan.group.dispatcher: per_node."},
    {"async TP|asynchronous tensor parallelism|TP overlap",
     "Collectives of a tensor group run next to matrix products: software.overlap.tensor. The software stack has the "
     "share that is hidden: stagecraft explain software.overlap.tensor."},
    {"MLA|multi-head latent attention", "Keys and values are made from a short vector: model.latent."},
    {"GQA|MQA|grouped-query attention|multi-query attention",
     "Several heads of queries share one head of keys and values: model.key_value_heads; 1 is multi-query attention."},
    {"MHA|multi-head attention", "Each head of queries has its own keys and values: model.heads."},
    {"MTP|multi-token prediction", "Modules that predict one token further each: model.next_tokens."},
    {"RoPE|rotary positions", "Rotation of queries and keys by their position: model.positions: rotary."},
    {"SwiGLU", "Gated dense layers of three matrices: model.gated."},
    {"RMSNorm", "A norm with a scale and without an offset: model.norm: rms."},
    {"expert capacity|capacity factor|token dropping|expert dropping",
     "Rows of each expert over the mean, filled up or dropped: model.experts.capacity, in simulations. Real runs "
     "neither "
     "drop nor pad rows."},
    {"load balancing loss|auxiliary loss",
     "Its effect on the load is model.experts.imbalance; the loss itself takes no time here."},
    {"AC|SAC|gradient checkpointing|selective activation checkpointing",
     "Backward runs parts of the forward again in place of keeping their activations: plan.recompute."},
    {"FP8|MXFP8|FP4|NVFP4|FP4 training|FP8 training",
     "Number format of matrix products: run.precision, on devices with figures for it (stagecraft list devices)."},
    {"OOM|out of memory",
     "A plan that needs more memory than a device has is refused before it runs, with the changes that make it fit: "
     "stagecraft explain memory."},
    {"MTTR",
     "Time to restart after a failure: report.failures.restart; until the node is back: report.failures.repair."},
    {"checkpoint|checkpoints|saving checkpoints",
     "Time to save the state of a training: report.failures.checkpoint, for goodput. No iteration contains it. For "
     "activation checkpointing, see plan.recompute."},
    {"straggler|stragglers", "A device that is slower than it should be: cluster.changes, or cluster.jitter."},
    {"TGS|TPS|tokens per second", "The line `tokens` of a run: tokens per second of each device, and of all together."},
    {"SM|SMs|streaming multiprocessor|multiprocessor",
     "A part of a GPU that computes: `multiprocessors` of a file in topologies/devices, which the efficiency of small "
     "products depends on."},
    {"NIC|network card", "The link from a GPU or a node to the fabric: the entry `nic` of a cluster."},
    {"NVL|NVLink|NVSwitch", "The link between the GPUs of a node: the entry `nvlink` of a cluster."},
    {"IB|InfiniBand|RoCE", "Links between nodes: their bandwidth and latency in a cluster, such as cluster.links.nic."},
    {"HBM", "Memory of a device: `memory` and `memory_bandwidth` of its type in a cluster."},
    {"A2A", "All-to-all: each device sends a part to each other one, as the exchanges of experts do."},
    {"AR", "All-reduce: each device gets the sum of all, as for gradients."},
    {"RS", "Reduce-scatter: each device gets its part of the sum."},
    {"AG", "All-gather: each device gets the parts of all."},
    {"packed sequences|packing|sequence packing|document masking|document mask|variable sequence length|"
     "variable-length sequences|THD",
     "Sequences of different lengths that share a micro-batch, each of which attends to itself alone: `data.lengths` "
     "has "
     "their lengths, and `data.pack` how they become packs. `run.loads` lists packs instead."},
    {"offload|offloading|activation offload|activation offloading|CPU offload|CPU offloading|fine-grained activation "
     "offloading",
     "Activations in the memory of the host between their forward and their backward: plan.offload.activations, or "
     "plan.offload.modules for the inputs of single modules, with cluster.host. Copy engines move them next to "
     "computation."},
    {"optimizer offload|optimizer CPU offload|ZeRO-Offload",
     "The CPU updates weights whose optimizer states are in the memory of the host: plan.offload.optimizer, with "
     "cluster.host."},
    // Not modeled.
    {"ZeRO-Infinity|NVMe offload|weight streaming",
     "Not modeled: weights are in the memory of their devices. Nearest: plan.offload, which keeps activations and the "
     "optimizer's states in the memory of the host, and plan.shard: weights."},
    {"dynamic context parallelism|hybrid context parallelism|hierarchical context parallelism",
     "Not modeled: every sample is divided among the same number of devices. Nearest: plan.group.context."},
    {"KV cache|decode|decoding|prefill|speculative decoding|inference batching|continuous batching|serving",
     "Not modeled: a forward-only run computes each sample as a whole, without a cache of earlier tokens. Nearest: "
     "run.schedule: inference, which is a prefill."},
    {"CUDA graph|CUDA graphs|cudagraph",
     "Not modeled in simulations: a pass takes at least its number of kernels times the launch time of the device. "
     "Nearest: `launch` of the device type; real runs on cuda have run.gpu.graph."},
    {"host time|CPU overhead|host overhead|Python overhead",
     "Not modeled but for launches: a pass takes at least its number of kernels times the launch time of the device. "
     "Nearest: `launch` of the device type, or a profile with measured times."},
    {"data loading|data loader|dataloader|input pipeline|evaluation",
     "Not modeled: an iteration contains the forwards, backwards, messages and updates alone."},
    {"kernel fusion|torch.compile",
     "Not modeled as a choice: a software stack says which kernels there are. Nearest: software, or a profile with "
     "measured times."},
    {"fragmentation|allocator|workspace|workspaces|CUDA context",
     "Not modeled by plan. Nearest: `memory_reserve` of the device type, one amount that no plan may use."},
    {"expert replication|redundant experts|expert placement|EPLB",
     "Not modeled: experts are divided evenly, each has one place in a group. Nearest: model.experts.imbalance."},
    {"linear attention|Mamba|SSM|state space model|hybrid model",
     "Not modeled by a builder of its own. Nearest: model.builder: listed, with the amounts of each layer."},
    {"LoRA|PEFT|adapters|frozen weights",
     "Not modeled: every weight is trained. Nearest: model.builder: listed, with the amounts of each layer."},
    {"RLHF|RL|rollout|rollouts|GRPO",
     "Not modeled: a run trains, or computes forwards alone. Nearest: a scenario for each phase."},
    {"gradient compression|quantized gradients|PowerSGD|1-bit Adam",
     "Not modeled: gradients have the bytes that the software stack gives them. Nearest: software (stagecraft explain "
     "software)."},
    {"local SGD|DiLoCo", "Not modeled: replicas sum their gradients in every iteration. Nearest: run.micro_batches."},
    {"batch size warmup|batch size ramp-up|rampup batch size|sequence length warmup",
     "Not modeled: all iterations are equal. Nearest: a sweep over run.global_batch or model.sequence."},
    {"8-bit optimizer|low-precision optimizer|precision-aware optimizer",
     "Not modeled: moments and master weights have the bytes of the model's precision. Nearest: training.optimizer."},
    {"SHARP|in-network reduction",
     "Not modeled: devices sum, not switches. Nearest: `collectives` of a cluster, with "
     "measured times."},
    {"congestion|congestion control|packet loss|adaptive routing|incast",
     "Not modeled: messages share links ideally. Nearest: run.collectives: flows, and cluster.jitter."},
    {"thermal throttling|power capping|DVFS",
     "Not modeled: a device has one speed. Nearest: cluster.changes, which slows devices for a time."},
};

}  // namespace

std::span<const GlossaryTerm> field_terms() { return kFieldTerms; }

}  // namespace stagecraft
