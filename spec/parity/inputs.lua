-- spec/parity/inputs.lua: what the random calls of spec/parity are made of: shapes, dims, and
-- descriptions of tensors, {dtype, shape, values, layout}. Shapes have 0 to 4 dims, some of size 0
-- or 1; inputs lie transposed or sliced; some hold NaN and infinities.
local inputs = {}

local random = math.random
function inputs.one_of(list) return list[random(#list)] end

function inputs.shape_of(least, most, smallest)
  local shape = {}
  for k = 1, random(least, most) do shape[k] = random(smallest or 1, 4) end
  if not smallest and #shape > 0 and random() < 0.05 then shape[random(#shape)] = 0 end
  return shape
end

local function count(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

local SPECIAL <const> = {0.0, -0.0, 1 / 0, -1 / 0, 0 / 0, 1e30, -1e-30}

--- A description of a tensor: numbers that its dtype holds exactly enough (multiples of 1/64).
function inputs.tensor(shape, options)
  local o = options or {}
  local special = o.special and random() < 0.15
  local low, high = o.low or -3, o.high or 3
  local x = {dtype = o.dtype or "f32", shape = shape, values = {}, layout = random(3),
    special = special or nil}
  for i = 1, count(shape) do
    if o.integer then
      x.values[i] = random(low, high)
    elseif special and random() < 0.3 then
      x.values[i] = inputs.one_of(SPECIAL)
    else
      x.values[i] = random(low * 64, high * 64) / 64 + (o.distinct and i / 1024 or 0)
    end
  end
  return x
end

function inputs.float() return inputs.one_of{"f32", "f32", "f64", "f64", "f16", "bf16"} end

function inputs.wide() return inputs.one_of{"f32", "f64"} end

function inputs.dim_of(shape) return random() < 0.5 and random(#shape) or -random(#shape) end

function inputs.ids(shape, n)
  return inputs.tensor(shape, {dtype = "i64", integer = true, low = 0, high = n - 1})
end

function inputs.mask(shape)
  return inputs.tensor(shape, {dtype = "bool", integer = true, low = 0, high = 1})
end

--- A shape that broadcasts with the given one.
function inputs.beside(shape)
  local other = {}
  for k = random(#shape + 1), #shape do other[#other + 1] = random() < 0.3 and 1 or shape[k] end
  return other
end

--- A call: inputs, and options by name.
function inputs.call(list, options) return {inputs = list, options = options or {}} end

return inputs
