-- spec/cli/args_spec.lua: lt.args: a script's own flags, under `ltrain run` and without it.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local args = lt.args{
  lr = 1e-3, width = {128, "hidden units", min = 1}, augment = false,
  act = {"relu", "activation", choices = {"relu", "gelu"}},
  layers = {{64, 32}, "sizes of layers"}, data = {type = "string", help = "a folder"},
}
print(args.lr, args.width, args.act, table.concat(args.layers, "+"), args.augment, args.data)
local net = lt.nn.Linear(1, 1)
function net:training_step(x) return self(x):square():mean() end
function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = args.lr}) end
return {model = net, data = {train = {lt.ones(4, 1)}}}
]]

describe("lt.args", function()
  local root
  before_each(function()
    root = child.folder()
    child.write(root .. "/model.lua", SCRIPT)
  end)
  after_each(function() child.remove(root) end)

  local function run(...)
    return child.run({ ... }, { dir = root })
  end

  it("gives flags beside the Trainer's options, and logs them as hyper-parameters", function()
    local code, out, err = run("run", "model.lua", "--lr", "1e-2", "--max_epochs", "1",
      "--layers=1,2,3", "--augment", "--act", "gelu", "--data", "a b")
    assert.equal(0, code, err)
    assert.equal("0.01\t128\tgelu\t1+2+3\ttrue\ta b\n", out)
    assert.matches("max_epochs = 1 %(command line%)", err)
    local text = c.io.read_file(root .. "/ltrain_logs/version_0/hparams.json")
    assert.same({ lr = 0.01, width = 128, act = "gelu", layers = { 1, 2, 3 }, augment = true,
      data = "a b" }, c.io.json_decode(text, { plain = true }))
  end)

  it("gives them without a subcommand too", function()
    local code, out = run("model.lua", "--width", "7", "--augment", "false")
    assert.same({ 0, "0.001\t7\trelu\t64+32\tfalse\tnil\n" }, { code, out })
    local _, _, err = run("model.lua", "--help")
    assert.matches("the options of this script:\n  %-%-act relu|gelu  activation %(default", err)
  end)

  it("takes values from a file, below the flags; the Trainer's options as well", function()
    child.write(root .. "/c.json", '{"lr": 0.5, "width": 9, "max_epochs": 2, "layers": [5]}')
    child.write(root .. "/c.lua", "return {lr = 2^-2, augment = true}")
    local _, out, err = run("run", "model.lua", "--config", "c.json", "--width", "8")
    assert.equal("0.5\t8\trelu\t5\tfalse\tnil\n", out)
    assert.matches("max_epochs = 2", err)
    _, _, err = run("run", "model.lua", "--config", "c.json", "--max_epochs", "1")
    assert.matches("max_epochs = 1", err)
    _, out = run("run", "model.lua", "--config=c.lua", "--max_epochs", "1")
    assert.equal("0.25\t128\trelu\t64+32\ttrue\tnil\n", out)
  end)

  it("lists them in the help", function()
    local code, out = run("run", "model.lua", "--help")
    assert.equal(0, code)
    assert.matches("^Options of the script:\n  %-%-act relu|gelu +activation %(default relu%)", out)
    assert.matches("\n  %-%-layers N,%.%.%. +sizes of layers %(default 64,32%)\n", out)
    assert.matches("\nusage: ltrain run %[%-i%] SCRIPT", out)
  end)

  it("reports wrong flags as wrong usage", function()
    child.write(root .. "/bad.json", '{"widht": 1}')
    child.write(root .. "/list.json", "3")
    for wrong, flags in pairs {
      ["run: unknown option --widht; did you mean --width?"] = { "--widht", "3" },
      ["run: unknown option --max_epoch; did you mean --max_epochs?"] = { "--max_epoch", "3" },
      ["run: --act must be 'relu' or 'gelu': got 'x'"] = { "--act", "x" },
      ["run: --lr must be a number: got 'x'"] = { "--lr", "x" },
      ["run: --layers must be an integer: got 'a'"] = { "--layers", "1,a" },
      ["run: --width must be at least 1: got 0"] = { "--width", "0" },
      ["run: --width needs a value"] = { "--width" },
      ["run: --augment must be true or false: got 'yes'"] = { "--augment", "yes" },
      ["run: bad.json: unknown option 'widht'; did you mean 'width'?"] = { "--config", "bad.json" },
      ["run: --config: list.json: it is not a table of values"] = { "--config", "list.json" },
    } do
      local code, out, err = run("run", "model.lua", table.unpack(flags))
      assert.same({ 2, "", "ltrain: " .. wrong .. "\n" }, { code, out, err })
    end
    child.write(root .. "/wrong.lua", "require 'ltrain'.args{a = {type = 'integer', "
      .. "required = true}}")
    assert.same({ 2, "", "ltrain: run: --a is required\n" }, { run("run", "wrong.lua") })
    assert.matches("%-%-config: absent.json: .*No such file",
      select(3, run("run", "model.lua", "--config", "absent.json")))
  end)

  it("leaves flags of scripts that do not call it an error before anything runs", function()
    child.write(root .. "/plain.lua", "print 'ran'")
    local code, out, err = run("run", "plain.lua", "--widht", "3")
    assert.same({ 2, "" }, { code, out })
    assert.matches("run: unknown option %-%-widht\n", err)
    child.write(root .. "/plain.lua", "local f = {args = {}}; print(f.args {} )")
    child.write(root .. "/plain.lua", "local args = function() end; args { 1 }")
    assert.matches("run: unknown option %-%-widht\n",
      select(3, run("run", "plain.lua", "--widht", "3")))
  end)

  it("says what is wrong with a declaration", function()
    local function message(text)
      child.write(root .. "/wrong.lua", "local lt = require 'ltrain'\n" .. text)
      local code, _, err = run("run", "wrong.lua")
      assert.equal(1, code, err)
      return err
    end
    assert.matches("wrong.lua:2: args: max_epochs is an option of the Trainer: rename it",
      message "lt.args{max_epochs = 3}")
    assert.matches("2: args: %-%-seed is an option of the command line: rename it",
      message "lt.args{seed = 3}")
    assert.matches("args: already called: a script calls it "
      .. "once", message "lt.args{a = 1} lt.args{b = 1}")
    assert.matches("args: a: unknown field 'hepl'; did you mean 'help'?",
      message "lt.args{a = {1, hepl = 'x'}}")
    assert.matches("args: a must be 1 or 2: got 3", message "lt.args{a = {3, choices = {1, 2}}}")
    assert.matches("args: a: its default must be a number, a text, a boolean or a list of them: "
      .. "got a function", message "lt.args{a = print}")
    assert.matches("args: a name must be letters, digits and _: got 1", message "lt.args{1}")
    assert.matches("args: a table of defaults is needed: got nil", message "lt.args()")
  end)

  it("gives every rank the same", function()
    child.write(root .. "/ranks.lua", [[
      local lt = require "ltrain"
      local args = lt.args{width = 3}
      local net = lt.nn.Linear(1, 1)
      function net:training_step(b) return self(b[1]):square():mean() end
      function net:on_train_end()
        print(lt.dist.all_gather(lt.tensor{args.width}):flatten():tolist()[2])
      end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
      return {model = net, data = lt.data.DataLoader(lt.data.TensorDataset(lt.ones(4, 1)))}
    ]])
    local code, out, err = run("run", "ranks.lua", "--devices", "2", "--width", "5",
      "--max_epochs", "1")
    assert.equal(0, code, err)
    assert.matches("^5", out)
  end)
end)
