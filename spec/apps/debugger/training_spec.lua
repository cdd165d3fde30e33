-- spec/apps/debugger/training_spec.lua: the debugger in runs of a Trainer: hooks, errors, the first
-- NaN, ranks; and that looking changes nothing.
-- tags: slow, waits
local child = require "spec.cli.child"

local MODEL <const> = [[
local lt = require "ltrain"
local nn = lt.nn
local o = lt.args { stop = "", fail = "", at = 2 }
local Net = lt.Module:extend("Net")
function Net:init()
  self.fc = nn.Linear(4, 3)
  self.drop = nn.Dropout(0.5)
end
function Net:forward(x)
  local h = self.drop(self.fc(x))
  return h
end
function Net:training_step(batch, batch_idx)
  local x, y = batch[1], batch[2]
  local rank = self.trainer.global_rank
  local here = batch_idx == o.at and (o.stop == "all" or o.stop == "rank1" and rank == 1)
  if here then lt.breakpoint() end
  local h = self(x)
  local failing = batch_idx == o.at and (rank == 1 or self.trainer.world_size == 1)
  if failing and o.fail == "shape" then h = h:matmul(x) end
  if failing and o.fail == "log" then h = (h - 50):log() end
  if failing and o.fail == "beside" then h = h + (x:sum() * 0 - 1):log() end
  if failing and o.fail == "sqrt" then h = h + (h * 0):sqrt() end
  if failing and o.fail == "caught" then pcall(error, "caught") end
  local loss = nn.functional.cross_entropy(h, y)
  return loss + 0 * lt.randn(1):sum() * math.random()
end
function Net:validation_step(batch)
  if o.stop == "validation" then lt.breakpoint() end
  self:log("val", nn.functional.cross_entropy(self(batch[1]), batch[2]))
end
function Net:configure_optimizers() return lt.optim.Adam(self:parameters(), { lr = 0.1 }) end
local xs, ys = lt.randn(32, 4), lt.randint(0, 3, { 32 })
local data = lt.data.DataLoader(lt.data.TensorDataset(xs, ys), { batch_size = 4 })
local net = Net()
local trainer = lt.Trainer { max_epochs = 1, logger = false, enable_checkpointing = false,
  enable_progress_bar = false, enable_model_summary = false, num_sanity_val_steps = 0 }
trainer:fit(net, { train = data, val = data })
print(trainer.global_step, lt.hash(net:state_dict()))
]]

local folder

