--- stdlib/apps/plan/advice.lua: which strategy of a plan to take, and what options would change.
local measure = require "ltrain.apps.plan.measure"
local strategies = require "ltrain.apps.plan.strategies"
local walk = require "ltrain.core.walk"

local advice = {}

local CONTAINERS <const> = { ModuleList = true, Sequential = true }

-- Elements of lists of modules that have modules of their own: the blocks of a network.
local function is_block(entry)
  local parent = entry.item and entry.item.entry.module
  return parent ~= nil and CONTAINERS[walk.class_name(parent)] and entry.last > entry.first
end

-- The outermost blocks, as keys.
local function blocks_of(module)
  local blocks, inside = {}, 0
  for i, entry in ipairs((walk.modules(module))) do
    if i > inside and is_block(entry) then
      blocks[entry.module], inside = true, entry.last
    end
  end
  return blocks
end

-- Recomputation of the blocks, which configure_model may build anew for each step that is planned.
local function recomputed_blocks(row, base, own)
  local blocks
  local function is_one(module)
    blocks = blocks or blocks_of(base.module)
    return blocks[module] == true
  end
  return {
    text = "activation_checkpointing of the blocks",
    make = function()
      blocks = nil
      return strategies.sharded(own, row.stage, { activation_checkpointing = is_one })
    end,
    changes_nothing = function() return not (blocks and next(blocks)) end,
  }
end

-- Changes that may help, in the order in which they are tried: { text =, make = of the strategy,
-- changes_nothing = function, or nil: whether it turned out so, other changes of o }.
local function changes(row, base, own)
  local list, trainer = {}, base.trainer
  local function sharded(with)
    return function() return strategies.sharded(own, row.stage, with) end
  end
  if row.stage and not own.activation_checkpointing then
    list[#list + 1] = recomputed_blocks(row, base, own)
  end
  if row.stage == 3 then
    list[#list + 1] = { text = "reshard_after_forward = false",
      make = sharded { reshard_after_forward = false } }
    list[#list + 1] = { text = "units = 10000", make = sharded { units = 10000 } }
  end
  if row.stage and row.stage > 1 and trainer.accumulate_grad_batches > 1 then
    list[#list + 1] = { text = "accumulate = 'whole'", make = sharded { accumulate = "whole" } }
  end
  if trainer.precision == "32-true" then
    list[#list + 1] = { text = "precision = 'bf16-mixed'", precision = "bf16-mixed" }
  end
  list[#list + 1] = { text = "half the batch, accumulate_grad_batches times 2", half_batch = true }
  return list
end

local function fits(found, row) return not found.limit or row.peak <= found.limit end

-- Whether ranks wait for one another a part of the time, which is not known: bytes say too little.
local function waits(row) return row.row.own ~= nil and row.seconds == nil end

-- Whether a strategy is faster, or where times are not known sends less; for each batch that ranks
-- read, for strategies may have several ranks compute on one.
local function is_better(row, best)
  if waits(row) ~= waits(best) then return waits(best) end
  local seconds = row.seconds and row.seconds / row.data_ranks
  local least = best.seconds and best.seconds / best.data_ranks
  if seconds ~= least then return seconds < least end
  return row.sent / row.data_ranks < best.sent / best.data_ranks
end

-- The best of the strategies that fit; where none does, the smallest.
local function choose(found)
  local best, smallest = nil, found.rows[1]
  for _, row in ipairs(found.rows) do
    if fits(found, row) and (not best or is_better(row, best)) then best = row end
    if row.peak < smallest.peak then smallest = row end
  end
  return best or smallest
end

--- Adds `chosen`, a row, and `options`, a list of { text =, peak =, seconds =, fits = } of the
--- changes that were tried of it.
function advice.add(found, base, own)
  local chosen = choose(found)
  found.chosen, found.options = chosen, {}
  for _, change in ipairs(changes(chosen, base, own)) do
    local o = setmetatable({ precision = change.precision, half_batch = change.half_batch },
      { __index = base })
    local row = setmetatable({ make = change.make }, { __index = chosen.row })
    local measured = measure.bytes(row, o)
    if measured and not (change.changes_nothing and change.changes_nothing()) then
      if found.hardware then measure.add_times(measured, row, o, found.hardware) end
      found.options[#found.options + 1] = { text = change.text, peak = measured.peak,
        seconds = measured.seconds, fits = fits(found, measured) }
    end
  end
end

return advice
