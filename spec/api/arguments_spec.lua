-- spec/api/arguments_spec.lua: no public function ignores an argument.
local hooks = require "ltrain.core.hooks"
local lt = require "ltrain"
local public = require "spec.api.public"
local rows = require "spec.api.rows"

local named <const>, takes_options = public.named, public.takes_options

-- Any list of arguments is longer than what a function takes that names its parameters.
local MANY <const> = {}
for i = 1, 20 do MANY[i] = {} end

-- Rows are called as a script of this name, so that errors name it.
local SCRIPT <const> = "script.lua"

local function environment()
  local w = lt.parameter(lt.ones(2, 2))
  local net = lt.nn.Linear(2, 2)
  local function fit(step)
    local module = { w = lt.parameter(lt.ones(1)), training_step = function(self)
      step(self)
      return self.w:sum()
    end, configure_optimizers = function(self) return lt.optim.SGD(self:parameters()) end }
    lt.Trainer { logger = false, enable_checkpointing = false, enable_progress_bar = false,
      enable_model_summary = false, max_epochs = 1 }:fit(module, { lt.ones(1) })
  end
  return { lt = lt, x = lt.ones(2, 2), w = w, net = net, fit = fit, print = print,
    data = lt.data.TensorDataset(lt.ones(2, 2)), sgd = lt.optim.SGD(net:parameters()),
    OPTIONS = { no_such_option = 1 }, EXTRA = "extra" }
end

-- What a row raises; it must.
local function raised(code)
  local chunk = assert(load(code, "@" .. SCRIPT, "t", environment()))
  local ok, message = pcall(chunk)
  assert(not ok, code .. " raised nothing")
  return tostring(message)
end

-- Operations by the names of their functions and methods.
local ops = {}
for _, op in ipairs(lt.ops()) do
  ops["lt." .. op.name], ops["x:" .. op.name] = op, op.method and op or nil
  if op.in_place then ops["x:" .. op.name .. "_"] = op end
end

-- A value of each type of argument.
local VALUES <const> = { int = 1, number = 0.5, flag = true, dim = 1, dims = { 1 }, pos = 1,
  sizes = { 2, 2 }, pair = { 1, 1 }, each = 1, padding = 0, scalar = 1.0, dtype = "f32",
  device = "cpu" }

-- All arguments that an operation takes.
local function arguments_of(op)
  local list, of = {}, {}
  for _, name in ipairs(op.inputs) do
    of[name] = op.list and { lt.ones(2, 2), lt.ones(2, 2) } or lt.ones(2, 2)
  end
  for _, argument in ipairs(op.args) do
    local value = VALUES[argument.type]
    if value == nil then value = argument.choices:match "[^|]+" end
    -- An operand of an operator may be a number in place of a tensor.
    if op.kind ~= "binary" and op.kind ~= "compare" then of[argument.name] = value end
  end
  for _, name in ipairs(op.places) do list[#list + 1] = of[name] end
  return list
end

local function is_hook(name)
  local method = name:match ":([%w_]+)$"
  return method ~= nil and hooks.by_name[method] ~= nil
end

-- What stands for a parameter of a name in the call of one that has no row; another is 2.
local STANDS_FOR <const> = { params = "{ w }", optimizer = "sgd", module = "net", x = "x" }

-- The call of a class or function with an unknown option that follows from the names of its
-- parameters; nil where it has none for options.
local function default_row(name, fn)
  if not takes_options(fn) or not name:find "^lt%.[%w_.]+$" then return nil end
  local words = {}
  for i = 1, debug.getinfo(fn, "u").nparams do
    local parameter = debug.getlocal(fn, i)
    if parameter:find "options$" then
      words[#words + 1] = "OPTIONS"
    elseif parameter ~= "self" then
      words[#words + 1] = STANDS_FOR[parameter] or "2"
    end
  end
  return ("%s(%s)"):format(name, table.concat(words, ", "))
end

local all = public.list()
for name, fn in pairs(all) do -- those of lt.special are operations by other names
  for _, op in ipairs(name:find "^lt%.special%." and lt.ops() or {}) do
    if not op.hidden and fn == lt[op.name] then ops[name] = op end
  end
end
local names = {}
for name in pairs(all) do names[#names + 1] = name end
table.sort(names)

describe("one argument too many", function()
  it("is an error of every function that names its parameters", function()
    local count = 0
    for _, name in ipairs(names) do
      local fn = all[name]
      if named(fn) then
        local ok, message = pcall(fn, table.unpack(MANY))
        assert(not ok, name)
        assert.matches("^spec/api/arguments_spec%.lua:%d+: .*one argument too many: a table$",
          message, name)
        count = count + 1
      end
    end
    assert(count > 300, count)
  end)

  it("is an error of every operation", function()
    for name, op in pairs(ops) do
      local fn = all[name]
      if fn and not op.hidden and not rows.extra[name] then
        local arguments = arguments_of(op)
        arguments[#arguments + 1] = "extra"
        local ok, message = pcall(fn, table.unpack(arguments))
        assert(not ok, name)
        assert.matches("^spec/api/arguments_spec%.lua:%d+: .*one argument too many: '",
          message)
      end
    end
  end)

  it("is an error of the others", function()
    for name, code in pairs(rows.extra) do
      assert(all[name], name)
      local message = raised(code)
      assert(message:find("^" .. SCRIPT:gsub("%.", "%%.") .. ":1: ") or message:find("hash: "),
        code .. ": " .. message)
    end
  end)

  it("has a row, or a reason, for every function that does not name its parameters", function()
    local missing = {}
    for _, name in ipairs(names) do
      local fn = all[name]
      local checked = named(fn) or ops[name] or rows.extra[name] or rows.open[name] or is_hook(name)
      -- A function of C with a count in its row.
      local _, count = debug.getupvalue(fn, 2)
      if not checked and not (debug.getinfo(fn, "S").what == "C" and type(count) == "userdata") then
        missing[#missing + 1] = name
      end
    end
    assert.same({}, missing)
  end)
end)

-- Whether the message is that of an unknown option.
local function names_option(message)
  return message:find("^" .. SCRIPT:gsub("%.", "%%.") .. ":1: ") ~= nil
    and message:find("unknown option 'no_such_option'", 1, true) ~= nil
end

describe("an unknown option", function()
  it("is an error, and reported by its name", function()
    for name, code in pairs(rows.options) do
      assert(all[name], name)
      local message = raised(code)
      assert(names_option(message), code .. ": " .. message)
    end
  end)

  it("is an error of every operation", function()
    for name, op in pairs(ops) do
      local fn = all[name]
      if fn and not op.hidden and not op.list then
        local arguments = {}
        for i = 1, op.min_in do arguments[i] = lt.ones(2, 2) end
        arguments[#arguments + 1] = { no_such_option = 1 }
        local ok, message = pcall(fn, table.unpack(arguments))
        assert(not ok, name)
        local binary = op.kind == "binary" or op.kind == "compare" -- these take no options
        assert.matches("^spec/api/arguments_spec%.lua:%d+: .*"
          .. (binary and "must be tensors or numbers" or "no_such_option"), message, name)
      end
    end
  end)

  it("is an error of every function with options, by its row or by the names of its parameters",
    function()
      local missing = {}
      for _, name in ipairs(names) do
        local fn = named(all[name]) or all[name]
        if debug.getinfo(fn, "S").what ~= "C" and takes_options(fn) and not rows.options[name] then
          local code = default_row(name, fn)
          if not code or not names_option(raised(code)) then missing[#missing + 1] = name end
        end
      end
      assert.same({}, missing)
    end)
end)
