-- spec/apps/plan/command_spec.lua: `ltrain plan` as a command: its table, options and errors.
-- tags: slow
local child = require "spec.cli.child"
local lt = require "ltrain"

local MODEL <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local Net = lt.Module:extend "Net"
function Net:init()
  self.blocks = nn.Sequential()
  for i = 1, 4 do self.blocks:append(nn.Sequential(nn.Linear(512, 512), nn.Tanh())) end
end
function Net:training_step(x) return (self.blocks(x) - 1):square():mean() end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters()) end
]]

describe("ltrain plan", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  local function plan(script, ...)
    child.write(folder .. "/model.lua", script)
    return child.run({ "plan", "model.lua", ... }, { dir = folder })
  end

  local FIT <const> = MODEL .. "lt.Trainer{devices = 4, strategy = 'fsdp'}:fit(Net(), "
    .. "{lt.ones(2, 512), lt.ones(2, 512)})\nerror 'not reached'"

  it("prints a row for each strategy, which fits, and what would help", function()
    local status, out, err = plan(FIT, "--memory", "12MB")
    assert.equal("", err)
    assert.equal(0, status)
    assert.matches("model.lua: Net on 4 ranks", out, 1, true)
    local fits = {}
    for name, answer in out:gmatch "\n([%w_]+) +%d[^\n]+B +(%a+)%f[\n]" do fits[name] = answer end
    assert.equal("no", fits.ddp)
    assert.equal("yes", fits.zero1)
    assert.matches('strategy = "deepspeed_stage_2": fits in 12.0 MB and sends least', out, 1, true)
    assert.matches("\n  precision = 'bf16%-mixed' +[%d.]+ MB +%+%d+ %%\n", out)
  end)

  it("divides by the ranks what the stages divide", function()
    local _, out = plan(FIT, "--json")
    local found = lt.json.decode(out)
    local whole = 4 * (512 * 512 + 512) * 4
    local rows = {}
    for _, row in ipairs(found.strategies) do rows[row.name] = row end
    assert.equal(4, found.ranks)
    assert.same({ whole, whole, 2 * whole },
      { rows.ddp.parameters, rows.ddp.gradients, rows.ddp.state // 1024 * 1024 })
    assert.equal(whole // 4, rows.fsdp.parameters)
    assert.equal(whole // 4, rows.deepspeed_stage_2.gradients)
    assert.equal(whole, rows.deepspeed_stage_2.parameters)
    assert.equal(whole // 2, rows.zero1.state // 1024 * 1024)
  end)

  it("takes ranks, nodes and a strategy from the command line", function()
    local _, out = plan(FIT, "--devices", "2", "--nodes", "4", "--strategy", "zero1")
    assert.matches("Net on 8 ranks", out, 1, true)
    assert.matches("\nzero1 ", out, 1, true)
    assert.is_nil(out:find("\nddp ", 1, true))
  end)

  it("says what is wrong with its options", function()
    local status, _, err = plan(FIT, "--memory", "much")
    assert.equal(2, status)
    assert.matches("--memory: must be a size like 80GB or 512MiB: got much", err, 1, true)
    status, _, err = plan(FIT, "--strategy", "fsdq")
    assert.equal(2, status)
    assert.matches("got fsdq; did you mean 'fsdp'?", err, 1, true)
  end)

  it("names the line of an error of the script", function()
    local status, out = plan(MODEL:gsub("self.blocks%(x%) %- 1", "self.blocks(x) - y")
      .. "return {model = Net(), data = {lt.ones(2, 512)}}")
    assert.equal(1, status)
    assert.matches("model.lua:8: error: ", out, 1, true)
    status, out = plan(MODEL .. "print 'no fit'")
    assert.equal(1, status)
    assert.matches("nothing to plan: the script calls no trainer:fit, and returns no module", out,
      1, true)
    status, out = plan(MODEL .. "lt.Trainer{}:predict(Net(), {lt.ones(2, 512)})")
    assert.equal(1, status)
    assert.matches("nothing to plan: the first loop of the script is predict", out, 1, true)
  end)

  it("names the line that reads values, and makes the steps on the CPU", function()
    local _, out = plan(MODEL .. [[
      function Net:on_after_backward()
        if self.blocks[1][1].weight.grad:abs():max():item() > 9 then error "large" end
      end
      return {model = Net(), data = {lt.ones(2, 512), lt.ones(2, 512), lt.ones(2, 512)}}
    ]])
    assert.matches("measured by steps on this CPU, because the script reads values: model.lua:11",
      out, 1, true)
  end)
end)
