--- stdlib/check/checks/activations.lua: activations that explode, or are not finite, at the start.
local c = require "ltrain.c"
local is_float = require "ltrain.core.is_float"
local walk = require "ltrain.core.walk"

local LARGE <const> = 1e3 -- root mean square of a layer's outputs
local GROWTH <const> = 100 -- of it against that of the inputs

local function has_floats(tensor) return is_float(tensor.dtype) and tensor:numel() > 0 end

local function rms(tensor)
  local values = tensor:detach():to "f32"
  return values:square():mean():sqrt():item()
end

local function where_of(context, record)
  local call = context.first.calls[record.last or 0]
  local name = record.name:match "^[%a_][%w_]*"
  local line = name and context.source and context.source.line_of_field(name)
  return line or call and call.line
end

local function name_of(record)
  return ("%s%s"):format(record.name ~= "" and record.name .. ": " or "",
    walk.class_name(record.module))
end

-- The loudest of the tensors; 0 without one.
local function loudest(list)
  local most = 0
  for _, tensor in ipairs(list) do
    if has_floats(tensor) then most = math.max(most, rms(tensor)) end
  end
  return most
end

local function all_finite(list)
  for _, tensor in ipairs(list) do
    if tensor and has_floats(tensor) and not tensor:isfinite():all():item() then return false end
  end
  return true
end

-- The operation that has made the first value that is not finite, as far as the loss has it too.
local function check_finite(context)
  local loss = context.first.loss
  if not loss or math.abs(loss:item()) < math.huge then return end
  context.broken = true
  for _, call in ipairs(context.first.calls) do
    if not all_finite(call.outputs) and all_finite(call.inputs) then
      context.report:error("activations", call.line, ("the loss is %s before any step: %s has made "
        .. "the first values that are not finite"):format(loss:item(), call.op),
        "keep logs and roots above 0, divisors away from 0: clamp, or add a small number")
      return
    end
  end
end

local function check_record(context, record, first)
  for _, output in ipairs(record.outputs) do
    if has_floats(output) then
      local size = rms(output)
      if size < math.huge and size > LARGE and size > GROWTH * first then
        context.exploded = true
        context.report:warn("activations", where_of(context, record), ("%s: activations explode: "
          .. "the root mean square is %.3g here, %.3g at the input"):format(name_of(record), size,
          first), "start with smaller weights (kaiming_normal_ and the like), or normalise between "
          .. "layers")
        return true
      end
    end
  end
end

return {
  before = function(context)
    local found = context.first
    if not found or context.broken then return end
    local _ <close> = c.no_grad()
    check_finite(context)
    if context.broken then return end
    local first
    for _, record in ipairs(found.started) do
      first = first or #record.inputs > 0 and math.max(loudest(record.inputs), 1)
    end
    for _, record in ipairs(found.modules) do
      if check_record(context, record, first or 1) then return end
    end
  end,
}
