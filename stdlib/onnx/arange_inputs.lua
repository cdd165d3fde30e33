-- stdlib/onnx/arange_inputs.lua: inputs of a call that a script made by lt.arange, whose length
-- depends on a named dim: exported as Range.

local c = require "ltrain.c"

-- start and step of numbers that are start, start + step, ...; nil where they are not. One number
-- has no step.
local function start_and_step(x)
  if x.ndim ~= 1 or x.shape[1] == 0 or x.dtype == "bool" then return nil end
  local start <const> = x:narrow(1, 1, 1):item()
  if x.shape[1] == 1 then return start end
  local step <const> = x:narrow(1, 2, 1):item() - start
  local all <const> = c.arange(x.shape[1], { dtype = x.dtype }) * step + start
  if all.dtype == x.dtype and all:equal(x:to "cpu") then return start, step end
end

--- The name of input k of a call, as a Range; nil where it is none in some run.
return function(g, call, k)
  local x <const>, start, step = call.inputs[k], start_and_step(call.inputs[k])
  for _, run in ipairs(call.runs) do
    local a <const>, b = start_and_step(run.inputs[k])
    step = step or b
    if not a or a ~= start or b and b ~= step then return nil end
  end
  local value <const> = g.extents:value(g.extents:tuple(function(_, r)
    return call.runs[r].inputs[k].shape[1]
  end), call)
  if not value then return nil end
  local scalar <const> = g:add("Squeeze", { value })
  local name = g:add("Range", { g:constant(0), scalar, g:constant(1) })
  name = g:cast(name, "i64", x.dtype)
  if step ~= 1 then name = g:add("Mul", { name, g:constant(step, x.dtype) }) end
  if start ~= 0 then name = g:add("Add", { name, g:constant(start, x.dtype) }) end
  return name
end
