#!/bin/bash
# Llama 3 70B on 256 GPUs, in the form of the examples of Megatron-LM.
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=32
TP=8
PP=4
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr ${MASTER_ADDR:-localhost}
)
MODEL_ARGS=(
    --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
    --group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 8192
    --position-embedding-type rope --rotary-base 500000 --swiglu --normalization RMSNorm --norm-epsilon 1e-5
    --disable-bias-linear --untie-embeddings-and-output-weights --attention-dropout 0 --hidden-dropout 0
    --vocab-size 128256
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size $TP
    --sequence-parallel
    --pipeline-model-parallel-size $PP
    --num-virtual-stages-per-pipeline-rank 4
    --micro-batch-size 1
    --global-batch-size $((128 * GPUS_PER_NODE * NUM_NODES / (TP * PP)))
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
    --tp-comm-overlap
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${MODEL_ARGS[@]} \
    ${PARALLEL_ARGS[@]} \
    --bf16 --mock-data --tokenizer-type NullTokenizer --lr 1e-4 --train-iters 10 2>&1 | tee train.log
