-- spec/xla/models_spec.lua: models of ten kinds train on an XLA device with the CPU's losses.
--
-- Twenty steps (five in an everyday run, of two models) from equal weights on equal batches
-- (ten_models.lua).
-- tags: slow, sampled, unsanitized
local lt = require "ltrain"
local plugin = require "spec.xla.plugin"
local sample = require "spec.sample"
local ten = require "spec.xla.ten_models"

local STEPS <const> = os.getenv "LT_EXHAUSTIVE" == "1" and 20 or 5
local TOLERANCE <const> = { f32 = 1e-5, f64 = 1e-9 }

-- On the CPU: weights and batches are the same wherever the model goes.
local function drawn(net, batch, dtype)
  lt.seed(1)
  net = net():to(dtype)
  local batches = {}
  for step = 1, STEPS do
    local x, y = batch()
    batches[step] = { tostring(x.dtype) == "i64" and x or x:to(dtype), y }
  end
  return net, batches
end

local function numbers(losses)
  for step, loss in ipairs(losses) do losses[step] = loss:item() end
  return losses
end

-- A module that steps its optimizers itself.
local function fit(device, net, batches)
  for step, b in ipairs(batches) do batches[step] = b[1] end
  local trainer = lt.Trainer { accelerator = device, max_epochs = 1, logger = false,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false }
  trainer:fit(net, batches)
  return numbers(net.losses)
end

local function train(device, dtype, make, batch, loss_of, optimizer_of)
  local net, batches = drawn(make, batch, dtype)
  if not loss_of then return fit(device, net, batches) end
  net:to(device)
  local optimizer, losses = optimizer_of(net), {}
  for step, b in ipairs(batches) do
    local loss = loss_of(net, b[1]:to(device), b[2]:to(device))
    optimizer:zero_grad()
    loss:backward()
    optimizer:step()
    losses[step] = loss:detach()
  end
  return numbers(losses)
end

local function same(want, got, tolerance)
  assert.equal(STEPS, #got)
  for step = 1, STEPS do
    local far = math.abs(got[step] / want[step] - 1)
    assert.is_true(far <= tolerance, ("step %d: %.12g, the CPU's %.12g: %.2g"):format(step,
      got[step], want[step], far))
  end
end

describe("on xla the CPU's losses has", function()
  for _, m in ipairs(sample(ten, 5)) do
    it(m[1], function()
      if plugin.missing then return pending(plugin.missing) end
      same(train("cpu", table.unpack(m, 2)), train("xla", table.unpack(m, 2)), TOLERANCE[m[2]])
    end)
  end
end)
