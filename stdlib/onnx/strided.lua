-- stdlib/onnx/strided.lua: a strided part of a tensor as ONNX nodes: a slice where it is one, else
-- elements by their positions in the flattened tensor.

local c = require "ltrain.c"
local errors = require "ltrain.core.errors"

local function refuse(call)
  errors.blame("onnx.export: %s at %s: which part of a tensor it takes depends on the size of a "
    .. "named dim", call.op, call.line)
end

-- Strides of a row-major tensor.
local function strides_of(shape)
  local list, step = {}, 1
  for k = #shape, 1, -1 do
    list[k] = step
    step = step * shape[k]
  end
  return list
end

-- The part as {start, n, step} for each dim of the input, where `at` is the next dim of the result;
-- a dim that is not in the result has n = nil. nil: it is no slice.
local function ranges_of(shape, args)
  local strides <const>, rest, at = strides_of(shape), args.offset, 1
  local ranges = {}
  for k, size in ipairs(shape) do
    local stride <const> = strides[k]
    local start <const> = rest // stride
    rest = rest % stride
    local n, wanted = args.size[at], args.stride[at]
    local step <const> = n and (n == 1 and 1 or wanted // stride)
    local fits <const> = n and (n == 1 or wanted % stride == 0) and step > 0 and n > 0 and
      start + (n - 1) * step < size and (n > 1 or #args.size - at >= #shape - k)
    if fits then at = at + 1 elseif start >= size then return nil end
    ranges[k] = { start = start, n = fits and n or nil, step = step }
  end
  return at > #args.size and rest == 0 and ranges or nil
end

local ALL <const> = (1 << 31) - 1 -- an end that is behind every dim's

-- Where a range of a dim of `size` elements ends, which in the second trace is `other`.
local function end_of(call, r, size, other, other_size)
  if r.start ~= other.start or (r.n == nil) ~= (other.n == nil) then refuse(call) end
  if not r.n then return r.start + 1 end
  local last <const> = r.start + (r.n - 1) * r.step + 1
  if r.n == other.n and r.step == other.step then return last end
  local other_last <const> = other.start + (other.n - 1) * other.step + 1
  if r.step ~= other.step or last ~= size or other_last ~= other_size then refuse(call) end
  return ALL
end

local function slice(g, call, x, ranges, others)
  local starts, ends, axes, steps, dropped = {}, {}, {}, {}, {}
  local shape <const>, other_shape = call.inputs[1].shape, call.twin.inputs[1].shape
  for k, r in ipairs(ranges) do
    local n <const>, step = r.n or 1, r.n and r.step or 1
    local last <const> = end_of(call, r, shape[k], others[k], other_shape[k])
    if n ~= shape[k] or step ~= 1 or last ~= ALL and shape[k] ~= other_shape[k] then
      local j <const> = #axes + 1
      starts[j], ends[j], axes[j], steps[j] = r.start, last, k - 1, step
    end
    if not r.n then dropped[#dropped + 1] = k - 1 end
  end
  if #axes > 0 then
    x = g:add("Slice", { x, g:constant(starts), g:constant(ends), g:constant(axes),
                         g:constant(steps) })
  end
  return #dropped > 0 and g:add("Squeeze", { x, g:constant(dropped) }) or x
end

-- The positions in the flattened tensor, as a constant.
local function positions(args)
  local all = c.full({}, args.offset, { dtype = "i64" })
  for k, n in ipairs(args.size) do
    local shape = {}
    for j = 1, #args.size do shape[j] = j == k and n or 1 end
    all = all + (c.arange(n) * args.stride[k]):view(shape)
  end
  return all
end

return function(g, call)
  local args <const>, shape = call.args, call.inputs[1].shape
  local x <const> = g:input(call, 1)
  local ranges <const> = ranges_of(shape, args)
  local others <const> = ranges_of(call.twin.inputs[1].shape, call.twin.args)
  if ranges and others then return slice(g, call, x, ranges, others) end
  if table.concat(shape, " ") ~= table.concat(call.twin.inputs[1].shape, " ") then refuse(call) end
  local flat <const> = g:add("Reshape", { x, g:constant { -1 } })
  return g:add("Gather", { flat, g:name_of(positions(args)) }, { axis = 0 })
end
