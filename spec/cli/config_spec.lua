-- spec/cli/config_spec.lua: --trainer.NAME, --model.NAME, --data.NAME, --config and --print_config.
-- tags: slow
local c = require "ltrain.c"
local child = require "spec.cli.child"

local SCRIPT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init(o)
  self:save_hyperparameters(o)
  self.l = lt.nn.Linear(1, o.width)
  print(o.width, o.lr, o.act, o.opt.betas[1], o.bias)
end
function Net:training_step(batch) return self.l(batch[1]):square():mean() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.1}) end
local Data = lt.data.DataModule:extend "Data"
function Data:init(o) self:save_hyperparameters(o) end
function Data:train_dataloader()
  print(self.hparams.batch_size)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.ones(8, 1)),
    {batch_size = self.hparams.batch_size})
end
return {
  model = Net{width = 4, lr = 0, act = "relu", opt = {betas = {0.9, 0.999}}, bias = true,
    api_key = "k"},
  data = Data{batch_size = 4}, trainer = {max_epochs = 2, enable_progress_bar = false},
}
]]

describe("the configuration of a run", function()
  local root
  before_each(function()
    root = child.folder()
    child.write(root .. "/model.lua", SCRIPT)
  end)
  after_each(function() child.remove(root) end)

  local function run(...)
    return child.run({ "run", "model.lua", ... }, { dir = root })
  end

  local function decode(text) return c.io.json_decode(text, { plain = true }) end

  it("is set by flags of the Trainer, the module and the data module", function()
    local code, out, err = run("--trainer.max_epochs=1", "--model.lr", "0.1", "--model.width", "8",
      "--model.act", "gelu", "--model.opt.betas", "0.5,0.9", "--model.bias", "false",
      "--data.batch-size", "2")
    assert.equal(0, code, err)
    assert.equal("8\t0.1\tgelu\t0.5\tfalse\n2\n", out)
    assert.matches("max_epochs = 1 %(command line; the script sets 2%)", err)
    local folder = root .. "/ltrain_logs/version_0/"
    assert.equal(0.1, decode(c.io.read_file(folder .. "hparams.json")).lr)
    local saved = decode(c.io.read_file(folder .. "config.json"))
    assert.same({ { batch_size = 2 }, { enable_progress_bar = false, max_epochs = 1 } },
      { saved.data, saved.trainer })
    assert.same({ width = 8, lr = 0.1, act = "gelu", opt = { betas = { 0.5, 0.9 } }, bias = false },
      saved.model) -- without the key
  end)

  it("is printed as --config takes it, by itself on standard output", function()
    local code, out, err = run("--print_config", "--model.width", "7", "--seed", "3",
      "--limit_train_batches", "0.5")
    assert.equal(0, code, err)
    assert.matches("^7\t0\trelu", err)
    assert.same({ seed = 3, data = { batch_size = 4 },
      model = { width = 7, lr = 0, act = "relu", opt = { betas = { 0.9, 0.999 } }, bias = true },
      trainer = { max_epochs = 2, limit_train_batches = 0.5, enable_progress_bar = false } },
      decode(out))
    child.write(root .. "/c.json", out)
    assert.equal(out, (select(2, run("--config", "c.json", "--print_config"))))
    assert.is_nil(c.io.kind(root .. "/ltrain_logs"))
  end)

  it("comes of several files, of which the later ones win, and flags over all", function()
    child.write(root .. "/a.json", '{"seed_everything": 5, "model": {"lr": 1, "width": 2}, '
      .. '"trainer": {"max_epochs": 7, "min_epochs": 1}}')
    child.write(root .. "/b.lua", "return {model = {width = 3, act = 'b'}, max_epochs = 8}")
    local code, out, err = run("--config", "a.json", "--config=b.lua", "--model.act", "c",
      "--min_epochs", "0", "--print_config")
    assert.equal(0, code, err)
    local found = decode(out)
    assert.same({ 5, 1, 3, "c", 8, 0 }, { found.seed, found.model.lr, found.model.width,
      found.model.act, found.trainer.max_epochs, found.trainer.min_epochs })
  end)

  it("is a file of YAML, as Lightning's users have it", function()
    child.write(root .. "/c.yaml", [[
# lightning.pytorch==2.6
seed_everything: 42
trainer:
  max_epochs: 1
  limit_train_batches: 0.5
  gradient_clip_val: null
  precision: 32-true
model:
  lr: 1e-3
  act: "1"
  opt:
    betas:
    - 0.5
    - .9
data: {}
ckpt_path: null
]])
    local code, out, err = run("--config", "c.yaml", "--print_config")
    assert.equal(0, code, err)
    local found = decode(out)
    assert.same({ 42, 1, 0.5, "32-true", 0.001, "1", { 0.5, 0.9 } }, { found.seed,
      found.trainer.max_epochs, found.trainer.limit_train_batches, found.trainer.precision,
      found.model.lr, found.model.act, found.model.opt.betas })
    child.write(root .. "/printed.yaml", out) -- YAML contains JSON
    assert.equal(out, (select(2, run("--config", "printed.yaml", "--print_config"))))
    assert.matches("max_epochs = 1 %(c%.yaml; the script sets 2%)",
      (select(3, run("--config", "c.yaml"))))
  end)

  it("names fields with a dash", function()
    child.write(root .. "/model.lua", (SCRIPT:gsub("lr = 0,", "lr = 0, ['a-b'] = 1,")))
    local _, out = run("--model.a-b", "2", "--data.batch-size", "2", "--print_config")
    assert.same({ 2, 2 }, { decode(out).model["a-b"], decode(out).data.batch_size })
    assert.matches("unknown option %-%-model.lr%-x", (select(3, run("--model.lr-x", "2"))))
  end)

  it("has the values of lt.args in a group", function()
    child.write(root .. "/model.lua", "local args = require 'ltrain'.args{rate = 1, model = 'm'}\n"
      .. "print(args.rate, args.model)\n" .. SCRIPT)
    child.write(root .. "/a.json", '{"args": {"rate": 2}, "model": {"lr": 1}}')
    local _, out, err = run("--config", "a.json", "--print_config")
    assert.matches("^2\tm\n4\t1\t", err)
    assert.same({ rate = 2, model = "m" }, decode(out).args)
  end)

  it("refuses names and values that the script does not take, as wrong usage", function()
    child.write(root .. "/a.json", '{"model": {"widht": 1}}')
    child.write(root .. "/b.json", '{"trainer": {"max_epoch": 1}}')
    child.write(root .. "/c.json", '{"other": {"x": 1}}')
    child.write(root .. "/d.yaml", "trainer:\n  max_epochs: 1\nmodel:\n  lr: [1\n")
    child.write(root .. "/e.yaml", "seed_everything: abc\n")
    child.write(root .. "/f.yaml", "trainer: {max_epochs: x}\n")
    child.write(root .. "/g.yaml", "model:\n  class_path: net.Net\n  init_args: {lr: 1}\n")
    child.write(root .. "/h.yaml", "trainer:\n  callbacks:\n    - class_path: EarlyStopping\n")
    child.write(root .. "/i.yaml", "model:\n  lr: 1\n  lr: 2\n")
    for wrong, flags in pairs {
      ["unknown option --model.widht; did you mean --model.width?"] = { "--model.widht", "3" },
      ["unknown option --data.size; there are batch_size"] = { "--data.size", "3" },
      ["--model.lr must be a number: got 'x'"] = { "--model.lr", "x" },
      ["a.json: unknown option 'model.widht'; did you mean 'model.width'?"] =
        { "--config", "a.json" },
      ["b.json: unknown option 'trainer.max_epoch'; did you mean 'max_epochs'?"] =
        { "--config", "b.json" },
      ["c.json: unknown option 'other'"] = { "--config", "c.json" },
      ["--config: d.yaml: line 5: did not find expected ',' or ']', while parsing a flow "
        .. "sequence of line 4"] = { "--config", "d.yaml" },
      ["e.yaml: seed_everything must be an integer: got 'abc'"] = { "--config", "e.yaml" },
      ["f.yaml: trainer.max_epochs must be an integer: got 'x'"] = { "--config", "f.yaml" },
      ["g.yaml: model.class_path: the script makes the module: write the fields of init_args under "
        .. "model"] = { "--config", "g.yaml" },
      ["h.yaml: trainer.callbacks: the script makes objects: callbacks = {...} in its trainer"] =
        { "--config", "h.yaml" },
      ["--config: i.yaml: line 3: 'lr' is there twice"] = { "--config", "i.yaml" },
    } do
      local code, _, err = run(table.unpack(flags))
      assert.same({ 2, "ltrain: run: " .. wrong .. "\n" }, { code, err })
    end
    assert.matches("run: unknown option %-%-trainer.max_epoch; did you mean %-%-max_epochs?",
      select(3, run("--trainer.max_epoch", "1")))
    assert.matches("run: %-%-model.lr needs a value", select(3, run("--model.lr")))
  end)

  it("refuses a hyper-parameter that init has read before it saves it", function()
    child.write(root .. "/model.lua", (SCRIPT:gsub("  self:save", "  local w = o.width\n%0", 1)))
    assert.matches("model.lua:5: %-%-model.width: line 4 of init reads width before "
      .. "self:save_hyperparameters%(o%): call that first", select(3, run("--model.width", "3")))
    assert.equal(0, (run("--model.lr", "3", "--print_config")))
  end)

  it("refuses a class in the module's place before its hyper-parameters", function()
    child.write(root .. "/model.lua", (SCRIPT:gsub("model = Net%b{}", "model = Net", 1)))
    local _, _, err = run("--model.lr", "1")
    assert.matches("nothing to fit: model is not a module: class Net: give an object: Net%(%)", err)
  end)

  it("needs hyper-parameters that are saved, and a loop to print", function()
    child.write(root .. "/model.lua", "print 'ran'")
    assert.same({ 2, "ran\n", "ltrain: run: --model.lr: no module of the script has saved "
      .. "hyper-parameters: call self:save_hyperparameters(o) in its init\n" },
      { run("--model.lr", "1") })
    assert.matches("run: %-%-print_config: model.lua runs no loop",
      select(3, run("--print_config")))
  end)
end)
