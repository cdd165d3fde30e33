-- spec/dist/any_fit_spec.lua: fits that are drawn at random give on 2, 3 and 4 ranks what they give
-- on one: others for another LT_TEST_SEED. LT_EXHAUSTIVE=1 tries hundreds; LT_CASE names one.
-- tags: sampled, slow
local child = require "spec.cli.child"
local script = require "spec.dist.any_fit"

local FEW <const>, MANY <const> = 6, 400
local SEED <const> = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1

local function try(number)
  local folder = child.folder()
  child.write(folder .. "/script.lua", script)
  local status, out, err = child.run({ "script.lua", tostring(number) }, { dir = folder })
  child.remove(folder)
  assert.equal(0, status, err)
  assert.equal("", out)
end

local function cases()
  local only = math.tointeger(tonumber(os.getenv "LT_CASE"))
  if only then return only, only end
  if os.getenv "LT_EXHAUSTIVE" then return 1, MANY end
  local before = (SEED - 1) * FEW % MANY
  return before + 1, before + FEW
end

describe("a fit on several ranks", function()
  local first, last = cases()
  for number = first, last do
    it(("gives what one rank gives: case %d"):format(number), function() try(number) end)
  end
end)
