-- spec/apps/plan/command_spec.lua: `ltrain plan` as a command: its table, options and errors.
-- tags: slow, third
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

  it("recomputes blocks that init makes or configure_model, and no others", function()
    local made = FIT:gsub("function Net:init%(%)", "function Net:configure_model()\n"
      .. "  if self.blocks then return end")
    local alone = FIT:gsub("nn.Sequential%(nn.Linear%(512, 512%), nn.Tanh%(%)%)",
      "nn.Linear(512, 512)")
    for script, wanted in pairs { [FIT] = true, [made] = true, [alone] = false } do
      local status, out = plan(script, "--memory", "12MB")
      assert.equal(0, status)
      assert.equal(wanted, out:find("activation_checkpointing of the blocks", 1, true) ~= nil)
    end
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

  local DIVIDED <const> = [[
    local lt = require "ltrain"
    local Net = lt.Module:extend "Net"
    function Net:configure_model()
      self.net = lt.nn.Sequential(lt.nn.Linear(64, 256), lt.nn.GELU(), lt.nn.Linear(256, 64))
      local styles = lt.parallel
      lt.parallelize(self.net, self.device_mesh, {["0"] = styles.ColwiseParallel(),
        ["2"] = styles.RowwiseParallel()})
    end
    function Net:training_step(x) return self.net(x):square():mean() end
    function Net:configure_optimizers() return lt.optim.SGD(self.net:parameters(), {lr = 0.1}) end
    local o = {strategy = lt.strategies.ModelParallelStrategy{tensor_parallel_size = 2}}
    return {model = Net(), data = {lt.ones(4, 64)}, trainer = o}
  ]]

  it("has rows of tensor parallel groups, which have parts and share samples", function()
    local status, out, err = plan(DIVIDED, "--devices", "4", "--json", "--time")
    assert.equal("", err)
    assert.equal(0, status, out)
    local found, part = lt.json.decode(out).strategies, 4 * (64 + 1 + 64) -- of a hidden unit
    assert.equal("tensor_parallel_size 2", found[1].name)
    assert.equal(part * 128 + 4 * 64, found[1].parameters)
    assert.equal("tensor_parallel_size 4", found[2].name)
    assert.equal(part * 64 + 4 * 64, found[2].parameters)
    assert.same({ 2, 1, 4 }, { found[1].data_ranks, found[2].data_ranks, found[1].samples })
    assert.equal(2, #found) -- under ddp the module has no mesh
    -- The outputs of a pair, the gradients of two groups, and what a step tells all ranks.
    assert.equal(3, found[1].collectives.all_reduce.calls)
  end)

  it("shards along the mesh by the stage of the script's strategy", function()
    local part = 4 * (64 + 1 + 64) * 128 + 4 * 64 -- of a group of two
    for stage = 1, 3 do
      local script = DIVIDED:gsub("tensor_parallel_size = 2", "%0, stage = " .. stage)
      local _, out, err = plan(script, "--devices", "4", "--json")
      assert.equal("", err)
      local found = lt.json.decode(out).strategies[1]
      assert.equal("tensor_parallel_size 2", found.name)
      assert.equal(stage == 3 and part // 2 or part, found.parameters)
      assert.equal(stage > 1 and part // 2 or part, found.gradients)
    end
  end)

  it("plans the devices of strategy = 'dp' as ranks", function()
    local script <const> = FIT:gsub("'fsdp'", "'dp'")
    local status, out, err = plan(script)
    assert.equal(0, status, err)
    assert.matches("Net on 4 ranks.-\nddp +[%d.]+ MB", out)
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

  local HARDWARE <const> = { "--flops", "100T", "--bandwidth", "2T" }

  local function json(...)
    local status, out, err = plan(FIT, "--json", ...)
    assert.equal(0, status, out .. err)
    return lt.json.decode(out)
  end

  it("says how long a step takes, by steps on this CPU", function()
    local found = json("--devices", "2", "--strategy", "ddp, fsdp", "--time")
    assert.equal(2, #found.strategies)
    for _, row in ipairs(found.strategies) do
      assert.equal("steps", row.method)
      assert.is_true(row.computing > 0 and row.seconds > row.computing)
    end
    assert.is_true(found.hardware.links.intra.bandwidth > 0)
    local _, out = plan(FIT, "--devices", "2", "--time")
    assert.matches("\ntime: steps of one rank on this CPU, %d+ threads?; links: [^\n]+, "
      .. "measured between 2 ranks here\n", out)
    assert.matches('\nstrategy = "[%w_]+": is fastest\n', out)
  end)

  it("says how long a step takes by rates, as the roofline has it", function()
    local link = { "--link", "1000000TB 0us" }
    local function computing(flops, bandwidth)
      return json("--strategy", "ddp", "--flops", flops, "--bandwidth", bandwidth,
        table.unpack(link)).strategies[1]
    end
    local slow = computing("1M", "1000000T")
    assert.equal("rates", slow.method)
    -- Forward and backward of four layers of 512 x 512 on two rows; the first has no input's.
    assert.near((3 * 4 - 1) * 2 * 2 * 512 * 512 / 1e6, slow.computing, 0.01 * slow.computing)
    assert.near(slow.computing, slow.seconds, 1e-6)
    local narrow = computing("1000000T", "1M")
    -- The weights are read by forward and by backward, and Adam reads and writes more.
    assert.is_true(narrow.computing > 6 * 4 * 4 * 512 * 512 / 1e6)
    assert.near(narrow.computing / 2, computing("1000000T", "2M").computing,
      0.001 * narrow.computing)
  end)

  it("simulates numbers of ranks", function()
    local function simulated(link, ...)
      local found = json("--devices", "4", "--link", link, "--simulate", "1..32", ...)
      return found.scaling
    end
    local ideal = simulated("1000000TB 0us", table.unpack(HARDWARE))
    local ranks = {}
    for i, at in ipairs(ideal) do
      ranks[i] = at.ranks .. "/" .. at.nodes
      for _, step in ipairs(at.steps) do assert.near(1, step.efficiency, 1e-3) end
    end
    assert.same({ "1/1", "2/1", "4/1", "8/2", "16/4", "32/8" }, ranks)
    local real = simulated("intra=100GB 2us, inter=10Gb 10us", table.unpack(HARDWARE))
    for k, step in ipairs(real[1].steps) do
      assert.near(1, step.efficiency, 1e-9)
      for i = 2, #real do
        assert.is_true(real[i].steps[k].efficiency < real[i - 1].steps[k].efficiency,
          ("%s on %d ranks"):format(step.name, real[i].ranks))
      end
    end
    local _, out = plan(FIT, "--strategy", "ddp", "--devices", "4", "--link", "100Gb",
      "--simulate", "8,24", table.unpack(HARDWARE))
    assert.matches("\nranks +nodes +ddp\n8 +2 +[%d.]+ %a+ +%d+ %%\n24 +6 ", out)
  end)

  it("says what is wrong with options of times", function()
    for _, case in ipairs {
      { "--flops: must be a rate like 300T: got fast", "--flops", "fast", "--bandwidth", "1T" },
      { "--flops, --bandwidth: a rate of each is needed: got one", "--flops", "1T" },
      { "(b: bits, B: bytes): got 100G", "--link", "100G" },
      { "--simulate: must be numbers of ranks like 8..4096 or 8,24: got 8..4", "--simulate",
        "8..4" },
      { "--simulate: 6 ranks on machines of 4", "--simulate", "6", "--link", "100Gb" },
      { "8 ranks are on several machines of --devices 4: their links are needed", "--simulate",
        "8", "--link", "intra=1GB" },
    } do
      local status, _, err = plan(FIT, table.unpack(case, 2))
      assert.equal(2, status)
      assert.matches(case[1], err, 1, true)
    end
  end)
end)
