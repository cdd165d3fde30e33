-- spec/cuda/counts_spec.lua: what a training step costs a GPU's host: launches, copies, waits, as
-- the fake runtime counts them.
local counts = require "spec.cuda.counts"
local both = require "spec.cuda.both"
local lt = require "ltrain"
local nn = lt.nn

local function case(name, fn)
  if counts then return both.it(name, fn) end
  pending(name .. " (only the fake runtime counts)")
end

local function layers()
  return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
end

local Net <const> = lt.Module:extend "Net"

function Net:init(logs)
  self.layers, self.logs, self.rows = layers(), logs, {}
end

function Net:training_step(batch)
  local loss = nn.functional.cross_entropy(self.layers(batch[1]), batch[2])
  if self.logs then self:log("loss", loss) end
  return loss
end

function Net:on_train_batch_start() table.insert(self.rows, counts()) end

function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.01 }) end

-- Fits on 12 batches of the CPU; what each step from the third on took.
local function steps(logs)
  local data, net = {}, Net(logs)
  for k = 1, 12 do data[k] = { lt.randn { 32, 8 }, lt.randint(0, 4, { 32 }) } end
  local trainer = lt.Trainer {
    accelerator = "cuda", devices = 1, max_epochs = 1, logger = false, log_every_n_steps = 6,
    enable_checkpointing = false, enable_progress_bar = false, enable_model_summary = false,
  }
  trainer:fit(net, data)
  return table.move(net.rows, 4, #net.rows, 1, {}) -- a row is what the step before it took
end

describe("a training step on cuda", function()
  case("launches a few kernels of enough threads, and neither copies nor waits", function()
    local net = layers():to "cuda"
    local optimizer = lt.optim.Adam(net:parameters(), { lr = 0.01 })
    local x = lt.randn({ 32, 8 }, { device = "cuda" })
    local y = lt.randint(0, 4, { 32 }, { device = "cuda" })
    for k = 1, 4 do
      counts()
      optimizer:zero_grad()
      local loss = nn.functional.cross_entropy(net(x), y)
      loss:backward()
      optimizer:step()
      local c = counts()
      if k > 1 then
        assert.is_true(c.launches <= 26, c.launches .. " launches")
        assert.is_true(c.threads >= 32 * c.launches)
        assert.equal(0, c.copies)
        assert.equal(0, c.waits)
      end
    end
  end)

  -- The one wait is for the flag of the step before: whether its gradients were finite.
  for _, logs in ipairs { false, true } do
    case(("of the Trainer waits once, %s a logged value"):format(logs and "with" or "without"),
      function()
        local rows, shown = steps(logs), 0
        for _, row in ipairs(rows) do
          assert.is_true(row.launches <= 36, row.launches .. " launches")
          assert.is_true(row.copies <= 5, row.copies .. " copies") -- the batch, the flag, a value
          if row.waits > 1 then shown = shown + 1 end
        end
        assert.is_true(shown <= #rows // 6 + 1, ("%d steps wait more than once"):format(shown))
      end)
  end
end)
