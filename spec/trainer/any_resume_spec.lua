-- spec/trainer/any_resume_spec.lua: fits that are drawn at random, resumed from a file of each of
-- their batches, end as if they had not been interrupted. LT_EXHAUSTIVE=1 tries hundreds; LT_CASE
-- names one.
-- tags: slow
local any_resume = require "spec.trainer.any_resume"
local tiny = require "spec.trainer.tiny"

local FEW <const>, MANY <const> = 6, 600

local function cases()
  local only = math.tointeger(tonumber(os.getenv "LT_CASE"))
  if only then return only, only end
  return 1, os.getenv "LT_EXHAUSTIVE" and MANY or FEW
end

describe("a fit that is resumed", function()
  local first, last = cases()
  for number = first, last do
    it(("ends as the uninterrupted one: case %d"):format(number), function()
      local case = any_resume.draw(number)
      local differences = any_resume.differences(case, tiny.folder())
      assert.equal("", table.concat(differences, "\n"), any_resume.text(case))
    end)
  end
end)
