-- spec/apps/plan/traffic_spec.lua: `ltrain plan` says what ranks send: as many bytes as c.dist
-- counts in fits on 2 ranks.
-- tags: half, slow
local child = require "spec.cli.child"
local lt = require "ltrain"

local MODEL <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.first = nn.Linear(64, 512)
  self.blocks = nn.Sequential()
  for i = 1, 3 do
    self.blocks:append(nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 512)))
  end
end
function Net:training_step(x) return (self.blocks(self.first(x)) - 1):square():mean() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters()) end
local data = {}
for i = 1, 8 do data[i] = lt.ones(2, 64) end
local options = {logger = false, max_steps = 3}
]]

local PLANNED <const> = "return {model = Net(), data = data, trainer = options}\n"

-- What rank 0 completes from the end of the second step to that of the third.
local COUNTED <const> = [[
local d = require "ltrain.c".dist
options.enable_checkpointing, options.enable_progress_bar = false, false
options.enable_model_summary, options.devices = false, 2
local function counted(strategy)
  local net, before, result = Net(), nil, {}
  function net:on_train_batch_end()
    if self.trainer.global_step == 2 then before = before or d.traffic() end
    if self.trainer.global_step < 3 then return end
    for kind, now in pairs(d.traffic()) do
      result[kind] = now.bytes - (before[kind] and before[kind].bytes or 0)
    end
  end
  options.strategy = strategy
  lt.Trainer(options):fit(net, data)
  return result
end
local all = {ddp = counted "ddp"}
for stage, name in ipairs {"zero1", "deepspeed_stage_2", "fsdp"} do
  all[name] = counted(lt.strategies.Sharded{stage = stage})
end
all.pipeline = counted {"pipeline", split = {2}} -- rank 0 has most
print(lt.json.encode(all))
]]

local CONTROL <const> = 1024 -- bytes of a step's votes, and of checks that a plan leaves out

describe("ltrain plan: bytes sent", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  local function ran(...)
    local status, out, err = child.run({ ... }, { dir = folder })
    assert.equal(0, status, out .. err)
    return lt.json.decode(out)
  end

  local function plan(more, ...)
    child.write(folder .. "/model.lua", MODEL .. more .. PLANNED)
    local rows = {}
    local found = ran("plan", "model.lua", "--json", ...)
    for _, row in ipairs(found.strategies) do rows[row.name] = row end
    return rows
  end

  local function is_counted(more)
    child.write(folder .. "/real.lua", MODEL .. more .. COUNTED)
    local counted = ran("run", "real.lua")
    for name, row in pairs(plan(more, "--devices", "2")) do
      for _, kind in ipairs { "all_reduce", "all_gather", "reduce_scatter", "send" } do
        local planned = row.collectives[kind] and row.collectives[kind].bytes or 0
        assert.is_true(math.abs(planned - (counted[name][kind] or 0)) <= CONTROL,
          ("%s, %s: planned %d, counted %d"):format(name, kind, planned, counted[name][kind] or 0))
      end
    end
  end

  it("are those of fits on 2 ranks", function() is_counted "" end)

  it("are those of fits with accumulated gradients", function()
    is_counted "options.accumulate_grad_batches = 2\n"
  end)

  it("are those of the formulas of a ring", function()
    local rows = plan("", "--devices", "4")
    local bytes = 4 * (64 * 512 + 512 + 3 * (2 * 512 * 256 + 256 + 512))
    local function near(expected, got)
      assert.is_true(math.abs(expected - got) <= CONTROL, ("%d, got %d"):format(expected, got))
    end
    near(2 * 3 / 4 * bytes, rows.ddp.sent)
    near(3 * 3 / 4 * bytes, rows.zero1.sent)
    near(2 * 3 / 4 * bytes, rows.deepspeed_stage_2.sent)
    near(3 * 3 / 4 * bytes - 3 / 4 * 4 * (64 * 512 + 512), rows.fsdp.sent)
  end)

  it("go to fewer ranks with replicas", function()
    local rows = plan([[
      options.strategy, options.devices = {"fsdp", replicas = 2}, 2
    ]], "--devices", "4")
    local all = plan("", "--devices", "4")
    assert.is_true(rows.fsdp.sent < all.fsdp.sent)
  end)
end)