local function run(words, lines, options)
  options = options or {}
  local arguments = { "run", "model.lua", "--seed", "7", "--accelerator", "cpu" }
  for _, word in ipairs(words) do arguments[#arguments + 1] = word end
  options.dir, options.stdin = folder, table.concat(lines or {}, "\n") .. "\n"
  local status, out, err = child.run(arguments, options)
  return status, out, err, out:match "(%d+\t%x+)\n$"
end

describe("the debugger in a run", function()
  setup(function()
    folder = child.folder()
    child.write(folder .. "/model.lua", MODEL)
  end)
  teardown(function() child.remove(folder) end)

  it("leaves the weights as they would be, whatever is looked at", function()
    local _, _, _, plain = run {}
    local _, out, err, looked = run({ "--stop", "all" }, { "lt.randn(3)", "math.random()",
      "self(x):sum()", "self:state_dict()", ":locals", "lt.seed(3)", "lt.rand(2)",
      ":break model.lua:13", ":next", "lt.randn(1)", ":continue", ":up", ":delete", ":continue" })
    assert.matches("model.lua:17: in Net:training_step", out, 1, true)
    assert.matches("breakpoint 1  model.lua:13", out, 1, true)
    assert.not_matches("stdin:", err, 1, true)
    assert.is_string(plain)
    assert.equal(plain, looked)
  end)

  it("changes what is assigned: the rest of the step has it, and its gradient", function()
    local _, _, _, plain = run {}
    local _, _, _, changed = run({ "--stop", "all" }, { "x = x * 3", ":c" })
    assert.is_string(changed)
    assert.not_equal(plain, changed)
  end)

  it("opens in validation, and steps to the next hook", function()
    local _, out = run({ "--stop", "validation" }, { ":step", ":delete", ":c", ":c", ":c", ":c",
      ":c", ":c", ":c", ":c", ":c" })
    assert.matches("model.lua:29: in Net:validation_step.*at validation_step\nmodel.lua:29", out)
    _, out = run({ "--stop", "all" }, { ":step", ":c" })
    assert.matches("at training_step\nmodel.lua:14: in Net:training_step", out, 1, true)
  end)

  it("takes no time from max_time", function()
    local arguments = "run model.lua --seed 7 --accelerator cpu --stop all --max_time 2"
    local status, out = child.shell(("(sleep 3; echo :c) | ltrain %s"):format(arguments),
      { dir = folder })
    assert.equal(0, status)
    assert.matches("\n[^\n]*8\t%x+\n$", out)
  end)

  it("opens where an error was raised, with shapes, at the script's function", function()
    local status, out, err = run({ "--debug", "--fail", "shape" }, { "h.shape[2]", ":where",
      ":next", ":c" })
    assert.equal(1, status)
    assert.matches("^model.lua:20: matmul: inner sizes differ: %[4, 3%] x %[4, 4%]", out)
    assert.matches("> 20 |   if failing and o.fail == \"shape\" then h = h:matmul(x) end", out, 1,
      true)
    assert.matches("x = tensor [4, 4] f32", out, 1, true)
    assert.matches("h = tensor [4, 3] f32", out, 1, true)
    assert.matches("\ndebug> 3\n", out, 1, true)
    assert.matches("next: the script has failed here", err, 1, true)
    assert.matches("ltrain: model.lua:20: matmul: inner sizes differ", err, 1, true)
  end)

  it("shows all frames of the error, and runs the script's code again", function()
    local _, out, err = run({ "--debug", "--fail", "shape" }, { ":bt", ":reload" })
    assert.matches("stack traceback:\n.*model.lua:20: in .*ltrain.trainer.", out)
    assert.matches("reloaded 1 file\n", out, 1, true)
    assert.matches("standard input has ended", err, 1, true)
  end)

  it("fails as it would without input, and does not open without --debug", function()
    local status, _, err = run({ "--debug", "--fail", "shape" })
    assert.equal(1, status)
    assert.matches("ltrain: model.lua:20: matmul", err, 1, true)
    local _, out = run({ "--fail", "shape" }, { ":c" })
    assert.equal("", out)
  end)

  it("leaves errors that the script catches to it", function()
    local status, out = run({ "--debug", "--fail", "caught" }, { ":c" })
    assert.equal(0, status)
    assert.not_matches("debug>", out)
  end)

  it("stops at the operation that made the first NaN", function()
    local status, out = run({ "--debug", "nan", "--fail", "log" }, { "h:isnan():any():item()",
      ":c" })
    assert.equal(1, status)
    assert.matches("^model.lua:21: log: the result is nan, its inputs are not", out)
    assert.matches("in Net:training_step", out, 1, true)
    assert.matches("debug> false\n", out, 1, true)
  end)

  it("stops where a NaN comes to what is learnt, with the operation that made it", function()
    local status, out = run({ "--debug", "nan", "--fail", "beside" }, { "h:isnan():any():item()",
      ":c" })
    assert.equal(1, status)
    assert.matches("^model.lua:22: add: the result is nan, as an input is: log at model.lua:22 "
      .. "made the first nan", out)
    assert.matches("in Net:training_step", out, 1, true)
    assert.matches("debug> false\n", out, 1, true)
  end)

  it("stops at the derivative that made the first infinity, with the line of its operation",
    function()
      local status, out = run({ "--debug", "nan", "--fail", "sqrt" }, { "batch[1].shape[1]", ":c" })
      assert.equal(1, status)
      assert.matches("backward: the derivative of sqrt at model.lua:23 is inf", out, 1, true)
      assert.matches("23 |   if failing and o.fail == \"sqrt\"", out, 1, true)
      assert.matches("module = Net, batch = {tensor [4, 4] f32, tensor [4] i64}", out, 1, true)
      assert.matches("debug> 4\n", out, 1, true)
    end)

  it("opens in a Trainer that runs in a coroutine", function()
    child.write(folder .. "/co.lua", (MODEL:gsub("trainer:fit(%b())",
      "coroutine.wrap(function() trainer:fit%1 end)()")))
    local status, out = child.run({ "run", "co.lua", "--debug", "--fail", "shape" },
      { dir = folder, stdin = ":where\n:c\n" })
    assert.equal(1, status)
    assert.equal(2, select(2, out:gsub("debug> ", "")))
    assert.matches("a coroutine, resumed by)\n  co.lua:", out, 1, true)
  end)

  for _, ranks in ipairs { "2", "4" } do
    it("belongs to the rank that fails, while the others wait: " .. ranks .. " ranks", function()
      local arguments = "run model.lua --accelerator cpu --devices " .. ranks
        .. " --debug --fail shape --at 1 --seed 7"
      local status, out, err = child.shell(("(sleep 2; echo rank; echo h.shape[2]; echo :c) "
        .. "| ltrain %s"):format(arguments), { dir = folder, env = { LT_TIMEOUT = "1" } })
      assert.equal(1, status)
      assert.matches("^rank 1: model.lua:20: matmul: inner sizes differ", out)
      assert.matches("[rank 1] debug> 1\n[rank 1] debug> 3\n[rank 1] debug> ", out, 1, true)
      assert.matches("ltrain: rank 1: model.lua:20: matmul", err, 1, true)
      assert.not_matches("late", err)
      assert.equal(3, select(2, out:gsub("debug> ", "")))
    end)

    it("asks all ranks at a breakpoint, one after the other: " .. ranks .. " ranks", function()
      local words = { "--devices", ranks, "--at", "1" }
      local _, _, _, plain = run(words)
      local lines = {}
      for _ = 1, tonumber(ranks) do
        table.move({ "lt.randn(2)", "rank", ":c" }, 1, 3, #lines + 1, lines)
      end
      table.move({ "--stop", "all" }, 1, 2, #words + 1, words)
      local status, out, _, looked = run(words, lines)
      assert.equal(0, status)
      for rank = 0, tonumber(ranks) - 1 do
        assert.matches(("\n[rank %d] debug> %d\n"):format(rank, rank), out, 1, true)
      end
      assert.is_string(plain)
      assert.equal(plain, looked)
    end)
  end

  it("stops on one rank only with --debug_rank", function()
    local status, out = run({ "--devices", "2", "--stop", "all", "--at", "1", "--debug_rank", "1" },
      { "rank", ":c" })
    assert.equal(0, status)
    assert.matches("[rank 1] debug> 1\n", out, 1, true)
    assert.not_matches("rank 0: lt.breakpoint", out)
  end)

  it("ends with the other ranks when one of them is killed meanwhile", function()
    local status, _, err = run({ "--devices", "2", "--stop", "rank1", "--at", "1" }, {
      "parent = io.open('/proc/self/stat'):read('a'):match('^%d+ %b() %a (%d+)')",
      "os.execute('kill -9 ' .. parent)" })
    assert.equal(137, status)
    assert.equal("", err:match "late" or "")
  end)

  it("needs a choice that it knows", function()
    local status, _, err = child.run({ "run", "--debug=inf", "model.lua" }, { dir = folder })
    assert.equal(2, status)
    assert.matches("--debug must be true, false or 'nan': got 'inf'", err, 1, true)
    assert.equal(2, (child.run({ "run", "--debug_rank", "-1", "model.lua" }, { dir = folder })))
  end)

  it("refuses a rank that is not there", function()
    local status, _, err = run({ "--devices", "2", "--debug_rank", "2" })
    assert.equal(2, status)
    assert.matches("ltrain: --debug_rank must be below the number of ranks, 2: got 2\n", err, 1,
      true)
    status, _, err = run({ "--debug_rank", "1" })
    assert.equal(2, status)
    assert.matches("below the number of ranks, 1: got 1", err, 1, true)
    child.write(folder .. "/launch.lua", "local lt = require 'ltrain'\n"
      .. "lt.dist.launch(2, function() end)\nlt.dist.launch(1, function() end)")
    local function launch(rank)
      local code = child.run({ "run", "--debug_rank", rank, "launch.lua" }, { dir = folder })
      return code
    end
    assert.same({ 0, 2 }, { launch "1", launch "2" }) -- one that was there may be gone later
    child.write(folder .. "/launch.lua", "print(1)")
    assert.same({ 0, 2 }, { launch "0", launch "3" })
  end)
end)
