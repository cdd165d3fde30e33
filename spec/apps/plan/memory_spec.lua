-- spec/apps/plan/memory_spec.lua: `ltrain plan` says what runs take: its peaks are within 10 % of
-- those of fits on 1, 2 and 4 ranks.
-- tags: sixth, slow
local blocks = require "spec.apps.plan.blocks"
local child = require "spec.cli.child"
local lt = require "ltrain"

-- Each defines make(): a module; data, and options of a Trainer (optional).
local BLOCKS <const> = blocks.script(6, 8)

local TEXT <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local T = 32
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.randint(64, {128, T}),
  lt.randint(64, {128, T})), {batch_size = 8})
local options = {}
local Text = lt.Module:extend "Text"
function Text:init()
  self.token, self.position = nn.Embedding(64, 128), nn.Embedding(T, 128)
  self.blocks = nn.ModuleList()
  for i = 1, 3 do
    self.blocks:append(nn.TransformerEncoderLayer(128, 4, {dim_feedforward = 512}))
  end
  self.head = nn.Linear(128, 64)
end
function Text:training_step(batch)
  local x = self.token(batch[1]) + self.position(lt.arange(0, T))
  for _, block in ipairs(self.blocks) do x = block(x) end
  return lt.cross_entropy(self.head(x):flatten(1, 2), batch[2]:flatten())
end
function Text:configure_optimizers() return lt.optim.AdamW(self:parameters()) end
local make = Text
]]

local IMAGES <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local data = lt.data.DataLoader(lt.data.TensorDataset(lt.randn(64, 3, 16, 16),
  lt.randint(10, {64})), {batch_size = 8})
local options = {}
local Images = lt.Module:extend "Images"
function Images:init()
  self.net = nn.Sequential(nn.Conv2d(3, 32, 3, {padding = 1}), nn.BatchNorm2d(32), nn.ReLU(),
    nn.MaxPool2d(2), nn.Conv2d(32, 64, 3, {padding = 1}), nn.BatchNorm2d(64), nn.ReLU(),
    nn.Flatten(), nn.Dropout(0.5), nn.Linear(64 * 64, 128), nn.ReLU(), nn.Linear(128, 10))
end
function Images:training_step(batch) return lt.cross_entropy(self.net(batch[1]), batch[2]) end
function Images:configure_optimizers()
  return lt.optim.SGD(self:parameters(), {lr = 0.1, momentum = 0.9})
end
local make = Images
]]

local LATE <const> = BLOCKS .. [[
local Late = Blocks:extend "Late"
function Late:init() end
function Late:configure_model()
  if self.blocks then return end
  local _ <close> = lt.device "meta"
  Blocks.init(self)
end
make = Late
]]

-- Fits of each strategy on so many ranks: the peak of rank 0 in the steps after the first, without
-- the data.
local MEASURED <const> = [[
local runtime = require "ltrain.c".runtime
for name, value in pairs {max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false} do
  options[name] = value
end
local window = options.accumulate_grad_batches or 1
local base = runtime.memory().live_bytes
local function peak(strategy, ranks)
  collectgarbage() collectgarbage()
  local most, module = 0, make()
  function module:on_train_batch_start(_, i)
    if self.trainer.global_step >= 1 then runtime.reset_peak_memory() end
  end
  function module:on_train_batch_end(_, _, i)
    if self.trainer.global_step >= 2 then
      most = math.max(most, runtime.memory().peak_bytes - base)
    end
    if i == 3 * window then return -1 end
  end
  options.strategy, options.devices, options.limit_train_batches = strategy, ranks, 3 * window
  lt.Trainer(options):fit(module, data)
  return most
end
local n = math.tointeger(tonumber(arg[1]))
for _, stage in ipairs(n == 1 and {-1} or {0, 1, 2, 3}) do
  local strategy = stage == -1 and "auto" or stage == 0 and "ddp"
    or lt.strategies.Sharded{stage = stage}
  print(peak(strategy, n))
end
]]

describe("ltrain plan", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  -- { strategy's name = {planned, measured} } in order.
  local function compared(script, ranks)
    child.write(folder .. "/model.lua", script .. blocks.planned)
    child.write(folder .. "/real.lua", script .. MEASURED)
    local status, out, err = child.run({ "plan", "model.lua", "--devices", tostring(ranks),
      "--threads", "1", "--json" }, { dir = folder })
    assert.equal(0, status, out .. err)
    local plan = lt.json.decode(out)
    local last = plan.strategies[#plan.strategies]
    if last.name == "pipeline" then table.remove(plan.strategies) end -- see pipeline_spec.lua
    -- With one thread: with several the CPU tries ways to compute products, which take memory.
    status, out, err = child.run({ "run", "real.lua", "--threads", "1", "--", tostring(ranks) },
      { dir = folder })
    assert.equal(0, status, out .. err)
    local rows, i = {}, 0
    for line in out:gmatch "%d+" do
      i = i + 1
      rows[i] = { plan.strategies[i].name, plan.strategies[i].peak, tonumber(line) }
    end
    assert.equal(#plan.strategies, i)
    return rows, plan
  end

  local function is_near(script, ranks)
    local rows, plan = compared(script, ranks)
    for _, row in ipairs(rows) do
      local name, planned, measured = table.unpack(row)
      assert.is_true(math.abs(planned - measured) <= 0.1 * measured,
        ("%s on %d ranks: planned %d, measured %d"):format(name, ranks, planned, measured))
    end
    return plan
  end

  for _, ranks in ipairs { 1, 2, 4 } do
    it(("knows the peak of perceptrons on %d ranks"):format(ranks), function()
      local plan = is_near(BLOCKS, ranks)
      assert.equal("meta", plan.device)
    end)
  end

  it("knows the peak of a transformer", function() is_near(TEXT, 4) end)

  it("knows the peak of a convolutional network", function()
    is_near(IMAGES, 1)
    is_near(IMAGES, 2)
  end)

  it("knows the peak with bf16-mixed and accumulated gradients", function()
    is_near(BLOCKS .. "options.precision, options.accumulate_grad_batches = 'bf16-mixed', 2\n", 2)
    is_near(TEXT .. "options.accumulate_grad_batches = 2\n", 2)
  end)

  it("knows the peak of a module that is made in configure_model", function()
    is_near(LATE, 4)
  end)

  it("makes the steps on the CPU where a script reads values", function()
    local plan = is_near(BLOCKS .. [[
      function Blocks:training_step(batch)
        local y = self.blocks(batch[1])
        if y:abs():max():item() > 100 then y = y / 100 end
        return lt.mse_loss(y, batch[2])
      end
    ]], 2)
    assert.equal("cpu", plan.device)
  end)
end)
