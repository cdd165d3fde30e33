-- spec/docs/guide_spec.lua: every block of the docs runs, and prints what it says.
--
-- A block is a script of its own, run with `ltrain run` in a new folder. Each `-- prints: TEXT`
-- must be a line of what is printed, in this order. A shell block with `# prints: TEXT` is run in a
-- folder in which the lua block before it is model.lua. Files that blocks read lie in
-- spec/docs/files. Blocks of docs/adding.md are files of the tree: spec/docs/recipes_spec.lua.
-- tags: sampled, slow
local child = require "spec.cli.child"
local sample = require "spec.sample"

local GUIDE <const> = "docs/guide/"
local PAGES <const> = "docs/*.md docs/guide/*.md docs/reference/*.md"

local function read(path)
  local file <close> = assert(io.open(path, "rb"))
  return file:read("a")
end

-- The blocks of a page: { language =, text =, line = where it begins }.
local function blocks_of(path)
  local list, block, number = {}, nil, 0
  for line in (read(path) .. "\n"):gmatch("(.-)\n") do
    number = number + 1
    if block and line == "```" then
      block.text = table.concat(block.lines, "\n") .. "\n"
      list[#list + 1], block = block, nil
    elseif block then
      block.lines[#block.lines + 1] = line
    elseif line:find "^```" then
      block = { language = line:sub(4), lines = {}, line = number }
    end
  end
  return list
end

-- What runs of them: { language =, text =, line =, model = text of model.lua }.
local function scripts_of(path)
  local list, model = {}, nil
  for _, block in ipairs(blocks_of(path)) do
    if block.language == "lua" then
      model, block.model = block.text, block.text
      list[#list + 1] = block
    elseif block.language == "sh" and block.text:find "# prints: " then
      block.model = model
      list[#list + 1] = block
    end
  end
  return list
end

local function pages()
  local list = { "README.md" }
  local pipe <close> = assert(io.popen("ls " .. PAGES))
  for path in pipe:lines() do
    if path ~= "docs/adding.md" then list[#list + 1] = path end
  end
  return list
end

-- As the reader runs it: what the script says holds. One that returns a model is run as the first
-- page says, but one without memory, which is for `ltrain plan` alone, not for long.
local function arguments_for(text)
  local list = { "run", "model.lua" }
  if text:find("return {model", 1, true) then
    local epochs = text:find('lt.device "meta"', 1, true) and "0" or "3"
    table.move({ "--max_epochs", epochs }, 1, 2, 3, list)
  end
  return list
end

local function expected_lines(text)
  local list = {}
  for line in text:gmatch("[-#*] prints: ([^\n]*)") do
    list[#list + 1] = (line:gsub(" %*/$", ""))
  end
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

local function run(script)
  local folder = child.folder()
  assert(os.execute(("cp spec/docs/files/* '%s'"):format(folder)))
  child.write(folder .. "/model.lua", script.model)
  local code, out, err
  if script.language == "sh" then
    code, out, err = child.shell(script.text, { dir = folder })
  else
    code, out, err = child.run(arguments_for(script.text), { dir = folder })
  end
  child.remove(folder)
  return code, out, err
end

describe("the docs", function()
  for _, path in ipairs(pages()) do
    for _, script in ipairs(sample(scripts_of(path), 8)) do
      it(("run the block of %s, line %d"):format(path, script.line), function()
        local code, out, err = run(script)
        assert(code == 0, ("exit status %d\n%s%s"):format(code, out, err:sub(-2000)))
        local missing = missing_line(expected_lines(script.text), out)
        assert(missing == nil, ("'%s' was not printed:\n%s"):format(missing, out))
      end)
    end
  end

  local BUILD <const> = os.getenv("LT_BUILD")

  -- The output of a program in C, run in a folder where the script before it has been run.
  local function compile_and_run(block)
    local sanitize = os.getenv("LT_SANITIZE") or ""
    local folder = child.folder()
    if block.model then
      local name = block.model:match("^%-%- ([%w_]+%.lua)\n")
      child.write(folder .. "/" .. name, block.model)
      local code, _, err = child.run({ "run", name }, { dir = folder })
      assert(code == 0, err)
    end
    child.write(folder .. "/host.c", block.text)
    local pipe <close> = assert(io.popen(([[
      cc -std=c11 -Wall -Wextra -Werror %s -Ilua/host -Iruntime/include -I%s/generated/include \
        '%s/host.c' -o '%s/host' -L%s -lltrain -Wl,-rpath,%s 2>&1 && cd '%s' &&
      ./host 2>&1]]):format(
      sanitize ~= "" and "-fsanitize=" .. sanitize or "", BUILD, folder, folder, BUILD, BUILD,
      folder)))
    local out = pipe:read("a")
    child.remove(folder)
    return out
  end

  local model
  for _, block in ipairs(blocks_of(GUIDE .. "embedding.md")) do
    if block.language == "lua" then model = block.text end
    if block.language == "c" and block.text:find "int main" then
      block.model = model
      it(("have a host that compiles and runs, line %d"):format(block.line), function()
        if not BUILD then return pending("LT_BUILD names no build folder") end
        local out = compile_and_run(block)
        local missing = missing_line(expected_lines(block.text), out)
        assert(missing == nil, ("'%s' was not printed:\n%s"):format(missing, out))
        if not block.text:find "prints: " then assert.matches("^0%.%d%d 0%.%d%d\n$", out) end
      end)
    end
  end
end)
