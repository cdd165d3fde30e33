--- stdlib/check/checks/kept.lua: graphs that a module keeps from step to step.
local c = require "ltrain.c"
local walk = require "ltrain.core.walk"

local GROWTH <const> = 4 -- tensors more than at the first step

-- How many tensors with a graph each list of a module has, by its path.
local function count(root)
  local counts = {}
  local function add(held, path, depth)
    if c.is_tensor(held) then
      if held.requires_grad and not c.is_parameter(held) then
        counts[path] = (counts[path] or 0) + 1
      end
    elseif type(held) == "table" and getmetatable(held) == nil and depth < 4 then
      for _, value in next, held do add(value, path, depth + 1) end
    end
  end
  for _, entry in ipairs(walk.modules(root)) do
    for key, value in next, entry.module do
      if type(key) == "string" and type(value) == "table" and getmetatable(value) == nil then
        add(value, (entry.name == "" and "self" or entry.name) .. "." .. key, 0)
      end
    end
  end
  return counts
end

return {
  before = function(context, state) context.kept = context.kept or count(state.module) end,
  after = function(context, state)
    if not context.kept then return end
    for path, now in next, count(state.module) do
      local first = context.kept[path] or 0
      if now - first >= GROWTH then
        context.report:warn("kept", context.step_line, ("%s grows with each step, and with it "
          .. "the memory: from %d to %d tensors with their graphs"):format(path, first, now),
          "keep loss:detach(), or loss:item()")
      end
    end
  end,
}
