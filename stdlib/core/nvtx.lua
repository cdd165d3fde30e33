--- stdlib/core/nvtx.lua: lt.cuda.nvtx: names for the timeline of NVIDIA's profilers (`nsys profile
--- ltrain run model.lua`). They cost next to nothing when none is attached, and without a GPU.
local c = require "ltrain.c"
local errors = require "ltrain.core.errors"
local profiler_ranges = require "ltrain.core.profiler_ranges"
local strict_arity = require "ltrain.core.strict_arity"

local runtime <const> = c.runtime
local nvtx = {}
local depth = 0 -- of open ranges

local function check(message, where)
  if type(message) == "string" then return message end
  errors.blame("nvtx.%s: the name must be a string: got %s", where, errors.show(message))
end

--- Begins a range; returns its depth: the number of enclosing ranges.
function nvtx.range_push(message)
  runtime.range_push(check(message, "range_push"))
  depth = depth + 1
  return depth - 1
end

--- Ends the innermost range; returns its depth.
function nvtx.range_pop()
  if depth == 0 then errors.blame("nvtx.range_pop: no range is open") end
  depth = depth - 1
  runtime.range_pop()
  return depth
end

--- Marks a point in time.
function nvtx.mark(message) runtime.range_mark(check(message, "mark")) end

local END <const> = setmetatable({}, { __close = function() nvtx.range_pop() end })

local function open(name)
  nvtx.range_push(name)
  return END
end

--- Sets whether each hook of a Trainer (training_step, on_train_batch_end, ...) is a range.
function nvtx.hook_ranges(on)
  if type(on) ~= "boolean" then
    errors.blame("nvtx.hook_ranges: needs true or false: got %s", errors.show(on))
  end
  profiler_ranges.open = on and open or nil
end

return strict_arity.all(nvtx)
