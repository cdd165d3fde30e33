-- spec/apps/plan/pipeline_spec.lua: `ltrain plan` of a pipeline: bytes of the stage that needs
-- most, and a time with the bubble.
-- tags: slow, third
local blocks = require "spec.apps.plan.blocks"
local child = require "spec.cli.child"
local lt = require "ltrain"

local MODEL <const>, PLANNED <const> = blocks.script(8, 16), blocks.planned

-- The most that any rank needs in the steps after the first.
local MEASURED <const> = [[
local runtime = require "ltrain.c".runtime
for name, value in pairs {max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false, limit_train_batches = 4} do
  options[name] = value
end
options.devices = math.tointeger(tonumber(arg[1]))
local base = runtime.memory().live_bytes
local most, module = 0, make()
function module:on_train_batch_start() runtime.reset_peak_memory() end
function module:on_train_batch_end()
  if self.trainer.global_step >= 2 then
    most = math.max(most, runtime.memory().peak_bytes - base)
  end
end
function module:on_train_end()
  local all = lt.dist.all_gather(most)
  if lt.dist.rank() == 0 then print(math.max(table.unpack(all))) end
end
lt.Trainer(options):fit(module, data)
]]

local RATES <const> = { "--flops", "100G", "--bandwidth", "100G" }

describe("ltrain plan of a pipeline", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  local function plan(script, ...)
    child.write(folder .. "/model.lua", script)
    local status, out, err = child.run({ "plan", "model.lua", "--json", "--threads", "1", ... },
      { dir = folder })
    assert.equal(0, status, out .. err)
    local found, rows = lt.json.decode(out), {}
    for _, row in ipairs(found.strategies) do rows[row.name] = row end
    return rows, found
  end

  local function strategy(o) return ("options.strategy = {'pipeline', %s}\n"):format(o) end

  for _, row in ipairs {
    { 2, "balance = 'parameters', microbatches = 4" },
    { 4, "balance = 'parameters', microbatches = 8" },
    { 2, "balance = 'parameters', microbatches = 4, schedule = 'gpipe'" },
    { 4, "balance = 'parameters', microbatches = 4, stages = 2" },
    { 4, "balance = 'parameters', microbatches = 4, stages = 2, sharding_stage = 1" },
    { 4, "balance = 'parameters', microbatches = 4, stages = 2, sharding_stage = 2, units = 1000" },
    { 4, "balance = 'parameters', microbatches = 4, stages = 2, sharding_stage = 3, units = 1000" },
  } do
    local ranks, options = table.unpack(row)
    it(("knows the peak on %d ranks: %s"):format(ranks, options), function()
      local planned = plan(MODEL .. strategy(options) .. PLANNED, "--devices", tostring(ranks))
      child.write(folder .. "/real.lua", MODEL .. strategy(options) .. MEASURED)
      local status, out, err = child.run({ "run", "real.lua", "--threads", "1", "--",
        tostring(ranks) }, { dir = folder })
      assert.equal(0, status, out .. err)
      local measured, peak = tonumber(out:match "%d+"), planned.pipeline.peak
      assert.is_true(math.abs(peak - measured) <= 0.1 * measured,
        ("planned %d, measured %d"):format(peak, measured))
    end)
  end

  it("has the bubble of the schedule in its time", function()
    local link = { "--link", "1000TB 0ns" }
    local function time(script, ...)
      return plan(script .. PLANNED, RATES[1], RATES[2], RATES[3], RATES[4], link[1], link[2], ...)
    end
    local one = time(MODEL).single_device
    for schedule, bubble in pairs { ["1f1b"] = 3 / 11, gpipe = 3 / 11, zero_bubble = 3 / 27,
      interleaved = 3 / 19 } do
      local row = time(MODEL .. strategy(("schedule = '%s'"):format(schedule)), "--devices",
        "4").pipeline
      assert.near(bubble, row.bubble, 1e-12)
      assert.near(row.computing / (1 - bubble), row.seconds, 1e-3 * row.seconds)
      -- Smaller products, and one optimizer step in four.
      assert.is_true(row.computing > one.seconds / 4 and row.computing < one.seconds, schedule)
    end
  end)

  it("sends activations, not gradients, and is not recommended for that alone", function()
    local rows, found = plan(MODEL .. PLANNED, "--devices", "4")
    assert.equal(16 * 256 * 4, rows.pipeline.sent) -- of the first stage, which keeps most
    assert.equal(1, rows.pipeline.data_ranks)
    assert.equal(16, rows.pipeline.samples)
    assert.not_equal("pipeline", found.recommended)
    assert.is_true(rows.pipeline.parameters < rows.ddp.parameters / 3)
  end)

  it("has half of the state where two pipelines share it, and gathers parameters", function()
    local wanted = plan(MODEL .. strategy "stages = 2" .. PLANNED, "--devices", "4").pipeline
    local row = plan(MODEL .. strategy "stages = 2, sharding_stage = 1" .. PLANNED, "--devices",
      "4").pipeline
    assert.equal(wanted.state // 2, row.state)
    assert.equal(row.parameters, row.collectives.all_gather.bytes)
  end)

  it("has no row where the blocks are not a chain, or are too few", function()
    local sums = MODEL .. [[
      function Blocks:training_step(batch)
        local x = batch[1]
        for _, block in ipairs(self.blocks) do x = x + block(x) end
        return x:mean()
      end
    ]]
    assert.is_nil(plan(sums .. PLANNED, "--devices", "4").pipeline)
    assert.is_nil(plan(MODEL .. PLANNED, "--devices", "16").pipeline)
    child.write(folder .. "/model.lua", sums .. PLANNED)
    local status, out = child.run({ "plan", "model.lua", "--devices", "4", "--strategy",
      "pipeline" }, { dir = folder })
    assert.equal(1, status)
    assert.matches("the first argument of blocks%[2%] is not what blocks%[1%] has returned", out)
  end)
end)
