-- spec/docs/names_spec.lua: every public name is on a page of docs/reference.
--
-- A name that begins with `_` is not public. Names that a class inherits are looked for where they
-- are defined.
-- tags: slow
local exports = require "ltrain.core.exports"
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local tree = require "ltrain.core.tree"

local ROOMS <const> = { "nn", "optim", "data", "metrics", "callbacks", "loggers", "strategies",
  "clusters", "distributions", "transforms", "parallel" }

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

-- The names in the reference: "lt.data.DataModule.from_datasets" stands for all its parts too.
local reference = {}

local function add_parts(name)
  for from in name:gmatch "()%f[%w_]" do
    for to in name:gmatch "%f[^%w_]()" do reference[name:sub(from, to - 1)] = true end
  end
end

do
  local pipe <close> = assert(io.popen "cat docs/reference/*.md")
  for name in pipe:read "a":gmatch "[%a_][%w_]*[.:][%w_.:]*[%w_]" do
    if not reference[name] then add_parts(name) end
  end
end

-- What stands before the names of methods, where it is not the class in small letters.
local OBJECTS <const> = { CheckpointIO = "checkpoint_io", ClusterEnvironment = "environment",
  DataModule = "data_module" }

local function is_public(name)
  return type(name) == "string" and not name:find "^_"
end

-- The names that a page must have out of `names`, each written in one of the `forms`.
local function missing_of(names, ...)
  local missing = {}
  for name in tree.pairs(names) do
    local found = not is_public(name)
    for _, before in ipairs { ... } do found = found or reference[before .. name] end
    if not found then missing[#missing + 1] = (...) .. name end
  end
  return table.concat(missing, " ")
end

local function own(class)
  local names = {}
  for name, value in next, class do
    if type(value) == "function" then names[name] = value end
  end
  return names
end

-- The names of a catalogue; nn.Module is lt.Module, which has a page of its own.
local function names_of(room)
  local names = {}
  for _, name in pairs(lt[room]) do
    if not (exports[name] and lt[room][name] == lt[name]) then names[name] = true end
  end
  return names
end

-- Made by init, called as the object: documented as the class. The rest is class.lua's.
local OF_CLASS <const> = { init = true, forward = true, extend = true, super = true }

-- Hooks have a page of their own, which is made from this table.
local function is_hook(name)
  return hooks.by_name[name] ~= nil
end

describe("docs/reference has", function()
  it("every name of lt", function()
    local names = {}
    for name in next, lt do names[name] = true end
    for name in next, exports do names[name] = true end
    assert.equal("", missing_of(names, "lt.", "x:"))
  end)

  it("every method of tensors", function()
    local index = debug.getmetatable(lt.zeros(1)).__index
    local names = {}
    for i = 1, 8 do
      local _, methods = debug.getupvalue(index, i)
      for name, value in next, type(methods) == "table" and methods or {} do
        if type(value) == "function" then names[name] = true end
      end
    end
    assert(next(names))
    assert.equal("", missing_of(names, "x:", "lt."))
  end)

  for _, room in ipairs(ROOMS) do
    it("every name of lt." .. room, function()
      assert.equal("", missing_of(names_of(room), room .. "."))
    end)
  end

  it("every name of lt.dist", function()
    local names = {}
    for name in next, lt.dist do names[name] = true end
    assert.equal("", missing_of(names, "dist."))
  end)

  it("every name of nn.init and nn.functional", function()
    assert.equal("", missing_of(lt.nn.init, "nn.init."))
    assert.equal("", missing_of(lt.nn.functional, "lt.", "x:", "F."))
  end)

  -- Classes by the word that stands before their methods.
  local function check(class, object, name)
    local names = {}
    for method, value in next, own(class) do
      if not OF_CLASS[method] and not is_hook(method) then names[method] = value end
    end
    assert.equal("", missing_of(names, object .. ":", object .. ".", name .. "."))
  end

  for name, object in tree.pairs { Module = "net", Trainer = "trainer" } do
    it("every method of lt." .. name, function() check(lt[name], object, "lt." .. name) end)
  end

  for _, name in ipairs { "Accelerator", "Callback", "CheckpointIO", "ClusterEnvironment",
    "DataModule", "Logger", "Metric", "Optimizer", "Precision", "Strategy" } do
    it("every method of lt." .. name, function()
      check(lt[name], OBJECTS[name] or name:lower(), name)
    end)
  end

  for _, room in ipairs(ROOMS) do
    it("every method of the classes of lt." .. room, function()
      local page = read("docs/reference/" .. room .. ".md") .. read "docs/reference/module.md"
      local missing = {}
      for _, name in pairs(lt[room]) do
        local value = lt[room][name]
        local is_class = type(value) == "table" and rawget(value, "__name")
        for method in next, is_class and own(value) or {} do
          local there = page:find("[`:.]" .. method .. "[(`]")
          if not there and is_public(method) and not is_hook(method) and not OF_CLASS[method] then
            missing[#missing + 1] = ("%s.%s:%s"):format(room, name, method)
          end
        end
      end
      table.sort(missing)
      assert.equal("", table.concat(missing, " "))
    end)
  end

  it("every function of ltrain.h", function()
    local page, seen = read "docs/reference/ltrain_h.md", 0
    for name in read "lua/host/ltrain.h":gmatch "LT_API [^;(]-([%w_]+)%(" do
      seen = seen + 1
      assert(page:find(name .. "(", 1, true), name)
    end
    assert(seen > 15, seen)
  end)
end)
