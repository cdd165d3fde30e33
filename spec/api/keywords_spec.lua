-- spec/api/keywords_spec.lua: no public name, option or argument is a word of Lua's, or hides one
-- of ours.
-- tags: slow
local lt = require "ltrain"
local public = require "spec.api.public"

local KEYWORDS <const> = {}
for word in ([[and break do else elseif end false for function goto if in local nil not or repeat
  return then true until while]]):gmatch "%a+" do
  KEYWORDS[word] = true
end

-- Words of lt that an operation has as well, with what each is: the operation is a method alone.
local WORDS <const> = { all = "the index that means a whole dim" }

-- Keys of tables in the sources of stdlib: `name = { type = ...` is an option.
local function options()
  local names = {}
  local pipe <close> = assert(io.popen "cat $(find stdlib -name '*.lua')")
  local text = pipe:read "a"
  for name in text:gmatch "%f[%w_]([%a_][%w_]*)%s*=%s*{%s*type%s*=" do names[name] = true end
  for name in text:gmatch '%["([^"\n]*)"%]%s*=%s*{%s*type%s*=' do names[name] = true end
  return names
end

local function keywords_in(names)
  local bad = {}
  for name in pairs(names) do
    for part in name:gmatch "[%a_][%w_]*" do
      if KEYWORDS[part] then bad[#bad + 1] = name end
    end
  end
  table.sort(bad)
  return bad
end

describe("a public name", function()
  it("is no keyword of Lua, nor has one between its dots", function()
    assert.same({}, keywords_in(public.list()))
    assert.same({ "lt.nn.end", "x:repeat" }, keywords_in { ["x:repeat"] = 1, ["lt.nn.end"] = 1,
      ["x:tile"] = 1, ["lt.Function"] = 1 })
  end)

  it("of an operation is no keyword, its arguments neither", function()
    local names = {}
    for _, op in ipairs(lt.ops()) do
      names[op.name] = true
      for _, argument in ipairs(op.args) do names[argument.name] = true end
    end
    assert(names.dim and names.keepdim)
    assert.same({}, keywords_in(names))
  end)

  it("of an option is no keyword", function()
    local names = options()
    assert(names.momentum and names.max_epochs)
    assert.same({}, keywords_in(names))
  end)

  it("hides no other: a method of tensors is not a field, an operation no word of lt", function()
    local x = lt.zeros(1)
    for name in pairs(public.methods()) do assert.equal("function", type(x[name]), name) end
    for _, op in ipairs(lt.ops()) do
      local is_function = not op.hidden and type(lt[op.name]) == "function"
      assert(op.hidden or is_function ~= (WORDS[op.name] ~= nil), op.name)
    end
  end)

  it("is written in the docs so that it can be read: x:lt(y), not lt.lt(x, y)", function()
    local pipe <close> = assert(io.popen "grep -rn 'lt[.]lt(' docs/guide README.md examples")
    assert.equal("", pipe:read "a")
  end)
end)
