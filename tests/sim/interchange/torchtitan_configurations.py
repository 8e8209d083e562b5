# Functions that make configurations of torchtitan's main branch (2026-08-21), written for round_trip_test.cpp, which
# reads them without running them. Each line of round_trip_cases.txt for torchtitan-python names one.

from torchtitan.components.loss import ChunkedLossWrapper, CrossEntropyLoss
from torchtitan.components.optimizer import default_adamw
from torchtitan.components.quantization import (
    Float8GroupedExpertsConverter,
    Float8LinearConverter,
    MXFP8LinearConverter,
    NVFP4LinearConverter,
)
from torchtitan.config import CompileConfig, ParallelismConfig, TrainingConfig
from torchtitan.distributed.activation_checkpoint import FullAC, SelectiveAC
from torchtitan.models import deepseek_v3, llama3, qwen3
from torchtitan.models.common.config_utils import decoder_vocab_size
from torchtitan.models.llama3.config_registry import llama3_405b, llama3_70b
from torchtitan.trainer import Trainer

SEQUENCE = 8 * 1024


def llama3_8b_divided() -> Trainer.Config:
    """Weights divided over all replicas, and operations recomputed."""
    model_spec = llama3.model_registry("8B")
    return Trainer.Config(
        loss=ChunkedLossWrapper.Config(
            loss_fn=CrossEntropyLoss.Config(global_vocab_size=decoder_vocab_size(model_spec)),
        ),
        model_spec=model_spec,
        optimizer=default_adamw(lr=3e-4),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=2 * SEQUENCE,
            max_context_length=SEQUENCE,
            steps=1_000,
        ),
        activation_checkpoint=SelectiveAC.Config(),
    )


def llama3_8b_long() -> Trainer.Config:
    config = llama3_8b_divided()
    config.model_spec = llama3.model_registry("8B", attn_backend="flex")
    config.training.max_context_length = 131072
    config.training.num_tokens_per_microbatch_per_dp_rank = 131072
    config.parallelism = ParallelismConfig(context_parallel_degree=8)
    config.activation_checkpoint = FullAC.Config()
    return config


def llama3_8b_mxfp8() -> Trainer.Config:
    config = llama3_8b_divided()
    config.compile = CompileConfig(enable=True, components=["model"])
    config.model_spec = llama3.model_registry(
        "8B", converters=[MXFP8LinearConverter.Config(model_compile_enabled=True)]
    )
    config.activation_checkpoint = None
    return config


def llama3_8b_nvfp4() -> Trainer.Config:
    config = llama3_8b_mxfp8()
    compiles = config.compile.enable and "model" in config.compile.components
    config.model_spec = llama3.model_registry(
        "8B",
        converters=[
            NVFP4LinearConverter.Config(fqns=["layers"], model_compile_enabled=compiles),
        ],
    )
    return config


def llama3_70b_hybrid() -> Trainer.Config:
    """Two copies of the weights, each divided by four."""
    config = llama3_70b()
    config.parallelism.data_parallel_replicate_degree = 2
    config.parallelism.data_parallel_shard_degree = 4
    config.training.num_tokens_per_microbatch_per_dp_rank = 2 * SEQUENCE
    config.training.num_tokens_per_train_step = 64 * SEQUENCE
    return config


def llama3_70b_whole_rows() -> Trainer.Config:
    config = llama3_70b()
    config.parallelism.enable_sequence_parallel = False
    config.training.num_tokens_per_microbatch_per_dp_rank = SEQUENCE
    return config


def llama3_70b_pipeline(schedule: str = "Interleaved1F1B") -> Trainer.Config:
    return Trainer.Config(
        model_spec=llama3.model_registry("70B"),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=SEQUENCE,
            max_context_length=SEQUENCE,
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(
            tensor_parallel_degree=4,
            pipeline_parallel_degree=4,
            pipeline_parallel_layers_per_stage=11,
            pipeline_parallel_schedule=schedule,
            num_pp_microbatches=16,
        ),
        activation_checkpoint=FullAC.Config(),
    )


def llama3_70b_zero_bubble() -> Trainer.Config:
    config = llama3_70b_pipeline(schedule="InterleavedZeroBubble")
    config.compile.enable = True
    return config


def llama3_70b_one_by_one() -> Trainer.Config:
    config = llama3_70b_pipeline("1F1B")
    config.parallelism.pipeline_parallel_layers_per_stage = None
    return config


def llama3_70b_both_ways() -> Trainer.Config:
    config = llama3_70b_pipeline("DualPipeV")
    parallelism = config.parallelism
    parallelism.pipeline_parallel_layers_per_stage = None
    parallelism.tensor_parallel_degree = 2
    return config


def llama3_405b_float8() -> Trainer.Config:
    config = llama3_405b()
    config.training.num_tokens_per_microbatch_per_dp_rank = SEQUENCE
    config.training.disable_cuda_graphs = True
    config.parallelism = ParallelismConfig(
        tensor_parallel_degree=8,
        pipeline_parallel_degree=8,
        pipeline_parallel_schedule="Interleaved1F1B",
        num_pp_microbatches=32,
        fsdp_reshard_after_forward="never",
    )
    return config


def qwen3_30b_a3b_graphs() -> Trainer.Config:
    """Experts that exchange rows within CUDA graphs."""
    return Trainer.Config(
        model_spec=qwen3.model_registry("30B-A3B", moe_comm_backend="minimal_async_ep"),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=4 * 4096, max_context_length=4096
        ),
        parallelism=ParallelismConfig(expert_parallel_degree=8),
        activation_checkpoint=None,
    )


def deepseek_v3_671b_float8() -> Trainer.Config:
    compile_config = CompileConfig(enable=True, components=["loss"])
    converters = [
        Float8LinearConverter.Config(filter_fqns=["lm_head", "router.gate"]),
        Float8GroupedExpertsConverter.Config(),
    ]
    return Trainer.Config(
        model_spec=deepseek_v3.model_registry(
            flavor="671B", moe_comm_backend="deepep", converters=converters
        ),
        training=TrainingConfig(
            num_tokens_per_microbatch_per_dp_rank=4 * 4096,
            max_context_length=4096,
            disable_cuda_graphs=True,
        ),
        parallelism=ParallelismConfig(expert_parallel_degree=64),
        activation_checkpoint=SelectiveAC.Config(),
        compile=compile_config,
    )
