-- stdlib/onnx/strided.lua: strided parts of tensors as ONNX nodes: a slice where it is one, else
-- elements by their positions; and tensors in which such a part is written.
--
-- A part is given by sizes, strides and an offset over the row-major tensor (as_strided). Dims of
-- size 1 take part in none of this: their strides say nothing.

local flat_indices = require "ltrain.onnx.flat_indices"

local strides_of <const> = flat_indices.strides_of
local strided = {}

local FIRST <const>, LAST <const> = -(1 << 31), (1 << 31) - 1 -- before and behind all positions

-- The part as {start, n, step} for each dim of the tensor, n = nil for one position. nil: no slice.
local function ranges_of(shape, part)
  local strides <const>, rest, ranges = strides_of(shape), part.offset, {}
  for k, stride in ipairs(strides) do
    ranges[k] = { start = rest // stride, step = 1 }
    rest = rest % stride
    if ranges[k].start > 0 and ranges[k].start >= shape[k] then return nil end
  end
  local k = 0
  for at, n in ipairs(part.size) do
    if n ~= 1 then
      local wanted <const> = part.stride[at]
      repeat
        k = k + 1
        if k > #shape then return nil end
      until shape[k] ~= 1 and math.abs(wanted) // strides[k] < math.max(shape[k], 2)
        and wanted % strides[k] == 0 and wanted ~= 0
      local r <const> = ranges[k]
      r.n, r.step = n, wanted // strides[k]
      local last <const> = r.start + (n - 1) * r.step
      if n > 0 and (last < 0 or last >= shape[k]) then return nil end
    end
  end
  return ranges
end

-- The ranges of a part in all runs, where all are slices along the same dims; shape_of(run),
-- part_of(run). nil where they are not.
local function ranges_of_all(g, call, shape_of, part_of)
  local all = {}
  for r, run in ipairs(call.runs) do
    all[r] = ranges_of(shape_of(run), part_of(run))
    if not all[r] then return nil end
    for k, range in ipairs(all[r]) do
      local first <const> = all[1][k]
      if (range.n == nil) ~= (first.n == nil) or range.step ~= first.step then
        g:refuse(call, "which part of a tensor it takes depends on the size of '%s': leave it out "
          .. "of dynamic_axes", g.runs[r].name)
      end
    end
  end
  return all
end

-- A position in all runs as one that Slice takes: counted from the end, where it is the same from
-- there alone.
local function position(g, call, places, sizes)
  local list = {}
  for r, place in ipairs(places) do list[r] = place - places[1] end
  if not g.extents.changed(list) then return places[1] end
  for r, place in ipairs(places) do list[r] = place - sizes[r] end
  if not g.extents.changed(list) then return list[1] < 0 and list[1] or LAST end
  return g:sizes(call, function(_, r) return { places[r] } end, "a position")
end

-- The end of a slice whose last positions are `lasts`, with a step above 1: how far from the end of
-- the dim it is, where that is the same for all. nil: several ends, or none, take these positions.
local function stepped_end(lasts, sizes, step)
  local least, most = 0, math.huge
  for r, last in ipairs(lasts) do
    least = math.max(least, sizes[r] - last - step)
    most = math.min(most, sizes[r] - last - 1)
  end
  if least == most then return least == 0 and LAST or -least end
end

-- Positions as a vector: a constant where all are numbers.
local function vector(g, list)
  local parts = {}
  for k, value in ipairs(list) do
    if type(value) == "string" then parts[1] = k end
  end
  if not parts[1] then return g:constant(list) end
  for k, value in ipairs(list) do
    parts[k] = type(value) == "string" and value or g:constant { value }
  end
  return g:add("Concat", parts, { axis = 0 })
end

local function slice(g, call, x, all)
  local starts, ends, axes, steps = {}, {}, {}, {}
  for k, range in ipairs(all[1]) do
    local first, lasts, behind, sizes, whole = {}, {}, {}, {}, true
    for r, ranges in ipairs(all) do
      local size <const>, at = call.runs[r].inputs[1].shape[k], ranges[k]
      local n <const> = at.n or 1
      first[r], sizes[r] = at.start, size
      lasts[r] = at.start + (n - 1) * at.step
      behind[r] = n == 0 and at.start or lasts[r] + (at.step > 0 and 1 or -1)
      whole = whole and n == size and at.step == 1
    end
    if not whole then
      local j <const> = #axes + 1
      axes[j], steps[j] = k - 1, range.step
      starts[j] = position(g, call, first, sizes)
      local before <const> = range.step < 0 and behind[1] == -1
      ends[j] = before and FIRST or range.step > 1 and stepped_end(lasts, sizes, range.step)
        or position(g, call, behind, sizes)
    end
  end
  if #axes == 0 then return x end
  return g:add("Slice", { x, vector(g, starts), vector(g, ends), g:constant(axes),
                          g:constant(steps) })
end

-- x, whose dims are those of the ranges, in the shape of the result: without dims of size 1.
local function squeezed(g, call, x, ranges)
  local shape <const>, dropped, at = call.outputs[1].shape, {}, 1
  for k, range in ipairs(ranges) do
    if shape[at] == (range.n or 1) then at = at + 1 else dropped[#dropped + 1] = k - 1 end
  end
  if at <= #shape then return g:add("Reshape", { x, g:shape(call) }, { allowzero = 1 }) end
  return #dropped > 0 and g:add("Squeeze", { x, g:constant(dropped) }) or x
end

--- A part of a tensor.
function strided.as_strided(g, call)
  local x <const> = g:input(call, 1)
  local all <const> = ranges_of_all(g, call, function(run) return run.inputs[1].shape end,
    function(run) return run.args end)
  if all then return squeezed(g, call, slice(g, call, x, all), all[1]) end
  return flat_indices.gathered(g, call, x)
end

-- The part `name` with zeros around it, in the shape shape_of(run).
local function padded(g, call, shape_of, name)
  local all <const> = ranges_of_all(g, call, shape_of, function(run) return run.args end)
  for k = 1, #shape_of(call.runs[1]) do
    if not all or all[1][k].step ~= 1 then
      g:refuse(call, "there is no ONNX form of what is written: a part with steps")
    end
  end
  local shape <const> = g:sizes(call, function(_, r)
    local list = {}
    for k, range in ipairs(all[r]) do list[k] = range.n or 1 end
    return list
  end)
  local pads <const> = g:sizes(call, function(run, r)
    local list <const>, whole = {}, shape_of(run)
    for k, range in ipairs(all[r]) do
      list[k], list[#whole + k] = range.start, whole[k] - range.start - (range.n or 1)
    end
    return list
  end)
  return g:add("Pad", { g:add("Reshape", { name, shape }, { allowzero = 1 }), pads })
end

--- Zeros around a part: padding.
function strided.as_strided_backward(g, call)
  return padded(g, call, function(run) return run.args.full end, g:input(call, 1))
end

--- A tensor with another part.
function strided.as_strided_scatter(g, call)
  local dtype <const> = call.outputs[1].dtype
  local function shape_of(run) return run.inputs[1].shape end
  local size <const> = g:sizes(call, function(run) return run.args.size end)
  local part <const> = g:add("Expand", { g:input(call, 2, dtype), size })
  local ones <const> = g:add("Expand", { g:constant(1, "f32"), size })
  local mask <const> = g:cast(padded(g, call, shape_of, ones), "f32", "bool")
  return g:add("Where", { mask, padded(g, call, shape_of, part), g:input(call, 1, dtype) })
end

return strided
