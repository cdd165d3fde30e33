-- spec/api/lightning_spec.lua: each public name of Lightning is here, with its parameters in the
-- same places, or in stdlib/core/lightning_names.lua: then errors and `ltrain check` say what to
-- write; or in spec/api/internal_names.lua.
-- tags: slow
local child = require "spec.cli.child"
local error_of = require "spec.error_of"
local foreign_names = require "ltrain.core.foreign_names"
local hooks = require "ltrain.core.hooks"
local is_internal = require "spec.api.internal_names"
local lt = require "ltrain"
local names = require "ltrain.core.lightning_names"
local old_options = require "ltrain.compat.options"
local options = require "ltrain.trainer.setup.options"
local properties = require "ltrain.trainer.properties"
local remedies = require "ltrain.core.lua_error_hints"
local signatures = require "spec.api.signatures"
local tree = require "ltrain.core.tree"

local recorded = signatures.read "lightning."

-- Where names of Lightning's rooms are looked for; those of others in all of them.
local ROOMS <const> = { callbacks = "callbacks", loggers = "loggers", strategies = "strategies",
  environments = "clusters" }
local ANYWHERE <const> = { "data", "callbacks", "loggers", "strategies", "clusters", "optim" }
-- Classes of which the objects have members.
local CLASSES <const> = { Trainer = lt.Trainer, LightningModule = lt.Module, Logger = lt.Logger,
  LightningDataModule = lt.DataModule, Callback = lt.Callback }
-- The rooms of the list.
local LISTED <const> = { "lt", "callbacks", "loggers", "strategies", "clusters" }
local OBJECTS <const> = { LightningModule = "Module", LightningDataModule = "DataModule" }
-- Fields that are there once they are set, or at their time.
local FIELDS <const> = {
  Trainer = { ckpt_path = 1, num_predict_batches = 1, num_sanity_val_batches = 1,
    num_test_batches = 1, num_val_batches = 1, predict_dataloaders = 1, test_dataloaders = 1,
    val_dataloaders = 1, train_dataloader = 1, num_training_batches = 1, model = 1,
    lightning_module = 1, num_nodes = 1, accelerator = 1, strategy = 1, scaler = 1 },
  LightningModule = { hparams = 1, example_input_array = 1, logger = 1, trainer = 1,
    get_extra_state = 1, set_extra_state = 1, device_mesh = 1 },
  LightningDataModule = { hparams = 1, state_dict = 1, load_state_dict = 1 },
  Logger = { name = 1, version = 1, save_dir = 1, log_dir = 1 }, Callback = {},
}
-- Functions whose optional arguments go by name: what precedes them is of several kinds, or their
-- places are taken by others.
local BY_NAME <const> = {
  ["Trainer:fit"] = 1, ["Trainer:validate"] = 1, ["Trainer:test"] = 1, ["Trainer:predict"] = 1,
  ["LightningModule:state_dict"] = 1, ["LightningModule:save_hyperparameters"] = 1,
  ["LightningModule:load_from_checkpoint"] = 1, ["LightningModule:to_onnx"] = 1,
  ["LightningDataModule:save_hyperparameters"] = 1, ["strategies.Strategy"] = 1,
  ["LightningDataModule:load_from_checkpoint"] = 1, ["LightningDataModule:from_datasets"] = 1,
  ["strategies.FSDPStrategy"] = 1, ["strategies.DeepSpeedStrategy"] = 1,
  ["strategies.ParallelStrategy"] = 1, ["strategies.ModelParallelStrategy"] = 1,
  ["callbacks.LambdaCallback"] = 1,
  ["Trainer:init_module"] = 1, -- its function makes the module
  ["LightningModule:modules"] = 1, ["LightningModule:named_modules"] = 1, -- each comes once
  ["LightningModule:set_submodule"] = 1, -- one that is not there is added
}

-- Parameters that few scripts give.
local RARE <const> = { artifact_location = 1, checkpoint_name = 1, copy = 1, group = 1,
  non_blocking = 1,
  initial_denom_lr = 1, log_rank_zero_only = 1, remove_duplicate = 1, rounding = 1,
  storage_options = 1, sub_dir = 1, synchronous = 1 }

local function short(room) return room:match "([%w_]+)$" end

