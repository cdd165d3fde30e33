-- stdlib/nn/checkpoint.lua: nn.utils.checkpoint: activations that backward computes again.

local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"

local runtime <const> = c.runtime

-- The tensors that came from others, and where they stand: the tape gives them back.
local function with_history(args)
  local inputs, places = {}, {}
  for i = 1, args.n do
    local x = args[i]
    if c.is_tensor(x) and x.requires_grad and not x.is_leaf then
      inputs[#inputs + 1], places[#places + 1] = x, i
    end
  end
  for _, place in ipairs(places) do args[place] = nil end
  return inputs, places
end

local function pass(...) return ... end

local function call(fn, scope, ...)
  local _ <close> = scope
  return pass(fn(...))
end

-- Calls fn, and again when values that it saved are wanted.
local function run(fn, ...)
  local kept = table.pack(...)
  local inputs, places = with_history(kept)
  local scope = runtime.drop_saved(function(given)
    local args = table.move(kept, 1, kept.n, 1, {})
    for k, place in ipairs(places) do args[place] = given[k] end
    fn(table.unpack(args, 1, kept.n))
  end, inputs)
  return call(fn, scope, ...)
end

return function(fn, ...)
  if not class.is_callable(fn) then
    errors.blame("checkpoint: needs a function or a module, got %s", errors.show(fn))
  end
  if not c.is_grad_enabled() then return fn(...) end
  local results = table.pack(run(fn, ...))
  runtime.collect_inside()
  return table.unpack(results, 1, results.n)
end
