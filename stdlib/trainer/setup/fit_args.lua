--- stdlib/trainer/setup/fit_args.lua: reads the arguments of fit, validate, test and predict.
--
-- trainer:fit(module [, train [, val]] [, options]), where both may be tables of loaders by name;
-- the others (module [, loaders] [, options]).
-- In place of loaders a DataModule, or a table { train =, val =, test =, predict = }.
local DataModule = require "ltrain.data.DataModule"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local tree = require "ltrain.core.tree"

local fit_args = {}

local KIND <const> = { validate = "val", test = "test", predict = "predict" }

-- Options of a loop, and under which name they are kept.
local OPTIONS <const> = {
  train = "train", train_dataloaders = "train", val = "val", val_dataloaders = "val",
  test = "test", predict = "predict", dataloaders = "loaders", datamodule = "data_module",
  ckpt_path = "ckpt_path", weights_only = "weights_only", verbose = "verbose",
  return_predictions = "return_predictions",
}

-- An empty table is a data set in the first place and options later: { ckpt_path = nil }.
local function is_options(value, place)
  if type(value) ~= "table" or getmetatable(value) ~= nil or type(value.batches) == "function" then
    return false
  end
  local key = next(value)
  return type(key) == "string" or key == nil and place > 1
end

-- Known by what it has, so that a plain table of functions is one too; one whose hooks are all
-- misspelt by its class.
local function is_data_module(value)
  if type(value) ~= "table" or type(value.batches) == "function" then return false end
  if class.is_a(value, DataModule) then return true end
  for _, kind in ipairs { "train", "val", "test", "predict" } do
    if type(value[kind .. "_dataloader"]) == "function" then return true end
  end
  return false
end

-- Whether a table in the place of a loader of fit has loaders by name: none is an option's.
local function are_loaders(value)
  local names = tree.keys(OPTIONS)
  for name, loader in tree.pairs(value) do
    if OPTIONS[name] or errors.did_you_mean(name, names) ~= ""
      or type(loader) ~= "table" and type(loader) ~= "function" then
      return false
    end
  end
  return next(value) ~= nil
end

local function take_options(found, options, fn)
  local names = tree.keys(OPTIONS)
  for name, value in tree.pairs(options) do
    local key = OPTIONS[name]
    local near = errors.did_you_mean(name, names)
    if not key and near == "" and class.has_method(value, "batches") then
      errors.blame("%s: unknown option %s: give loaders by name as {%s = {...}}", fn,
        errors.show(name), KIND[fn] or "train")
    elseif not key then
      errors.blame("%s: unknown option %s%s", fn, errors.show(name), near)
    end
    if key == "loaders" then key = KIND[fn] or "train" end
    if found[key] ~= nil then errors.blame("%s: %s is given twice", fn, name) end
    found[key] = value
  end
end

local function take_position(found, value, fn, count)
  if type(value) == "string" then
    errors.blame("%s: a loader is needed: got %s: a checkpoint is {ckpt_path = %s}", fn,
      errors.show(value), errors.show(value))
  elseif is_data_module(value) then
    found.data_module = value
  elseif fn == "fit" and count < 2 then
    found[count == 0 and "train" or "val"] = value
    return count + 1
  elseif fn ~= "fit" and count < 1 then
    found[KIND[fn]] = value
    return count + 1
  else
    errors.blame("%s: one argument too many: %s", fn, errors.show(value))
  end
  return count
end

--- The module and what follows it, also of a call by names alone: trainer:fit{model = net,
--- train_dataloaders = loader}.
function fit_args.split(value, ...)
  if type(value) ~= "table" or getmetatable(value) ~= nil or select("#", ...) > 0
    or next(value) == nil then
    return value, ...
  end
  local options = {}
  for name, field in next, value do
    if name ~= "model" and not OPTIONS[name] then return value end
    options[name] = field
  end
  options.model = nil
  return value.model, options
end

--- A table with train, val, test, predict, data_module, ckpt_path, weights_only, verbose,
--- return_predictions.
function fit_args.read(fn, ...)
  local found, count = {}, 0
  for i = 1, select("#", ...) do
    local value = select(i, ...)
    local by_name = fn == "fit" and i <= 2 and count == i - 1
    if is_options(value, i) and not is_data_module(value)
      and not (by_name and are_loaders(value)) then
      take_options(found, value, fn)
    elseif value ~= nil then
      count = take_position(found, value, fn, count)
    elseif fn == "fit" then
      count = count + 1
    end
  end
  if found.data_module and (found.train ~= nil or found[KIND[fn] or "val"] ~= nil) then
    errors.blame("%s: loaders and a DataModule are given: give one of them", fn)
  end
  return found
end

return fit_args
