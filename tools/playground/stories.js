// Examples that tell a story: a scenario, a few sentences, and steps to press, each of which changes the scenario of the
// story. A test runs every step: where it `makes` a sample faster or slower, that must be so.

const SLOW_LINK = `schema: scenario/2
title: GPT-2 small on two sites with a slow link between them
model: gpt2-small
cluster:
  generator: explicit
  types: {a100: {preset: a100-80}}
  devices:
    - {name: east0, type: a100}
    - {name: east1, type: a100}
    - {name: west0, type: a100}
    - {name: west1, type: a100}
  switches: [east, west]
  links:
    - {name: sites, between: [east, west], bandwidth: 1 Gbit/s, latency: 5 ms}
    - {name: east0-nvlink, between: [east0, east], bandwidth: 300 GB/s, latency: 1 us}
    - {name: east1-nvlink, between: [east1, east], bandwidth: 300 GB/s, latency: 1 us}
    - {name: west0-nvlink, between: [west0, west], bandwidth: 300 GB/s, latency: 1 us}
    - {name: west1-nvlink, between: [west1, west], bandwidth: 300 GB/s, latency: 1 us}
plan: {planner: balanced, stages: 4, replicas: 1, micro_batch_size: 2}
run: {schedule: 1f1b, micro_batches: 12}
software: none
`;

const STORIES = [
  {
    name: 'Why zero bubble?',
    text: 'Eight GPUs run one stage each. While the pipeline fills and drains, devices wait: the pale parts. Zero bubble (ZB-H1) splits each backward in two and moves the gradients of the weights, for which no one waits, into the gaps.',
    second: 'zb-h1',
    yaml: `schema: scenario/2
title: GPT-3 XL on eight H100, 1F1B against zero bubble
model: gpt-1.3b
cluster: hgx-h100-x2
software: none
plan: {planner: balanced, stages: 8, replicas: 1, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 8}
`,
    steps: [
      { press: '1F1B alone', options: [['second', '']], text: 'One schedule: the page says what limits it, and what would help.' },
      { press: 'ZB-H1 alone', options: [['second', ''], ['run.schedule', 'zb-h1']], makes: 'faster', text: 'The same work, with smaller gaps.' },
      { press: '32 micro-batches', options: [['run.micro_batches', '32']], makes: 'faster', text: 'More micro-batches fill the pipeline as well, if the batch may be larger.' },
    ],
  },
  {
    name: 'When tensor parallelism stops paying',
    text: 'Llama 3 8B on four nodes of eight H100. Tensor parallelism divides each layer, and every layer then waits for its group: cheap over NVLink, dear between nodes.',
    yaml: `schema: scenario/2
title: Llama 3 8B on 4 x 8 H100
model: llama-3-8b
cluster: {base: superpod-h100-256, override: {nodes: 4}}
software: megatron-no-overlap
plan: {planner: balanced, stages: 2, replicas: 8, group: {tensor: 2, sequence: true}, shard: optimizer, micro_batch_size: 1}
run: {schedule: 1f1b, global_batch: 128}
`,
    steps: [
      { press: 'tensor 4', options: [['plan.group.tensor', '4'], ['plan.replicas', '4']], makes: 'slower', text: 'The group stays in a node, but the collectives of every layer take longer than the work that they save.' },
      { press: 'tensor 8, still one node', options: [['plan.group.tensor', '8'], ['plan.replicas', '2']], makes: 'slower', text: 'The whole node is one group.' },
      { press: 'overlap them', options: [['software', 'megatron-bridge']], makes: 'faster', text: 'Megatron can run these collectives next to the products (--tp-comm-overlap).' },
    ],
  },
  {
    name: 'A slow link',
    text: 'Two sites with two GPUs each, and 1 Gbit/s between them. A pipeline sends only activations over the slow link, and the gradient of the embedding, which the first and the last stage share: most of the wait.',
    yaml: SLOW_LINK,
    steps: [
      { press: '100 Gbit/s', options: [['cluster.links[0].bandwidth', '100 Gbit/s']], makes: 'faster', text: 'What a faster link would be worth.' },
      { press: 'two replicas', options: [['plan.stages', '2'], ['plan.replicas', '2'], ['run.micro_batches', '6']], makes: 'slower', text: 'A copy of the model at each site: now all gradients cross the link.' },
      { press: 'stay in one site', options: [['plan.stages', '2']], makes: 'faster', text: 'Half of the GPUs, and no slow link.' },
    ],
  },
  {
    name: 'Stale weights',
    text: 'A pipeline that never drains has no bubble, but its updates come late: PipeDream-2BW computes with weights that are one update old. Whether that trains as well, stagecraft convergence measures.',
    second: '2bw',
    yaml: `schema: scenario/2
title: GPT-3 XL on sixteen H100, with and without draining
model: gpt-1.3b
cluster: hgx-h100-x2
software: none
plan: {planner: balanced, stages: 16, replicas: 1, micro_batch_size: 1}
run: {schedule: 1f1b, micro_batches: 16, iterations: 4}
`,
    steps: [
      { press: '2BW alone', options: [['second', ''], ['run.schedule', '2bw']], makes: 'faster', text: 'The second iteration begins before the first has ended; look at a device in the middle.' },
      { press: 'PipeDream', options: [['second', ''], ['run.schedule', 'pipedream']], makes: 'faster', text: 'An update after every micro-batch, and a copy of the weights for each one that is under way: look at the memory.' },
    ],
  },
  {
    name: 'Every control: a mixture of experts',
    text: 'Mixtral 8x7B on 32 of 128 H100, with tensor, expert and data parallelism, sharded states and a framework: every control has an effect, and there is room for larger groups.',
    yaml: `schema: scenario/2
title: Mixtral 8x7B on up to 128 H100
model: {base: mixtral-8x7b, override: {sequence: 4096}}
cluster: {base: superpod-h100-256, override: {nodes: 16}}
software: megatron-bridge
plan: {planner: balanced, stages: 4, replicas: 4, group: {tensor: 2, context: 1, expert: 4, sequence: true}, shard: optimizer, micro_batch_size: 1, recompute: none}
run: {schedule: 1f1b, micro_batches: 16}
`,
    steps: [
      { press: 'expert 8', options: [['plan.group.expert', '8']], text: 'One expert on each of eight devices.' },
      { press: 'recompute layers', options: [['plan.recompute', 'layers']], makes: 'slower', text: 'Less memory for activations, and a third forward.' },
      { press: 'no sharding', options: [['plan.shard', 'none']], text: 'Each replica keeps and updates all of the optimizer: look at the memory.' },
    ],
  },
];
