--- stdlib/apps/check/checks/activations.lua: activations that explode, or are not finite, at the
--- start.
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

local function has_nan(list)
  for _, tensor in ipairs(list) do
    if tensor and has_floats(tensor) and tensor:isnan():any():item() then return true end
  end
  return false
end

-- Those that are not known to have infinities on purpose.
local function unmeant(list, meant)
  local others = {}
  for _, tensor in ipairs(list) do
    if not meant[tensor] then others[#others + 1] = tensor end
  end
  return others
end

-- Whether a call puts infinities into a mask, or hands them on.
local function is_meant(call, meant)
  if has_nan(call.outputs) then return false end
  if call.op == "masked_fill" or call.op == "full" then return true end
  for _, tensor in ipairs(call.inputs) do
    if meant[tensor] then return true end
  end
  return false
end

-- The operation that has made the first value that is not finite, as far as the loss has it too.
local function check_finite(context)
  local loss = context.first.loss
  if not loss or math.abs(loss:item()) < math.huge then return end
  context.broken = true
  local meant = {} -- infinities that a mask has put there
  for _, call in ipairs(context.first.calls) do
    local is_made = not all_finite(call.outputs) and all_finite(unmeant(call.inputs, meant))
    if is_made and is_meant(call, meant) then
      for _, output in ipairs(call.outputs) do meant[output or false] = true end
    elseif is_made then
      local value = loss:item()
      context.report:error("activations", call.line, ("the loss is %s before any step: %s has made "
        .. "the first values that are not finite"):format(value ~= value and "nan" or value,
        call.op), call.op:find "softmax" and "a row of it has -inf only: leave at least one value "
        .. "of each row unmasked" or "keep logs and roots above 0, divisors away from 0: clamp, or "
        .. "add a small number")
      return
    end
  end
end

local LOUD <const> = 50 -- root mean square of inputs

-- Inputs that no layer has scaled.
local function check_inputs(context)
  local record
  for _, one in ipairs(context.first.started) do
    local name = walk.class_name(one.module)
    if name:find "^Linear" or name:find "^Conv" or name == "LSTM" or name == "GRU" then
      record = one
      break
    elseif name:find "Norm" then
      return
    end
  end
  local size = record and record.inputs[1] and loudest { record.inputs[1] } or 0
  if size > LOUD and size < math.huge then
    context.report:warn("activations", where_of(context, record), ("the inputs of %s have a root "
      .. "mean square of %.3g"):format(name_of(record), size), "scale the inputs: subtract their "
      .. "mean, divide by their standard deviation")
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
    check_inputs(context)
    local first
    for _, record in ipairs(found.started) do
      first = first or #record.inputs > 0 and math.max(loudest(record.inputs), 1)
    end
    for _, record in ipairs(found.modules) do
      if check_record(context, record, first or 1) then return end
    end
  end,
}
