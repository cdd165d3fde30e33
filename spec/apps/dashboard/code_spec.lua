-- spec/apps/dashboard/code_spec.lua: the code that runs have kept, and which files of two runs are
-- the same one.
local Catalogue = require "ltrain.apps.dashboard.Catalogue"
local c = require "ltrain.c"
local child = require "spec.cli.child"
local run_diff = require "ltrain.apps.dashboard.run_diff"

local TRAIN <const> = [[
local lt = require "ltrain"
local Net = require "models.net"
local data = require "data.net"
lt.Trainer{max_epochs = 1, limit_train_batches = 1, enable_progress_bar = false,
  enable_model_summary = false, enable_checkpointing = false}:fit(Net(), data())
]]
local NET <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend("Net")
function Net:init() self.body = lt.nn.Linear(2, 1) end
function Net:training_step(x) return self.body(x):square():mean() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end
return Net
]]
local DATA <const> = [[
local lt = require "ltrain"
return function() return { lt.randn(4, 2) } end
]]

describe("the code of runs", function()
  local root

  -- Trains in a folder of its own; the run is root/runs/NAME.
  local function train(name, script, files)
    local folder = root .. "/" .. name
    for path, text in pairs(files) do
      assert(c.io.make_folder((folder .. "/" .. path):match "^(.*)/"))
      child.write(folder .. "/" .. path, text)
    end
    local status, _, err = child.run({ "run", script, "--run_dir", root .. "/runs/" .. name },
      { dir = folder })
    assert.equal(0, status, err)
  end

  local function compare(a, b)
    local catalogue = Catalogue { root .. "/runs" }
    catalogue:scan()
    local by_name = {}
    for _, run in ipairs(catalogue.list) do by_name[run.name] = run end
    return run_diff.answer(by_name[a], by_name[b]).code
  end

  -- "file < what it was: changed lines", one a file.
  local function told(code)
    local list = {}
    for i, file in ipairs(code.files) do
      local lines = {}
      for _, line in ipairs(file.lines) do
        if line.kind == "+" or line.kind == "-" then lines[#lines + 1] = line.kind .. line.text end
      end
      list[i] = ("%s%s%s: %s"):format(file.file, file.was and " < " .. file.was or "",
        file.only and " only " .. file.only or "", table.concat(lines, " "))
    end
    return list
  end

  setup(function()
    root = child.folder()
    train("first", "train.lua", { ["train.lua"] = TRAIN, ["models/net.lua"] = NET,
      ["data/net.lua"] = DATA })
  end)
  teardown(function() child.remove(root) end)

  it("keep files of one name in different folders apart", function()
    for path, text in pairs { ["train.lua"] = TRAIN, ["models/net.lua"] = NET,
      ["data/net.lua"] = DATA } do
      assert.equal(text, c.io.read_file(root .. "/runs/first/code/" .. path))
    end
    train("second", "train.lua", { ["train.lua"] = TRAIN, ["models/net.lua"] = NET,
      ["data/net.lua"] = (DATA:gsub("4, 2", "8, 2")) })
    local code = compare("first", "second")
    assert.is_false(code.same)
    assert.same({ "data/net.lua: -return function() return { lt.randn(4, 2) } end "
      .. "+return function() return { lt.randn(8, 2) } end" }, told(code))
    assert.is_true(compare("first", "first").same)
  end)

  it("keep a module that has the name of the script, and one of a folder's init.lua", function()
    train("names", "net.lua", { ["net.lua"] = "package.path = 'lib/?.lua;lib/?/init.lua;'\n"
      .. TRAIN:gsub("models.net", "net"), ["lib/net.lua"] = NET, ["lib/data/net/init.lua"] = DATA })
    local folder = root .. "/runs/names/code/"
    assert.equal(NET, c.io.read_file(folder .. "net_2.lua"))
    assert.matches('require "net"', c.io.read_file(folder .. "net.lua"), 1, true)
    assert.equal(DATA, c.io.read_file(folder .. "data/net/init.lua"))
  end)

  it("know files that were renamed, with a line of them changed or none", function()
    train("renamed", "experiment.lua", { ["experiment.lua"] = TRAIN:gsub("models.net", "nets.deep"),
      ["nets/deep.lua"] = NET:gsub("0.01", "0.02"), ["data/net.lua"] = DATA })
    assert.same({ "experiment.lua < train.lua: -local Net = require \"models.net\" "
      .. "+local Net = require \"nets.deep\"", "nets/deep.lua < models/net.lua: -function "
      .. "Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.01}) end "
      .. "+function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.02}) "
      .. "end" }, told(compare("first", "renamed")))
    train("moved", "copy.lua", { ["copy.lua"] = TRAIN, ["models/net.lua"] = NET,
      ["data/net.lua"] = DATA })
    local code = compare("first", "moved")
    assert.is_true(code.same)
    assert.same({ "copy.lua < train.lua: " }, told(code))
  end)

  it("name files that only one run has", function()
    train("alone", "train.lua", { ["train.lua"] = TRAIN:gsub("\n", "\nrequire 'more'\n", 1),
      ["models/net.lua"] = NET, ["data/net.lua"] = DATA, ["more.lua"] = "return 1\n" })
    assert.same({ "more.lua only b: +return 1", "train.lua: +require 'more'" },
      told(compare("first", "alone")))
    assert.same({ "more.lua only a: -return 1", "train.lua: -require 'more'" },
      told(compare("alone", "first")))
  end)
end)
