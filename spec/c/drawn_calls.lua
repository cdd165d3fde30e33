-- spec/c/drawn_calls.lua: calls of the library's C functions with drawn arguments, for
-- host_calls_test.c. Whatever the arguments are, a call returns or raises.
--
-- All functions of the table that C gives the library are called, and the methods and metamethods
-- of each kind of userdata. Arguments are drawn values of all types, results of earlier calls, and
-- lists that a call has accepted before, with one of them changed.
local core <const>, types <const>, draw <const>, note <const> = ...
local lt = require "ltrain"

local KEPT <const>, DEEPEST <const> = 40, 3

-- Every function below `t`, by its name. Those that operations are made of have one reader of
-- arguments (arguments.c), the others one each: these are called more often.
local functions, names, own = {}, {}, {}
local function collect(t, prefix, seen)
  if seen[t] then return end
  seen[t] = true
  for key, value in next, t do
    local name = prefix .. tostring(key)
    if type(value) == "function" and not functions[name] then
      functions[name] = value
      names[#names + 1] = name
      if name:find "%." and not name:find "^runtime%.methods" then own[#own + 1] = name end
    elseif type(value) == "table" then
      collect(value, name .. ".", seen)
    end
  end
end
collect(core, "", {})
collect(types, "", {})
table.sort(names)
table.sort(own) -- the same for each run

local function one_of(list) return list[draw(#list) + 1] end

local pool, accepted = {}, {} -- results of calls; arguments by the function's name

local TEXTS <const> = { "", "memory:a", "memory:b", "f32", "i64", "u8", "cpu", "sum", "x", "a.b",
  ("A"):rep(100), "\0", "1", "-1.5", "{}", "[1, 2]", "%s%n", "cuda:0", "/", "true", "k", "utf-8" }
local NUMBERS <const> = { 0, 1, 2, 3, -1, -2, 4, 16, 0.5, -0.0, 1e308, 1 / 0, 0 / 0, 1 << 31,
  1 << 53, -(1 << 31) - 1, math.maxinteger, math.mininteger, 2.0, 255, 65536 }
local SIZES <const> = { {}, { 0 }, { 1 }, { 3 }, { 2, 3 }, { 3, 2 }, { 1, 2, 3, 4 }, { 2, 2, 2 } }
local DTYPES <const> = { "f32", "f64", "i64", "u8", "bool", "i32", "f16", "bf16", "i8" }

local drawn_value

local function drawn_tensor()
  local x = lt.rand(one_of(SIZES)):mul(4)
  local kind = draw(10)
  if kind == 0 then return x:requires_grad_() end
  if kind == 1 then return lt.parameter(x) end
  if kind == 2 and x:dim() > 1 then return x:transpose(1, 2) end
  if kind == 3 then return x:requires_grad_() * 2 end
  return x:to(one_of(DTYPES))
end

local function drawn_table(depth)
  local t = {}
  local kind = draw(6)
  for k = 1, draw(5) do t[k] = drawn_value(depth + 1) end
  if kind == 0 then
    for _ = 1, draw(4) do t[one_of(TEXTS)] = drawn_value(depth + 1) end
  elseif kind == 1 then
    t[draw(9) + 2] = drawn_value(depth + 1)
  elseif kind == 2 then
    local held = drawn_value(depth + 1)
    return setmetatable(t, { __index = function() return held end,
      __len = function() return one_of(NUMBERS) end,
      __call = function(_, ...) return ... end, __tostring = function() return held end,
      __pairs = function() return next, t end })
  elseif kind == 3 then
    local like = drawn_value(depth + 1)
    for k = 1, draw(5) do t[k] = like end
  end
  return t
end

local kinds <const> = {
  function() return nil end,
  function() return draw(2) == 0 end,
  function() return one_of(NUMBERS) end,
  function() return one_of(NUMBERS) end,
  function() return draw(4) + 1 end,
  function() return one_of(TEXTS) end,
  function() return one_of(TEXTS) end,
  drawn_tensor, drawn_tensor, drawn_tensor,
  function(depth) return depth < DEEPEST and drawn_table(depth) or {} end,
  function(depth) return depth < DEEPEST and drawn_table(depth) or {} end,
  function() return #pool > 0 and one_of(pool) or nil end,
  function() return #pool > 0 and one_of(pool) or nil end,
  function(depth)
    local value = depth < DEEPEST and drawn_value(depth + 1)
    return one_of { function() return value end, error, print, function(...) return ... end,
      function() error(value) end }
  end,
  function() return coroutine.create(function(...) return coroutine.yield(...) end) end,
  function() return functions[one_of(names)] end,
}

function drawn_value(depth) return one_of(kinds)(depth) end

local function drawn_arguments(name)
  local known = accepted[name]
  if known and draw(3) > 0 then
    local from = one_of(known)
    local list = table.move(from, 1, from.n, 1, { n = from.n })
    if list.n > 0 then list[draw(list.n) + 1] = drawn_value(0) end
    return list
  end
  local list = { n = draw(6) }
  local of_kind = draw(3) == 0 and one_of(kinds)
  for k = 1, list.n do list[k] = (k == 1 and of_kind or drawn_value)(0) end
  return list
end

local function keep(list, value)
  if value ~= nil then list[#list < KEPT and #list + 1 or draw(KEPT) + 1] = value end
end

local METHODS <const> = { "close", "read", "next", "wait", "tensor", "size", "names", "get",
  "stop" }

local function learn(name, arguments, ok, ...)
  if not ok then return end
  if arguments then
    accepted[name] = accepted[name] or {}
    keep(accepted[name], arguments)
  end
  for k = 1, select("#", ...) do
    local value = select(k, ...)
    local kind = type(value)
    if kind == "userdata" or kind == "table" and draw(4) == 0 then keep(pool, value) end
  end
end

-- One call.
function _G.call()
  local name, arguments
  if #pool > 0 and draw(12) == 0 then -- a method, as scripts find it
    local object = one_of(pool)
    name = one_of(METHODS)
    local found, method = pcall(function() return object[name] end)
    if not found or type(method) ~= "function" then return end
    note(name)
    return learn(name, nil, pcall(method, object, drawn_value(0), drawn_value(0)))
  end
  name = one_of(draw(4) == 0 and names or own)
  arguments = drawn_arguments(name)
  note(name)
  learn(name, arguments, pcall(functions[name], table.unpack(arguments, 1, arguments.n)))
end

return #names
