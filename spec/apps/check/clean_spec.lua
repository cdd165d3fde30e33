-- spec/apps/check/clean_spec.lua: `ltrain check` finds nothing in the examples, in the guide, nor
-- in models that are unusual and right (spec/apps/check/models).
-- tags: sampled, slow, unsanitized
local child = require "spec.cli.child"
local sample = require "spec.sample"

local ROOT <const> = os.getenv "LT_ROOT" or "."

-- The whole scripts of a page that train a model: {text =, line =}.
local function models_of(path)
  local list, block, number = {}, nil, 0
  for line in io.lines(path) do
    number = number + 1
    if block and line == "```" then
      local text = table.concat(block.lines, "\n") .. "\n"
      if text:find "configure_optimizers" then
        list[#list + 1] = { text = text, line = block.line }
      end
      block = nil
    elseif block then
      block.lines[#block.lines + 1] = line
    elseif line == "```lua" then
      block = { lines = {}, line = number }
    end
  end
  return list
end

-- Blocks of the guide that show what a failure looks like.
local FAULTY <const> = { "at 0 its derivative is infinite", "local probabilities =" }

local function is_faulty(text)
  for _, part in ipairs(FAULTY) do
    if text:find(part, 1, true) then return true end
  end
  return false
end

-- Some of the files that a pattern of the shell finds; of each folder one at least.
local function files(pattern)
  local list = {}
  local pipe <close> = assert(io.popen(("cd '%s' && ls %s"):format(ROOT, pattern)))
  for path in pipe:lines() do list[#list + 1] = ROOT .. "/" .. path end
  return sample(list, 6, function(path) return path:match "(.*)/" end)
end

describe("ltrain check finds nothing", function()
  for _, path in ipairs(files "examples/*.lua spec/apps/check/models/*.lua") do
    it("in " .. path:match "[^/]+$", function()
      local folder = child.folder()
      local script = assert(io.popen("realpath '" .. path .. "'")):read "l"
      local status, out, err = child.run({ "check", script }, { dir = folder })
      local left = assert(io.popen("ls -A '" .. folder .. "'")):read "a"
      child.remove(folder)
      assert.equal(0, status, out .. err)
      assert.matches(": 0 errors, 0 warnings\n", out, 1, true)
      assert.equal("", left)
    end)
  end

  -- Its model has 1.6 GB of parameters: `ltrain plan` needs none of it, a check all.
  local LARGE <const> = ROOT .. "/docs/guide/planning.md"

  for _, path in ipairs(files "docs/guide/*.md") do
    if path == LARGE then goto continue end
    it("in the models of " .. path:match "[^/]+$", function()
      for _, model in ipairs(models_of(path)) do
        local folder = child.folder()
        assert(os.execute(("cp '%s'/spec/docs/files/* '%s'"):format(ROOT, folder)))
        child.write(folder .. "/model.lua", model.text)
        local status, out, err = child.run({ "check", "model.lua" }, { dir = folder })
        child.remove(folder)
        if not is_faulty(model.text) then
          assert(status == 0, ("line %d:\n%s%s"):format(model.line, out, err))
        end
      end
    end)
    ::continue::
  end
end)
