#!/bin/bash
# Llama 3 70B on 256 H100.
MODEL=(
  --num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672
  --num-attention-heads 64 --group-query-attention --num-query-groups 8
  --seq-length 8192 --max-position-embeddings 8192 --vocab-size 128256
  --swiglu --normalization RMSNorm --position-embedding-type rope
  --disable-bias-linear --untie-embeddings-and-output-weights
  --attention-dropout 0 --hidden-dropout 0
)
PARALLEL=(
  --tensor-model-parallel-size 8 --sequence-parallel
  --pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 4
  --use-distributed-optimizer --overlap-grad-reduce --overlap-param-gather
)
TRAINING=(--bf16 --micro-batch-size 1 --global-batch-size 1024 --cross-entropy-loss-fusion)
torchrun --nproc-per-node 8 --nnodes 32 pretrain_gpt.py "${MODEL[@]}" "${PARALLEL[@]}" "${TRAINING[@]}"
