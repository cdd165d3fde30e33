--- stdlib/trainer/merged.lua: what all ranks logged, as one.
--
-- At the end of a pass every rank sends what it has gathered for each key: sums and counts, and the
-- states of metrics. They are joined in the order of ranks, so that all have the same exact
-- figures; a key that a rank did not log counts there as nothing.
local dist = require "ltrain.dist"
local joins = require "ltrain.core.joins"

local merged = {}

-- What others need to know of an item, besides its figures.
local FIELDS <const> = {
  "hook", "key", "loader", "on_step", "on_epoch", "name", "step_name", "epoch_name", "prog_bar",
  "logger", "reduce",
}

--- The Lua number that a logged value stands for.
function merged.number(value)
  if type(value) == "userdata" then value = value:item() end
  if value == true then return 1 end
  if value == false then return 0 end
  return value
end

--- An item as plain data.
function merged.describe(item)
  local told = { total = merged.number(item.total), count = item.count }
  for _, field in ipairs(FIELDS) do told[field] = item[field] end
  return told
end

local function join(item, told)
  if told.total ~= nil then
    local add = joins[item.reduce == "mean" and "sum" or item.reduce]
    item.total = item.total == nil and told.total or add(item.total, told.total)
  end
  if told.count ~= nil then item.count = (item.count or 0) + told.count end
  if told.states then
    item.states = item.states or {}
    table.insert(item.states, told.states)
  end
end

local function id_of(item)
  return ("%d\0%s\0%s"):format(item.loader, item.hook, item.key)
end

--- The items of a list that are logged at epoch level, as all ranks together have them: copies, in
--- the order in which rank 0 (then 1, ...) logged them first. Every rank calls it.
function merged.items(order)
  local told, own = {}, {}
  for _, item in ipairs(order) do
    if item.on_epoch then
      local one = merged.describe(item)
      one.states = item.metric and item.metric:state_dict()
      told[#told + 1] = one
      own[id_of(item)] = item
    end
  end
  local list, by_id = {}, {}
  for _, of_rank in ipairs(dist.all_gather(told)) do
    for _, one in ipairs(of_rank) do
      local id = id_of(one)
      local item = by_id[id]
      if not item then
        item = { metric = own[id] and own[id].metric }
        for _, field in ipairs(FIELDS) do item[field] = one[field] end
        by_id[id], list[#list + 1] = item, item
      end
      join(item, one)
    end
  end
  return list
end

return merged
