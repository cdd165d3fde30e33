--- stdlib/trainer/logged/predictions.lua: what predict_step returned, in the order of the data.
--
-- The ranks send theirs to rank 0 in portions, so that no other rank holds more than one. What is
-- kept is kept in short lists: a young collection, which comes after every batch, walks the whole
-- of an old table that was written to since.
local c = require "ltrain.c"
local dist = require "ltrain.dist"
local exchange = require "ltrain.trainer.ranks.exchange"

local predictions = {}

local PORTION <const> = 32 -- batches between two sendings
local SHORT <const> = 128 -- batches in a list

--- What a loader's predictions are kept in; `wanted`: whether they are kept at all.
function predictions.new(state, source, wanted)
  return {
    wanted = wanted, sends = wanted and source.dealt ~= nil,
    on_device = state.strategy.root_device ~= "cpu",
    is_first = state.trainer.is_global_zero, lists = {}, indices = {}, last = -1, portion = {},
    batches = 0,
  }
end

local function place(kept, number, outputs, indices)
  kept.indices[number] = indices
  local which = number // SHORT
  local list = kept.lists[which] or {}
  kept.lists[which], list[number % SHORT] = list, outputs
  kept.last = math.max(kept.last, number)
end

-- The same with tensors on the CPU, whatever else is in it.
local function to_cpu(value, seen)
  if c.is_tensor(value) then return value:to "cpu" end
  if type(value) ~= "table" or getmetatable(value) ~= nil then return value end
  if seen[value] then return seen[value] end
  local copy = {}
  seen[value] = copy
  for key, element in next, value do copy[key] = to_cpu(element, seen) end
  return copy
end

--- Keeps what came of batch `number` (from 0), on the CPU, and which samples these are, or nil; no
--- outputs are left out.
function predictions.add(kept, number, outputs, indices)
  if outputs == nil or not kept.wanted then return end
  if kept.on_device then outputs = to_cpu(outputs, {}) end
  if kept.is_first or not kept.sends then
    place(kept, number, outputs, indices)
  else
    local what = ("predict_step's result (batch %d)"):format(number)
    table.insert(kept.portion, { number, c.dist.encode(outputs, "predict", what), indices })
  end
end

-- To rank 0: what each has. The first result is true when none will have more.
local function gather(kept, ended)
  return dist.all_reduce(ended and 1 or 0, { op = "min" }) == 1, dist.gather(kept.portion)
end

-- The ranks send what they have. True when none will have more.
local function send(kept, ended)
  local all_ended, gathered = exchange("predictions", gather, kept, ended)
  kept.portion = {}
  for rank = 2, #(gathered or {}) do
    for _, item in ipairs(gathered[rank]) do
      place(kept, item[1], c.dist.decode(item[2]), item[3])
    end
  end
  return all_ended
end

--- After each batch that was read, whoever's it was: all ranks send at the same ones.
function predictions.end_batch(kept)
  kept.batches = kept.batches + 1
  if kept.sends and kept.batches % PORTION == 0 then send(kept, false) end
end

--- The list of all, on rank 0; empty on the others. Where every rank predicted for itself: its own.
--- The second result has the positions of their samples.
function predictions.finish(kept)
  while kept.sends and not send(kept, true) do end -- luacheck: ignore 542
  local list, indices = {}, {}
  for number = 0, kept.last do
    local short = kept.lists[number // SHORT]
    local outputs = short and short[number % SHORT]
    if outputs ~= nil then
      list[#list + 1] = outputs
      indices[#list] = kept.indices[number] or {}
    end
  end
  return list, indices
end

return predictions
