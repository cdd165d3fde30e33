-- spec/docs/guide_spec.lua: every block of the docs runs, and prints what it says.
--
-- A block is a script of its own, run with `ltrain run` in a new folder; one that begins with
-- `-- goes on` is put after the block before it. Each `-- prints: TEXT` must
-- be a line of what is printed, in this order.
local child = require "spec.cli.child"

local GUIDE <const> = "docs/guide/"
local PAGES <const> = "docs/*.md docs/guide/*.md docs/reference/*.md"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

-- The text of the first block of a language.
local function block_of(path, language)
  return read(path):match("\n```" .. language .. "\n(.-)```")
end

-- The scripts of a page: { text =, line = where the last block begins }.
local function scripts_of(path)
  local list, block, number = {}, nil, 0
  for line in (read(path) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if line == "```lua" then
      block = { lines = {}, line = number }
    elseif line == "```" and block then
      local text = table.concat(block.lines, "\n") .. "\n"
      if text:find("^%-%- goes on") then
        text = list[#list].text .. text
      end
      list[#list + 1] = { text = text, line = block.line }
      block = nil
    elseif block then
      block.lines[#block.lines + 1] = line
    end
  end
  return list
end

local function pages()
  local list = { "README.md" }
  local pipe <close> = assert(io.popen("ls " .. PAGES))
  for path in pipe:lines() do list[#list + 1] = path end
  return list
end

-- As the reader runs it: what the script says holds. One that returns a model is run as the first
-- page says.
local function arguments_for(text)
  local list = { "run", "model.lua" }
  if text:find("return {model", 1, true) then table.move({ "--max_epochs", "3" }, 1, 2, 3, list) end
  return list
end

local function expected_lines(text)
  local list = {}
  for line in text:gmatch("%-%- prints: ([^\n]*)") do list[#list + 1] = line end
  return list
end

-- The first expected line that does not come, in order; nil when all do.
local function missing_line(expected, printed)
  local at = 1
  for line in (printed .. "\n"):gmatch("(.-)\n") do
    if line == expected[at] then at = at + 1 end
  end
  return expected[at]
end

local function run(text)
  local folder = child.folder()
  child.write(folder .. "/model.lua", text)
  local code, out, err = child.run(arguments_for(text), { dir = folder })
  child.remove(folder)
  return code, out, err
end

describe("the docs", function()
  for _, path in ipairs(pages()) do
    for _, script in ipairs(scripts_of(path)) do
      it(("run the block of %s, line %d"):format(path, script.line), function()
        local code, out, err = run(script.text)
        assert(code == 0, ("exit status %d\n%s%s"):format(code, out, err:sub(-2000)))
        local missing = missing_line(expected_lines(script.text), out)
        assert(missing == nil, ("'%s' was not printed:\n%s"):format(missing, out))
      end)
    end
  end

  it("have a host that compiles and runs", function()
    local build = os.getenv("LT_BUILD")
    if not build then return pending("LT_BUILD names no build folder") end
    local sanitize = os.getenv("LT_SANITIZE") or ""
    local folder = child.folder()
    child.write(folder .. "/host.c", block_of(GUIDE .. "embedding.md", "c"))
    local pipe <close> = assert(io.popen(([[
      cc -std=c11 -Wall -Wextra -Werror %s -Ilua/host -Iruntime/include -I%s/generated/include \
        '%s/host.c' -o '%s/host' -L%s -lltrain -Wl,-rpath,%s 2>&1 && '%s/host' 2>&1]]):format(
      sanitize ~= "" and "-fsanitize=" .. sanitize or "", build, folder, folder, build, build,
      folder)))
    local out = pipe:read("a")
    child.remove(folder)
    assert.matches("^0%.%d%d 0%.%d%d\n$", out)
  end)
end)