-- The names of a text of the list, each by itself.
local function listed(room)
  local list = {}
  for line in names[room]:gsub("\n  ", " "):gmatch "[^\n]+" do
    for name in line:match "^([%w_* ]-) ?[=:] ":gmatch "%S+" do
      if not name:find("*", 1, true) then list[#list + 1] = name end
    end
  end
  return list
end

local function public_names(room)
  local list = {}
  for _, name in pairs(room ~= "lt" and lt[room] or {}) do list[#list + 1] = name end
  return list
end

local function exists(room, name)
  return pcall(function() return assert(lt[room][name]) end)
end

local function is_here(entry)
  local room = short(entry.room)
  if ROOMS[room] then return exists(ROOMS[room], entry.name) end
  if pcall(function() return assert(lt[entry.name]) end) then return true end
  for _, other in ipairs(ANYWHERE) do
    if exists(other, entry.name) then return true end
  end
end

local a_trainer <const> = lt.Trainer { logger = false }

local function has_member(kind, name)
  if kind == "Trainer" then
    return options[name] or FIELDS.Trainer[name] or properties[name]
      or not foreign_names.rows("Trainer")[name] and a_trainer[name] ~= nil
  end
  local is_listed <const> = foreign_names.rows("Module")[name] ~= nil
  return hooks.by_name[name] or FIELDS[kind][name] or CLASSES[kind][name] ~= nil
    or kind == "LightningModule" and not is_listed and lt.nn.ReLU()[name] ~= nil
end

-- The lines of `list` for which `fails` returns something.
local function failures(list, fails)
  local found = {}
  for _, entry in ipairs(list) do
    local said = fails(entry)
    if said then found[#found + 1] = ("%s.%s%s"):format(entry.room, entry.name, said) end
  end
  return table.concat(found, "\n")
end

local function words(text)
  local list = {}
  for word in text:gmatch "[%w_]+" do list[#list + 1] = word end
  return list
end

-- What is wrong with `here`, the names of our parameters in their places.
local function compare(entry, here, who, where)
  local wrong = {}
  for place, parameter in ipairs(entry.parameters or {}) do
    local name = parameter.name
    local free = place <= #here and (not parameter.optional or hooks.by_name[entry.name])
      or parameter.by_name or BY_NAME[who]
    local said = foreign_names.rows(where .. "()")[name] or RARE[name]
    if not (free or here[place] == name or said) then
      wrong[#wrong + 1] = name
    end
  end
  return #wrong > 0 and (": %s at these places; here %s"):format(table.concat(wrong, ", "),
    table.concat(here, ", ")) or nil
end

describe("a public name of Lightning", function()
  it("is here, or on the list", function()
    assert.equal("", failures(recorded, function(entry)
      local kind = short(entry.room)
      local object = OBJECTS[kind] or kind
      local said
      if CLASSES[kind] then
        said = has_member(kind, entry.name) or foreign_names.rows(object)[entry.name]
      else
        local room = ROOMS[kind] or "lt"
        said = is_here(entry) or foreign_names.of(room, entry.name, public_names(room))
      end
      return not said and not is_internal(entry) and " is missing" or nil
    end))
  end)

  it("is not on the list when it is here", function()
    local stale = {}
    for _, room in ipairs(LISTED) do
      for _, name in ipairs(listed(room)) do
        local here = room == "lt" and rawget(lt, name) or room ~= "lt" and exists(room, name)
        if here then stale[#stale + 1] = room .. "." .. name end
      end
    end
    for kind in tree.pairs(CLASSES) do
      local object = OBJECTS[kind] or kind
      for _, name in ipairs(names[object] and listed(object) or {}) do
        if has_member(kind, name) then stale[#stale + 1] = kind .. ":" .. name end
      end
    end
    assert.same({}, stale)
  end)

  it("has its parameters, in their places", function()
    assert.equal("", failures(recorded, function(entry)
      local kind = short(entry.room)
      local class, room = CLASSES[kind], ROOMS[kind]
      if room and exists(room, entry.name) then
        local who = room .. "." .. entry.name
        local one = lt[room][entry.name]
        return compare(entry, one.__arguments and words(one.__arguments)
          or signatures.own(one.init), who, who)
      elseif class and entry.parameters and hooks.by_name[entry.name] then
        local here = words(hooks.by_name[entry.name].args)
        if kind == "Callback" then here = { "trainer", "pl_module", table.unpack(here) } end
        return compare(entry, here, entry.name, entry.name)
      elseif class and entry.parameters and type(class[entry.name]) == "function" then
        local here = signatures.own(class[entry.name])
        local places = class.__options and class.__options[entry.name] or ""
        table.move(words(places), 1, #words(places), #here + 1, here)
        return compare(entry, here, kind .. ":" .. entry.name, entry.name)
      end
    end))
  end)

  it("takes them there", function()
    local stopping = lt.callbacks.EarlyStopping("val_loss", 0.1, 5, { mode = "max" })
    assert.same({ "val_loss", 0.1, 5, "max" },
      { stopping.monitor, stopping.min_delta, stopping.patience, stopping.mode })
    assert.equal("out", lt.callbacks.ModelCheckpoint("out", "best", "val_loss").dirpath)
    assert.equal("step", lt.callbacks.LearningRateMonitor("step").logging_interval)
    assert.equal("net", lt.loggers.CSVLogger("logs", "net").name)
    local net = lt.nn.Linear(1, 1)
    function net:training_step(batch) return self(batch):sum() end
    function net:configure_optimizers() return lt.optim.SGD(self:parameters(), 0.1) end
    local trainer = lt.Trainer { max_epochs = 1, logger = false, enable_progress_bar = false,
      enable_checkpointing = false, enable_model_summary = false }
    trainer:fit { model = net, train_dataloaders = { lt.ones(1, 1) } }
    assert.equal(1, trainer.global_step)
  end)

  it("is an option of the Trainer, of today or of older Lightning", function()
    for _, entry in ipairs(recorded) do
      if entry.room == "lightning.pytorch" and entry.name == "Trainer" then
        for _, parameter in ipairs(entry.parameters) do
          assert(options[parameter.name] or old_options.instead[parameter.name], parameter.name)
        end
      end
    end
  end)
end)

describe("the list of Lightning's names", function()
  it("names what there is", function()
    for _, text in tree.pairs(names) do
      for path in text:gsub("\n  ", " "):gmatch "%f[%w]lt(%.[%w_.]*[%w_])" do
        local value = lt
        for part in path:gmatch "[%w_]+" do value = value[part] end
        assert(value ~= nil, path)
      end
    end
  end)

  it("is what errors of rooms say", function()
    for _, room in ipairs(LISTED) do
      local object = room == "lt" and lt or lt[room]
      for _, name in ipairs(listed(room)) do
        local message = error_of(function() return object[name] end)
        assert(message:find("; " .. foreign_names.of(room, name), 1, true), message)
      end
    end
  end)

  it("is what errors of members say", function()
    local trainer = lt.Trainer { logger = false }
    for _, name in ipairs(listed "Trainer") do
      assert.equal(("Trainer: there is no trainer.%s; %s"):format(name,
        foreign_names.rows "Trainer"[name]),
        (error_of(function() return trainer[name] end):gsub("^[^:]*:%d+: ", "")))
    end
    for _, object in ipairs { "Module", "Logger" } do
      for _, name in ipairs(listed(object)) do
        for _, said in ipairs { "call a nil value (method", "index a nil value (field" } do
          local message = ("script.lua:1: attempt to %s '%s')"):format(said, name)
          assert.equal(message .. "; " .. foreign_names.member(name), remedies(message, "x()"))
        end
      end
    end
  end)

  it("is what errors of parameters say", function()
    local net = lt.nn.ReLU()
    local calls = { to = function(o) net:to(o) end }
    for key in tree.pairs(names) do
      local where = key:match "^(.*)%(%)$"
      local room, class = (where or ""):match "^(%w+)%.(%w+)$"
      for _, name in ipairs(where and listed(key) or {}) do
        local option = { device = where == "to" and "cpu" or nil, [name] = true }
        local call = room and lt[room][class] or calls[where]
        local message = error_of(function() call(option) end)
        local hint = foreign_names.rows(key)[name]
        assert(message:find("; " .. hint, 1, true), message)
      end
    end
  end)

  it("is what `ltrain check` says", function()
    local wanted = {}
    local lines = { "local lt = require 'ltrain'", "local function all(trainer, net, logger)" }
    local function add(text, said)
      lines[#lines + 1] = ("  print(%s)"):format(text)
      wanted[#lines] = said
    end
    for _, room in ipairs(LISTED) do
      for _, name in ipairs(listed(room)) do
        add(room == "lt" and "lt." .. name or ("lt.%s.%s"):format(room, name),
          foreign_names.of(room, name))
      end
    end
    for object, variable in tree.pairs { Trainer = "trainer", Module = "net",
      Logger = "logger" } do
      for _, name in ipairs(listed(object)) do
        add(("%s.%s"):format(variable, name), foreign_names.rows(object)[name])
      end
    end
    lines[#lines + 1] = "end"
    lines[#lines + 1] = "return all"
    local folder = child.folder()
    child.write(folder .. "/script.lua", table.concat(lines, "\n"))
    local _, out, err = child.run({ "check", "script.lua" }, { dir = folder })
    child.remove(folder)
    for line, said in tree.pairs(wanted) do
      local found = out:match(("script%%.lua:%d: ([^\n]*\n[^\n]*)"):format(line)) or ""
      assert(found:find(said, 1, true), ("%s\n%s: %s"):format(err, lines[line], found))
    end
  end)
end)
