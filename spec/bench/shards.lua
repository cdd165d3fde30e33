-- spec/bench/shards.lua: a step of training and the memory of a rank under ddp and the three stages
-- of Sharded, beside PyTorch's DistributedDataParallel and fully_shard over gloo.
--
--   ./dev bench shards [ROUNDS] [MODEL] [RANKS]     3 rounds, gpt128_256 and gpt512, 2 and 4 ranks
--
-- All systems take turns; a time is the shortest of all rounds, for these machines are busy. Memory
-- is of tensors on rank 0, the most at once, beside what the formula says without activations.
local systems = require "spec.bench.systems"

systems("shards", { { "ddp", "ltrain", "ddp" }, { "stage 1", "ltrain", "1" },
  { "stage 2", "ltrain", "2" }, { "stage 3", "ltrain", "3" }, { "torch ddp", "torch", "ddp" },
  { "torch fully_shard", "torch", "fsdp" } })
