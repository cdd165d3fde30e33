-- spec/apps/debugger/breakpoint_spec.lua: lt.breakpoint() and the commands of its prompt, fed
-- through a pipe.
local child = require "spec.cli.child"

local folder

-- Runs a script with lines for its prompts; its status, what it printed, what it complained of.
local function run(script, lines, words)
  child.write(folder .. "/s.lua", script)
  local arguments = words or { "s.lua" }
  return child.run(arguments, { dir = folder, stdin = table.concat(lines, "\n") .. "\n" })
end

-- What the prompts answered, without the source lines.
local function answers(script, lines, words)
  local status, out, err = run(script, lines, words)
  assert.equal(0, status, err)
  local kept = {}
  for line in out:gmatch "[^\n]+" do
    line = line:gsub("debug> ", "")
    if not line:find "^[> ] +%d+ | " and line ~= "" then kept[#kept + 1] = line end
  end
  return table.concat(kept, "\n"), err
end

local NESTED <const> = [[
local lt = require "ltrain"
local scale = 3
local function inner(n)
  local double = n * 2
  lt.breakpoint()
  return double * scale
end
local function outer(n)
  local kept = "outer " .. n
  local result = inner(n + 1)
  if n > 1 then lt.breakpoint() end
  return result, kept
end
print(outer(1))
print(outer(2))
]]

describe("lt.breakpoint", function()
  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  it("opens a prompt where it is called, with the variables of the function", function()
    local _, out = run(NESTED, { ":c", ":c", ":c" })
    assert.matches("^lt.breakpoint%(%)\ns.lua:5: in inner\n", out)
    assert.matches("\n> 5 |   lt.breakpoint()\n", out, 1, true)
    assert.matches("\n  n = 2, double = 4\ndebug> ", out, 1, true)
  end)

  it("reads locals and upvalues by their names, and assigns them", function()
    assert.matches("\n4\n3\n10\t1\n1000\touter 1\n",
      "\n" .. answers(NESTED, { "double", "scale", "scale, n = 10, 1", "scale, n",
        "double = 100", ":c", ":delete", "scale = 3", ":c", ":c" }) .. "\n", 1, true)
  end)

  it("stops in both of two functions", function()
    local out = answers(NESTED, { ":c", ":c", "n, kept", ":c" })
    assert.matches("s.lua:5: in inner\n.*s.lua:5: in inner\n.*s.lua:11: in outer\n", out)
    assert.matches("2\touter 2\n18\touter 2", out, 1, true)
  end)

  it("goes up and down between functions", function()
    local out = answers(NESTED, { ":where", ":up", "kept", ":down", "double", ":down", ":c", ":c",
      ":c" })
    assert.matches("> s.lua:5: in inner\n  s.lua:10: in outer\n  s.lua:14: in main chunk\n", out, 1,
      true)
    assert.matches("outer 1\n", out, 1, true)
    assert.matches("\n4\n", out, 1, true)
  end)

  it("hides a local behind an inner one of its name, and knows those in scope only", function()
    assert.matches("\n  x = 2\n2\tnil\n1\n5$", (answers([[
local lt = require "ltrain"
local x = 1
do
  local x = 2
  lt.breakpoint()
end
local later = 5
print(x) print(later)
]], { "x, later", ":c" })))
  end)

  it("writes globals that are not variable of the function", function()
    assert.matches("\n7\n8$", "\n" .. answers([[
local lt = require "ltrain"
known = 1
lt.breakpoint()
print(known) print(made)
]], { "known, made = 7, 8", ":c" }))
  end)

  it("has the function's varargs for `...`", function()
    local out = answers("local lt = require 'ltrain'\nlocal function f(...)\n  lt.breakpoint()\n"
      .. "  return (select('#', ...))\nend\nprint(f('a', 'b'))\n",
      { "...", "{n = select('#', ...), ...}", "local one = ...; print(one)", ":up", "...", ":c" })
    assert.matches('a\tb\n{"a", "b", n = 2}\na\n', out, 1, true)
    assert.not_matches("function: ", out, 1, true)
  end)

  it("refuses a breakpoint behind the end of a file", function()
    local _, err = answers("local lt = require 'ltrain'\nlt.breakpoint()\n",
      { ":break 9", ":break later.lua:3", ":c" })
    assert.matches(":break: s.lua has 2 lines", err, 1, true)
  end)

  it("prints what varargs and upvalues there are", function()
    local out = answers([[
local lt = require "ltrain"
local kept = lt.zeros(2, 3)
local function f(...)
  local n = kept:numel()
  lt.breakpoint()
  return n, ...
end
f("a", nil, 3)
]], { ":locals", ":c" })
    assert.matches("upvalues:\n  kept = tensor [2, 3] f32, lt = {...}\n... = 'a', nil, 3", out, 1,
      true)
  end)

  it("steps over the calls of a line, and out of a function", function()
    local out = answers(NESTED, { ":next", ":next", ":next", ":c", ":c" })
    assert.matches("s.lua:6: in inner\n.*s.lua:11: in outer\n.*s.lua:12: in outer\n", out)
  end)

  it("stops at a line, where a condition holds", function()
    local out = answers([[
local lt = require "ltrain"
lt.breakpoint()
local sum = 0
for i = 1, 100 do
  sum = sum + i
end
print(sum)
]], { ":break s.lua:5 if i == 50", ":break", "_ = 1", ":c", "i, sum", "sum = 0", ":delete 1",
      ":break", ":c" })
    assert.matches("breakpoint 1  s.lua:5 if i == 50  |  sum = sum + i\n", out, 1, true)
    assert.matches("breakpoint 1\ns.lua:5: in main chunk\n", out, 1, true)
    assert.matches("50\t1225\n(no breakpoints)\n3825", out, 1, true)
  end)

  it("stops where a condition fails, and says so", function()
    local out = answers([[
local lt = require "ltrain"
lt.breakpoint()
local t
print(1)
]], { ":break 4 if t.x", ":c", ":c" })
    assert.matches("breakpoint 1: t.x: condition:1: attempt to index a nil value", out, 1, true)
  end)

  it("takes names of files with blanks in them", function()
    local script <const> = "local lt = require 'ltrain'\nlt.breakpoint()\nlocal x = 1\nx = 2\n"
      .. "print(x)\n"
    child.write(folder .. "/a b.lua", script)
    local status, out, err = child.run({ "a b.lua" }, { dir = folder, stdin = ":break a b.lua:5 if "
      .. "x == 2\n:break \"other one.lua\":4\n:break no where.lua:4\n:break\n:c\nx * 100\n:c\n" })
    assert.equal(0, status)
    assert.matches("1  a b.lua:5 if x == 2\n2  other one.lua:4\n", out, 1, true)
    assert.matches("breakpoint 1\na b.lua:5: in main chunk\n.*debug> 200\n", out)
    assert.matches("needs FILE:LINE [if EXPR]: got 'no where.lua:4'", err, 1, true)
  end)

  it("refuses what is not a place", function()
    local _, _, err = run(NESTED, { ":break", ":break x", ":break s.lua:5 if )", ":delete 3",
      ":list x", ":hm", ":c", ":c", ":c" })
    assert.matches("break: needs FILE:LINE [if EXPR]: got 'x'", err, 1, true)
    assert.matches("break: unexpected symbol near ')'", err, 1, true)
    assert.matches("delete: there is no breakpoint 3", err, 1, true)
    assert.matches("list: LINE must be a number: got 'x'", err, 1, true)
    assert.matches(":hm: no such command", err, 1, true)
  end)

  it("works in coroutines, and shows who resumed them", function()
    local script <const> = [[
local lt = require "ltrain"
local function numbers()
  for i = 1, 3 do
    if i == 2 then lt.breakpoint() end
    coroutine.yield(i)
  end
end
local sum = 0
for n in coroutine.wrap(numbers) do
  sum = sum + n
end
print(sum)
]]
    local out = answers(script, { ":where", "i = 20", ":up", "sum", ":c" })
    assert.matches("> s.lua:4: in numbers\n  (a coroutine, resumed by)\n  s.lua:9: in", out, 1,
      true)
    assert.matches("\n1\n24$", out)
    out = answers(script, { ":n", ":n", ":c" })
    assert.matches("s.lua:5: in numbers\n.*s.lua:10: in main chunk\n", out)
  end)

  it("does not let what is entered yield for the script", function()
    local _, out, err = run([[
local lt = require "ltrain"
print(coroutine.wrap(function() lt.breakpoint() return 5 end)())
]], { "coroutine.yield(1)", ":c" })
    assert.matches("attempt to yield", err, 1, true)
    assert.matches("\n?debug> .*5\n$", out)
  end)

  it("ends the script with :quit", function()
    local status, _, err = run(NESTED, { ":quit" })
    assert.equal(1, status)
    assert.matches("^ltrain: s.lua:5: ended at the debugger's prompt", err)
  end)

  it("says that the input has ended, once, and continues", function()
    child.write(folder .. "/s.lua", NESTED)
    local status, out, err = child.run({ "s.lua" }, { dir = folder, stdin = "" })
    assert.equal(0, status)
    assert.matches("18\touter 2\n$", out)
    assert.equal(1, select(2, err:gsub("ltrain: standard input has ended: the script contin", "")))
    assert.equal(1, select(2, out:gsub("debug> ", "")))
  end)

  it("takes no argument", function()
    assert.has_error(function() require "ltrain".breakpoint(1) end)
  end)

  it("is left alone by the workers of a loader, which say so", function()
    local status, out, err = run([[
local lt = require "ltrain"
local Squares = lt.data.Dataset:extend("Squares")
function Squares:__len() return 4 end
function Squares:get(i)
  if i == 2 then lt.breakpoint() end
  return i * i
end
for batch in lt.data.DataLoader(Squares(), { batch_size = 4, num_workers = 1 }):batches() do
  print(batch:sum():item())
end
]], {})
    assert.equal(0, status)
    assert.equal("30\n", out)
    assert.matches("s.lua:5: breakpoint: a worker of a DataLoader has no term", err, 1, true)
  end)

  it("stops in a data set whose samples are read here, also at its errors", function()
    local script <const> = [[
local lt = require "ltrain"
local Squares = lt.data.Dataset:extend("Squares")
function Squares:__len() return 4 end
function Squares:get(i)
  local square = i * i
  if i == 2 then lt.breakpoint() end
  if i == 3 then error "no sample" end
  return square
end
for batch in lt.data.DataLoader(Squares(), { batch_size = 2 }):batches() do
  print(batch:sum():item())
end
]]
    local status, out = run(script, { "square = 10", ":c", "square", ":c" },
      { "run", "--debug", "s.lua" })
    assert.equal(1, status)
    assert.matches("debug> debug> 11\ns.lua:7: no sample\ns.lua:7: in Squares:get", out, 1, true)
    assert.matches("debug> 9\n", out, 1, true)
  end)

  it("sets no hook until a line is watched", function()
    local out = answers([[
local lt = require "ltrain"
lt.breakpoint()
print(debug.gethook() == nil)
lt.breakpoint()
print(debug.gethook() == nil)
]], { ":c", ":break s.lua:5 if false", ":c" })
    assert.matches("\ntrue\n.*\nfalse$", out)
  end)
end)
