-- spec/bench/reductions_times.lua: the times of reductions.sh here, beside those of PyTorch on
-- standard input.
local lt = require "ltrain"

local clock <const>, rounds = require("ltrain.c").runtime.clock, math.tointeger(arg[1])
local weight <const> = lt.randn(100000, 64)
local ids <const>, offsets = lt.randint(0, 100000, { 512, 32 }), lt.arange(0, 512 * 32, 32)
local factors <const>, leaf = lt.rand(512, 32), weight:clone():requires_grad_(true)
local matrix <const> = lt.randn(1000, 1000)

local CALLS <const> = {
  topk_10 = function() return matrix:topk(10) end,
  bag_sum = function() return lt.embedding_bag(weight, ids, { mode = "sum" }) end,
  bag_mean = function() return lt.embedding_bag(weight, ids) end,
  bag_offsets = function() return lt.embedding_bag(weight, ids:view(-1), { offsets = offsets }) end,
  bag_factors = function()
    return lt.embedding_bag(weight, ids, { mode = "sum", per_sample_weights = factors })
  end,
  bag_backward = function()
    leaf.grad = nil
    lt.embedding_bag(leaf, ids):sum():backward()
  end,
  fresh_200MB = function() return lt.ones(50000000) end,
}

-- sum_DIM_of_AxB...
local function of_name(name)
  local dim <const>, sizes = name:match "^sum_(%d)_of_(.*)$"
  if not dim then return CALLS[name] end
  local shape = {}
  for size in sizes:gmatch "%d+" do shape[#shape + 1] = math.tointeger(size) end
  local x <const> = lt.randn(shape)
  return function() return x:sum(math.tointeger(dim)) end
end

for line in io.lines() do
  local name, theirs = line:match("^(%S+) (%S+)$")
  local call <const> = of_name(name)
  local least = math.huge
  for _ = 1, rounds do
    collectgarbage()
    local start = clock()
    call()
    least = math.min(least, (clock() - start) * 1e3)
  end
  local text = "%-22s %8.3f ms, PyTorch %8.3f ms, ratio %.2f"
  print(text:format(name, least, theirs, least / theirs))
end
