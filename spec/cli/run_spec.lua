-- spec/cli/run_spec.lua: the command words that run a script, as child processes.
-- tags: slow
local child = require "spec.cli.child"

local HERE <const> = io.popen("pwd"):read("l")
local LINE <const> = HERE .. "/spec/cli/scripts/line.lua"

describe("ltrain run", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(arguments, what)
    return child.run(arguments, { dir = folder, env = { WHAT = what or "" } })
  end

  it("fits the model that a script returns and exits with 0", function()
    local status, _, err = run { "run", LINE }
    assert.equal(0, status, err)
    local file <close> = assert(io.open(folder .. "/ltrain_logs/version_0/metrics.csv"))
    assert.matches("val_loss", file:read("l"))
  end)

  it("reports each option that overrides the script", function()
    local status, _, err = run { "run", LINE, "--max_epochs", "1", "--limit_train_batches=2",
      "--gradient_clip_val", "nil" }
    assert.equal(0, status, err)
    assert.matches("max_epochs = 1 (command line; the script sets 2)", err, 1, true)
    assert.matches("limit_train_batches = 2 (command line)", err, 1, true)
    assert.matches("gradient_clip_val = nil (command line)", err, 1, true)
  end)

  it("gives the options to a Trainer that the script makes, and fits no second time", function()
    local status, _, err = run({ "run", LINE, "--max_epochs", "1" }, "own")
    assert.equal(0, status, err)
    local _, times = err:gsub("max_epochs = 1 %(command line", "")
    assert.equal(1, times)
  end)

  it("lets every rank speak with --verbose, and says which", function()
    child.write(folder .. "/ranks.lua", [[
      local lt = require "ltrain"
      local net = lt.nn.Linear(2, 1)
      function net:training_step(x) return self(x):mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      function net:on_train_start()
        self.trainer:say("said")
        self:print("through the module")
        print("plainly")
      end
      return {model = net, data = {lt.ones(4, 2), lt.ones(4, 2)}}
    ]])
    local words = { "run", "ranks.lua", "--devices", "2", "--max_epochs", "1", "--logger", "false",
      "--enable_checkpointing", "false" }
    local _, out, err = run(words)
    assert.equal(1, select(2, err:gsub("ltrain: said", "")))
    assert.equal(1, select(2, out:gsub("through the module", "")))
    words[#words + 1] = "--verbose"
    _, out, err = run(words)
    assert.matches("\nltrain: said\n", err)
    assert.matches("\n%[rank 1%] ltrain: said\n", err)
    for _, text in ipairs { "through the module", "plainly" } do
      assert.equal(1, select(2, ("\n" .. out):gsub("\n" .. text .. "\n", "")), out)
      assert.equal(1, select(2, ("\n" .. out):gsub("\n%[rank 1%]\t" .. text .. "\n", "")), out)
    end
  end)

  it("gives the script its own arguments in `arg` and `...`", function()
    child.write(folder .. "/args.lua", [[
      print(arg[0], arg[1], arg[2], ..., select("#", ...))
    ]])
    local status, out = run { "run", "args.lua", "--", "--data", "x y" }
    assert.equal(0, status)
    assert.equal("args.lua\t--data\tx y\t--data\t2\n", out:gsub("x y\t2", "2"))
  end)

  it("finds modules beside the script", function()
    child.write(folder .. "/beside.lua", "return {answer = 42}")
    child.write(folder .. "/main.lua", "print(require 'beside'.answer)")
    local status, out = child.run({ "run", folder .. "/main.lua" })
    assert.equal(0, status)
    assert.equal("42\n", out)
  end)

  it("keeps the command line's seed over the script's", function()
    child.write(folder .. "/seed.lua", [[
      local lt = require "ltrain"
      lt.seed(1)
      print(lt.rand(3))
    ]])
    local _, one = run { "run", "seed.lua", "--seed", "5" }
    local _, two, err = run { "run", "seed.lua", "--seed", "5" }
    local _, other = run { "run", "seed.lua", "--seed", "6" }
    assert.equal(one, two)
    assert.not_equal(one, other)
    assert.matches("seed = 5 (command line; the script sets 1)", err, 1, true)
  end)

  it("takes the seed of the environment where nobody says another", function()
    child.write(folder .. "/seed.lua", [[
      local lt = require "ltrain"
      if arg[1] then lt.seed(tonumber(arg[1])) end
      print(lt.rand(3))
    ]])
    local function drawn(seed, ...)
      local status, out, err = child.run({ "run", "seed.lua", ... },
        { dir = folder, env = { LT_SEED = seed } })
      return status == 0 and out or err
    end
    local five = drawn("5")
    assert.equal(five, drawn("5"))
    assert.not_equal(five, drawn("6"))
    assert.equal(five, drawn("6", "--seed", "5"))
    assert.equal(five, drawn("6", "--", "5"))
    for _, seed in ipairs { "-1", "1.5", "five", "99999999999999999999", "" } do
      assert.matches(("LT_SEED = '%s': must be an integer of at least 0"):format(seed),
        drawn(seed), 1, true)
    end
  end)

  it("sets the threads", function()
    child.write(folder .. "/threads.lua", "print(require 'ltrain.c'.runtime.get_threads())")
    assert.equal("3\n", select(2, run { "run", "threads.lua", "--threads", "3" }))
    assert.equal("5\n", select(2, child.run({ "threads.lua" },
      { dir = folder, env = { OMP_NUM_THREADS = "5" } })))
  end)

  it("runs a script that returns nothing and trains nothing", function()
    assert.equal(0, (run({ "run", LINE }, "nothing")))
  end)

  for what, text in pairs {
    class = "it returned class Line: give an object: Line()",
    table = "it returned a table, neither a module nor {model =, data =, trainer =}",
    typo = "unknown option 'modle'; did you mean 'model'?",
  } do
    it("says what is wrong with a returned " .. what, function()
      local status, _, err = run({ "run", LINE }, what)
      assert.equal(1, status)
      assert.matches(text, err, 1, true)
    end)
  end

  it("shows the user's line of an error in training_step, and no frame of ours", function()
    local status, _, err = run({ "run", LINE }, "error")
    assert.equal(1, status)
    assert.matches("ltrain: .*scripts/line%.lua:17: no step today", err)
    assert.not_matches("ltrain%.trainer", err)
  end)

  it("shows the line, both shapes and the module of an error in an op", function()
    local status, _, err = run({ "run", LINE }, "shape")
    assert.equal(1, status)
    assert.matches("scripts/line%.lua:18: add: .*%[4, 1%].*%[5, 7%] %(in Line%)", err)
  end)

  it("shows the frames between, when there are some", function()
    child.write(folder .. "/deep.lua", "local function f() error('deep') end\n"
      .. "local function g() f() end\ng()\n")
    local status, _, err = run { "run", "deep.lua" }
    assert.equal(1, status)
    assert.equal("ltrain: deep.lua:1: deep\nstack traceback:\n\tdeep.lua:1: in upvalue 'f'\n"
      .. "\tdeep.lua:2: in local 'g'\n\tdeep.lua:3: in main chunk\n", err)
  end)

  it("shows the line of a misspelt option beside one that the command line gives", function()
    child.write(folder .. "/misspelt.lua", [[
      require("ltrain").Trainer{max_peochs = 5}
    ]])
    local status, _, err = run { "run", "misspelt.lua", "--max_epochs", "1" }
    assert.equal(1, status)
    assert.matches("ltrain: misspelt.lua:1: Trainer: unknown option 'max_peochs'; did you mean "
      .. "'max_epochs'?\n", err, 1, true)
  end)

  it("shows a syntax error with its line", function()
    child.write(folder .. "/bad.lua", "local x =\n")
    local status, _, err = run { "run", "bad.lua" }
    assert.equal(1, status)
    assert.matches("^ltrain: bad%.lua:2: unexpected symbol near <eof>\n$", err)
  end)

  for _, case in ipairs {
    { { "run" }, "ltrain: run: which script?\nusage: ltrain run [-i] SCRIPT" },
    { { "run", "no.lua" }, "ltrain: cannot open no.lua: No such file or directory\n" },
    { { "run", LINE, "--max_epoch", "3" },
      "ltrain: run: unknown option --max_epoch; did you mean --max_epochs?\n" },
    { { "run", LINE, "--gpus", "1" },
      "ltrain: run: --gpus is not an option: write accelerator = 'gpu' and devices\n" },
    { { "run", LINE, "--max_epochs", "many" },
      "ltrain: run: --max_epochs must be an integer: got 'many'\n" },
    { { "fit", LINE, "--accelerator", "gpu" },
      "ltrain: Trainer: accelerator = 'gpu': " },
    { { "fit", LINE, "--min_epochs", "5", "--max_epochs", "2" },
      "ltrain: Trainer: min_epochs = 5 is above max_epochs = 2" },
    { { "fit", LINE, "--val_check_interval", "1000" },
      "ltrain: val_check_interval: 1000 is more than the" },
    { { "fitt", LINE }, "ltrain: no command and no file is called 'fitt'; did you mean 'fit'?\n" },
    { { "-x" }, "ltrain: unknown option -x; options of a command follow it: ltrain run SCRIPT -x\n"
      .. "usage: ltrain" },
  } do
    it("exits with 2 for `ltrain " .. table.concat(case[1], " "):gsub(HERE .. "/", "") .. "`",
      function()
        local status, out, err = run(case[1])
        assert.equal(2, status)
        assert.equal("", out)
        assert.matches(case[2], err, 1, true)
      end)
  end
end)

describe("ltrain fit, validate, test, predict", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function run(arguments, what)
    return child.run(arguments, { dir = folder, env = { WHAT = what or "" } })
  end

  local CHECKPOINT <const> = "ltrain_logs/version_0/checkpoints/epoch=1-step=8.ckpt"

  it("run the loop of their name from a checkpoint", function()
    local status, _, err = run { "fit", LINE }
    assert.equal(0, status, err)
    local out
    status, out, err = run { "validate", LINE, "--ckpt_path", CHECKPOINT }
    assert.equal(0, status, err)
    assert.not_matches("no %-%-ckpt_path", err)
    local value = out:match("val_loss%s+([%d.e-]+)")
    assert.truthy(value)
    status, out, err = run { "test", LINE, "--ckpt_path", CHECKPOINT }
    assert.equal(0, status, err)
    assert.equal(value, out:match("test_loss%s+([%d.e-]+)"))
    status, out, err = run { "predict", LINE, "--ckpt_path", CHECKPOINT, "--output", "p.st" }
    assert.equal(0, status, err)
    assert.equal("wrote p.st: predictions [16, 1]\n", out)
    assert.same({ 16, 1 }, require "ltrain".load(folder .. "/p.st").predictions.shape)
  end)

  it("show predictions that are not tensors as what they are", function()
    local status, out, err = run({ "predict", LINE }, "predict words")
    assert.equal(0, status, err)
    assert.equal("1: word\n2: 1.5\n3: a table\n4: true\n", out)
  end)

  it("show, and write, predictions by name", function()
    child.write(folder .. "/model.lua", [[
      local lt = require "ltrain"
      local Net = lt.Module:extend("Net")
      function Net:predict_step(x)
        return {class = x:select(2, 1):to "i64", score = x * 0.5}
      end
      return {model = Net(), data = {predict = {lt.tensor{{1, 2}, {3, 4}}, lt.tensor{{5, 6}}}}}
    ]])
    local status, out, err = run { "predict", "model.lua" }
    assert.equal(0, status, err)
    assert.equal("class: tensor([1, 3, 5])\nscore: tensor([[0.5000, 1.0000],\n        "
      .. "[1.5000, 2.0000],\n        [2.5000, 3.0000]])\n", out)
    status, out, err = run { "predict", "model.lua", "--output", "p.st" }
    assert.equal(0, status, err)
    assert.equal("wrote p.st: class [3], score [3, 2]\n", out)
    assert.same({ 1, 3, 5 }, require "ltrain".load(folder .. "/p.st").class:tolist())
  end)

  for _, word in ipairs { "validate", "test", "predict" } do
    it("say that no checkpoint was named: " .. word, function()
      local warning = word .. ": no --ckpt_path: these are the weights that the script made\n"
      local status, _, err = run { word, LINE }
      assert.equal(0, status, err)
      assert.matches("ltrain: warning: " .. warning, err, 1, true)
      local _, help = run { word, "--help" }
      assert.matches(("usage: ltrain %s SCRIPT [--ckpt_path FILE] ["):format(word), help, 1, true)
    end)
  end

  it("refuse a script that runs another loop itself", function()
    local status, _, err = run({ "validate", LINE }, "own")
    assert.equal(1, status)
    assert.matches("line%.lua:%d+: fit: `ltrain validate` runs no other loop", err)
  end)

  it("refuse a script that returns nothing", function()
    local status, _, err = run({ "fit", LINE }, "nothing")
    assert.equal(1, status)
    assert.matches("line%.lua:%d+: fit: nothing to fit: it returned nothing", err)
  end)

  it("name a checkpoint that is not there", function()
    local status, _, err = run { "test", LINE, "--ckpt_path", "no.ckpt" }
    assert.equal(1, status)
    assert.matches("no.ckpt", err, 1, true)
  end)
end)
