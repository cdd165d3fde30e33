-- stdlib/onnx/flat_indices.lua: strided views that are not slices, such as diagonals, as Gather of
-- the flattened tensor.

local c = require "ltrain.c"

local flat_indices = {}

--- Strides of a row-major tensor.
function flat_indices.strides_of(shape)
  local list, step = {}, 1
  for k = #shape, 1, -1 do
    list[k] = step
    step = step * math.max(shape[k], 1)
  end
  return list
end

local strides_of <const> = flat_indices.strides_of

-- The digits of an offset or stride: positions in each dim of a row-major tensor.
local function digits(number, strides)
  local list, rest = {}, math.abs(number)
  for k, stride in ipairs(strides) do
    list[k] = (number < 0 and -1 or 1) * (rest // stride)
    rest = rest % stride
  end
  return list
end

-- Positions of a part in a flattened tensor, as a constant.
local function places(size, stride, offset)
  local all = c.full({}, offset, { dtype = "i64" })
  for k, n in ipairs(size) do
    local shape = {}
    for j = 1, #size do shape[j] = j == k and n or 1 end
    all = all + (c.arange(n) * stride[k]):view(shape)
  end
  return all
end

-- Which dims of the tensor are of a size that changes, and the dim of the result that each is: all
-- of it has to be there.
local function carried_dims(g, call)
  local shape <const>, args, carried, at_of = call.inputs[1].shape, call.runs[1].args, {}, {}
  local strides <const> = strides_of(shape)
  for k, size in ipairs(shape) do
    local sizes <const> = g.extents:tuple(function(_, r) return call.runs[r].inputs[1].shape[k] end)
    if g.extents.changed(sizes) then
      carried[#carried + 1] = k
      for at, n in ipairs(args.size) do
        if n == size and args.stride[at] == strides[k] then at_of[k] = at end
      end
    end
  end
  return carried, at_of
end

local function refuse_part(g, call)
  g:refuse(call, "which part of a tensor it takes depends on a dim of dynamic_axes: leave it out")
end

--- Elements by their positions in the dims whose sizes are fixed; the others are all there.
function flat_indices.gathered(g, call, x)
  local shape <const>, carried, at_of = call.inputs[1].shape, carried_dims(g, call)
  local is_carried, perm, lead = {}, {}, #carried
  for _, k in ipairs(carried) do is_carried[k], perm[#perm + 1] = true, k - 1 end
  local fixed = {}
  for k = 1, #shape do
    if not is_carried[k] then fixed[#fixed + 1], perm[#perm + 1] = k, k - 1 end
  end
  local own = {}
  for j, k in ipairs(fixed) do own[j] = shape[k] end
  local own_strides <const> = strides_of(own)
  -- A stride or offset among the fixed dims; the same in all runs, and none along the others.
  local function among_fixed(number_of)
    return g:fixed(call, "which part of a tensor it takes:", function(run)
      local list <const> = digits(number_of(run.args), strides_of(run.inputs[1].shape))
      local sum = 0
      for j, k in ipairs(fixed) do sum = sum + list[k] * own_strides[j] end
      for _, k in ipairs(carried) do
        if list[k] ~= 0 then refuse_part(g, call) end
      end
      return sum
    end)
  end
  local is_lead, size, stride, order = {}, {}, {}, {}
  for j, k in ipairs(carried) do
    if not at_of[k] then refuse_part(g, call) end
    is_lead[at_of[k]], order[at_of[k]] = true, j - 1
  end
  for at = 1, #call.outputs[1].shape do
    if not is_lead[at] then
      local j <const> = #size + 1
      size[j] = g:fixed(call, "a size", function(run) return run.args.size[at] end)
      stride[j] = among_fixed(function(args) return args.stride[at] end)
      order[at] = lead + j - 1
    end
  end
  local where <const> = places(size, stride, among_fixed(function(args) return args.offset end))
  if lead > 0 then
    local flat <const> = g:sizes(call, function(run)
      local list, count = {}, 1
      for j, k in ipairs(carried) do list[j] = run.inputs[1].shape[k] end
      for _, n in ipairs(own) do count = count * n end
      list[lead + 1] = count
      return list
    end)
    x = g:add("Reshape", { g:add("Transpose", { x }, { perm = perm }), flat })
    x = g:add("Gather", { x, g:name_of(where) }, { axis = lead })
    return g:add("Transpose", { x }, { perm = order })
  end
  return g:add("Gather", { g:add("Reshape", { x, g:constant { -1 } }), g:name_of(where) },
    { axis = 0 })
end

return flat_indices
