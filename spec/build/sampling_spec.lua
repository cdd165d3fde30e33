-- spec/build/sampling_spec.lua: which cases of a file an everyday run of the specs has.
-- tags: slow
local child = require "spec.cli.child"

local FILE <const> = [[
for i = 1, 7 do
  it("case " .. i, function() end)
end
]]

describe("LT_TEST_SAMPLE", function()
  local folder <const> = child.folder()
  teardown(function() child.remove(folder) end)

  -- Numbers of the cases that ran, and how many the file is said to have.
  local function cases(sample, options)
    child.write(folder .. "/seven_spec.lua", FILE)
    local root <const>, ltrain <const> = os.getenv "LT_ROOT", os.getenv "LTRAIN"
    local status = child.shell(("cd '%s' && LT_TEST_SAMPLE=%s '%s' '%s' -o "
      .. "tools/busted_tap.lua -Xoutput '%s/tap' %s '%s/seven_spec.lua'"):format(root, sample,
      ltrain, os.getenv "LT_BUSTED" or "/usr/bin/busted", folder, options or "", folder))
    assert.equal(0, status)
    local file <close> = assert(io.open(folder .. "/tap"))
    local numbers, tap = {}, file:read "a"
    for n in tap:gmatch "ok %d+ %- case (%d+)" do numbers[#numbers + 1] = n end
    return table.concat(numbers, " "), tap:match "# tests (%d+ of %d+)"
  end

  it("is all cases, or the first and every nth", function()
    assert.same({ "1 2 3 4 5 6 7", "7 of 7" }, { cases "0/1" })
    assert.same({ "1 2 4 6", "4 of 4" }, { cases "0/2" })
    assert.same({ "1 3 5 7", "4 of 4" }, { cases "1/2" })
    assert.same({ "1 3 6", "3 of 3" }, { cases "0/3" })
  end)

  it("has each case for some phase", function()
    local seen = {}
    for phase = 0, 2 do
      for n in cases(phase .. "/3"):gmatch "%d" do seen[tonumber(n)] = true end
    end
    assert.equal(7, #seen)
  end)

  it("counts what filters leave", function()
    assert.same({ "4 7", "2 of 2" }, { cases("1/2", "--filter-out '[1235]$'") })
  end)
end)

describe("turns", function()
  local turns = require "spec.turns"

  it("are whole with --exhaustive, else differ from case to case", function()
    local function two(fn) turns({ 1, 2, 3, 4, 5 }, 2, fn) end
    local a, b = {}, {}
    two(function(v) a[#a + 1] = v end)
    two(function(v) b[#b + 1] = v end)
    if os.getenv "LT_EXHAUSTIVE" == "1" then return assert.equal(5, #a) end
    assert.equal(2, #a)
    assert.not_same(a, b)
  end)
end)
