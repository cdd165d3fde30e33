-- spec/docs/architecture_spec.lua: docs/architecture.md names every folder of the source, and
-- nothing that is not there.
local c = require "ltrain.c"

local PAGE <const> = "docs/architecture.md"
local ROOMS <const> = { runtime = true, lua = true, stdlib = true, spec = true, tools = true }

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read "a"
end

local function lines_of(command)
  local list = {}
  local pipe <close> = assert(io.popen(command))
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

-- Whether `name` stands in `text` as a word.
local function has_word(text, name)
  for from, to in text:gmatch("()" .. name:gsub("%p", "%%%0") .. "()") do
    local around = text:sub(from - 1, from - 1) .. text:sub(to, to)
    if not around:find "[%w_]" then return true end
  end
end

describe("docs/architecture.md", function()
  local text = read(PAGE)
  local drawing = text:match "```\n(.-)```"

  it("names every folder of runtime, lua and stdlib", function()
    local missing = {}
    for _, folder in ipairs(lines_of "find runtime lua stdlib -mindepth 1 -type d | sort") do
      if not has_word(text, folder) and not has_word(drawing, folder:match "/(.*)$") then
        missing[#missing + 1] = folder
      end
    end
    assert.equal("", table.concat(missing, " "))
  end)

  it("names no path that is not there", function()
    local missing, seen = {}, 0
    for path in text:gmatch "%f[%w]([%w_]+/[%w_/.]*[%w_])" do
      if ROOMS[path:match "^[^/]+"] then
        seen = seen + 1
        if not c.io.kind(path) then missing[#missing + 1] = path end
      end
    end
    assert.equal("", table.concat(missing, " "))
    assert(seen > 40, seen)
  end)

  it("is one screen", function()
    local _, lines = text:gsub("\n", "")
    assert(lines <= 80, lines)
  end)
end)
