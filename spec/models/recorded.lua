-- spec/models/recorded.lua: what PyTorch's models compute of weights that are made by a rule: files
-- and rule are those of torch_models.py.
local lt = require "ltrain"

local COUNT <const> = 2003

local M = {}

local function size_of(shape)
  local n = 1
  for _, size in ipairs(shape) do n = n * size end
  return n
end

local function values(k, name, shape)
  local n = size_of(shape)
  local u = ((lt.arange(COUNT) * 7919 + (k - 1) * 104729) % COUNT):to "f64" / COUNT - 0.5
  u = u:tile(n // COUNT + 1):narrow(1, 1, n):reshape(shape)
  if #shape > 1 then
    u = u * (3.4 / math.sqrt(n / shape[1]))
  elseif name:find "weight$" then
    u = u * 0.4 + 0.5
  elseif name:find "running_var$" then
    u = u + 1
  else
    u = u * 0.4
  end
  return u:to "f32"
end

--- { options =, inputs =, outputs =, state = } of a model: the state under PyTorch's names.
function M.of(name)
  local file = assert(lt.load(("spec/models/%s.pt"):format(name)))
  local names, state = {}, {}
  for key in pairs(file.shapes) do names[#names + 1] = key end
  table.sort(names)
  for k, key in ipairs(names) do
    if key:find "num_batches_tracked$" then
      state[key] = lt.tensor(0)
    else
      state[key] = values(k, key, file.shapes[key])
    end
  end
  for i, x in ipairs(file.inputs) do
    if type(x) == "table" then
      local n = size_of(x)
      file.inputs[i] = (((lt.arange(n) * 37) % 101):to "f64" / 50.5 - 1):reshape(x):to "f32"
    end
  end
  file.state = state
  return file
end

--- The largest difference between tensors, in units of the largest value of the second.
function M.difference(a, b)
  assert(table.concat(a.shape, ",") == table.concat(b.shape, ","))
  return (a - b):abs():max():item() / b:abs():max():item()
end

return M
