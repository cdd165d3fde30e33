-- spec/api/dims_spec.lua: `dim` and `dims` are one name, of every function that takes either.
local lt = require "ltrain"
local public = require "spec.api.public"
local takes = require "spec.api.takes"
local tree = require "ltrain.core.tree"

local ROOMS <const> = { lt = lt, ["lt.linalg"] = lt.linalg, ["lt.fft"] = lt.fft,
  ["lt.special"] = lt.special, ["lt.nn.functional"] = lt.nn.functional }

-- What may stand for the arguments before the dim.
local x <const> = lt.ones(2, 2)
local VALUES <const> = { x, { x, x }, 1, false }

-- All lists of `n` values.
local function lists(n)
  if n == 0 then return { {} } end
  local made = {}
  for _, list in ipairs(lists(n - 1)) do
    for _, value in ipairs(VALUES) do
      made[#made + 1] = table.move(list, 1, #list, 1, {})
      made[#made][n] = value
    end
  end
  return made
end

-- "f: dim must be ...: got '?'": what is said of a dim of '?', called so, by a call that gets as
-- far as to read it; nil: none does. `own`: how many arguments come before it, the first guess.
local function refused(fn, name, own, most)
  for n = 0, most do
    for _, list in ipairs(lists(n == 0 and own or n)) do
      local count = #list + 1
      list[count] = { [name] = "?" }
      local ok, message = pcall(fn, table.unpack(list, 1, count))
      message = tostring(message):gsub("^[^:]*:%d+: ", "")
      if not ok and message:find "dim" and message:find("'?'", 1, true) then return message end
    end
  end
end

-- Functions that take a dim by name, with the place of it.
local function each()
  local list = {}
  for name in tree.pairs(public.list()) do
    local room, short = name:match "^(lt[%w_.]*)%.([%w_]+)$"
    local fn = ROOMS[room] and ROOMS[room][short]
    local taken = type(fn) == "function" and takes.of(fn, short)
    if taken and (taken.names.dim or taken.names.dims) then
      local own = #taken.places
      for k, place in ipairs(taken.places) do
        if place == "dim" or place == "dims" then own = k - 1 end
      end
      list[#list + 1] = { name = name, fn = fn, own = math.min(own, 4),
        most = math.min(#taken.places, 4) }
    end
  end
  return list
end

describe("a dim", function()
  it("is called dim or dims", function()
    local wrong, count = {}, 0
    for _, one in ipairs(each()) do
      local dim = refused(one.fn, "dim", one.own, one.most)
      local dims = refused(one.fn, "dims", one.own, one.most)
      count = count + 1
      if not dim or dim ~= dims or dim:find "unknown option" then
        wrong[#wrong + 1] = ("%s: %s, %s"):format(one.name, dim, dims)
      end
    end
    assert.same({}, wrong)
    assert(count > 100, count)
  end)

  it("is read from its place too", function()
    local wrong = {}
    for _, one in ipairs(each()) do
      local said = false
      for _, list in ipairs(lists(one.own)) do
        list[one.own + 1] = "?"
        local ok, message = pcall(one.fn, table.unpack(list, 1, one.own + 1))
        said = said or not ok and tostring(message):find "dim" and message:find("'?'", 1, true)
      end
      if not said then wrong[#wrong + 1] = one.name end
    end
    assert.same({}, wrong)
  end)

  it("is not given by both names", function()
    local ok, message = pcall(lt.diff, x, { dim = 1, dims = 1 })
    assert(not ok and message:find("diff: dim is given twice", 1, true), message)
    ok, message = pcall(lt.linalg.vector_norm, x, { dim = 1, dims = 1 })
    assert(not ok and message:find("vector_norm: dim is given twice", 1, true), message)
  end)
end)
