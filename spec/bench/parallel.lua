-- spec/bench/parallel.lua: a step of training and the memory of a rank under tensor parallel,
-- beside PyTorch's parallelize_module over gloo. All ranks compute on one batch; under ddp each has
-- one.
--
--   ./dev bench parallel [ROUNDS] [MODEL] [RANKS]   3 rounds, gpt128_256 and gpt512, 2 and 4 ranks
--
-- All systems take turns; a time is the shortest of all rounds, for these machines are busy. Memory
-- is of tensors on rank 0, the most at once. Pipelines have a bench of their own (pipeline.lua).
local systems = require "spec.bench.systems"

systems("parallel", { { "tensor parallel", "ltrain", "tensor" }, { "ddp", "ltrain", "ddp" },
  { "torch tensor parallel", "torch", "tensor" } })
