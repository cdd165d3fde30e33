-- spec/ops/meta_spec.lua: every row of lt.ops() on the meta device: results and gradients have the
-- shapes, dtypes and strides that they have on the CPU, or the row needs values and says so.
local c = require "ltrain.c"
local cases = require "spec.ops.cases"
local lt = require "ltrain"

local FLOAT <const> = cases.float

-- Rows whose result has a shape that depends on values.
local READS <const> = {
  nonzero = true, masked_select = true, unique = true, unique_consecutive = true, bincount = true,
  repeat_interleave = true, masked_scatter = true, one_hot = true,
}

-- Cases of the elementwise rows, and of those that make tensors.
local ONE <const> = { unary = true, unary_numbers = true, clamp = true, test = true }
local TWO <const> = { binary = true, compare = true }
local INTEGERS <const> = lt.tensor { 1, 2, 3 }

local function case_of(op)
  if cases.structured[op.name] then return cases.structured[op.name] end
  local x, y = cases.values(3, 4), cases.values(4)
  if op.dtype == "int" then x, y = INTEGERS, INTEGERS end
  if op.name == "threshold" then return { { x }, { threshold = 0.1, value = 2 } } end
  if ONE[op.kind] then return { { x } } end
  if TWO[op.kind] then return { { x, y } } end
end

-- "f32 [3, 4] by [4, 1]" of each tensor.
local function seen(list)
  local texts = {}
  for k, x in pairs(list) do
    texts[k] = c.is_tensor(x) and ("%s [%s] by [%s]"):format(x.dtype, table.concat(x.shape, ", "),
      table.concat(x:stride(), ", ")) or type(x)
  end
  return texts
end

local function leaf(x, device)
  x = x:to(device):detach():clone()
  return FLOAT[x.dtype] and x:requires_grad_() or x
end

-- What results and gradients look like, of inputs there.
local function run_on(device, op, case)
  local _ <close> = lt.device(device)
  local inputs, is_list = cases.inputs_of(case)
  local leaves, grads = {}, {}
  for k, x in ipairs(inputs) do leaves[k] = leaf(x, device) end
  local results = cases.run(op, leaves, is_list, case[2])
  local total
  for k, y in ipairs(results) do
    if c.is_tensor(y) and y.requires_grad and k <= (case[3] or k) then
      local part = (y * y):sum()
      total = total and total + part or part
    end
  end
  if total then total:backward() end
  for k, x in ipairs(leaves) do grads[k] = x.grad or false end
  return seen(results), seen(grads)
end

describe("on meta", function()
  for _, op in ipairs(lt.ops()) do
    local case = not op.hidden and case_of(op)
    if case and READS[op.name] then
      it(op.name .. " says that it reads values", function()
        local ok, message = pcall(run_on, "meta", op, case)
        assert.is_false(ok)
        assert.matches(op.name .. ": a meta tensor has no data: %w+ %[", message)
      end)
    elseif case then
      it(op.name .. " infers what the CPU makes", function()
        local results, grads = run_on("cpu", op, case)
        local inferred, inferred_grads = run_on("meta", op, case)
        assert.same(results, inferred)
        assert.same(grads, inferred_grads)
      end)
    end
  end
end)
