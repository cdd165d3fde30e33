-- spec/apps/check/bugs_spec.lua: `ltrain check` names each seeded bug, and nothing else.
-- tags: sampled, unsanitized
local bugs = require "spec.apps.check.bugs"
local bugs_in_use = require "spec.apps.check.bugs_in_use"
local child = require "spec.cli.child"
local sample = require "spec.sample"

-- Replaces the first place of a text that stands there once or more.
local function replace(text, from, to)
  local first, last = text:find(from, 1, true)
  assert(first, "the script has no: " .. from)
  return text:sub(1, first - 1) .. to .. text:sub(last + 1)
end

local function script_of(row)
  if row.script then return row.script end
  local text = row[5].text
  for _, change in ipairs(row[5].changes) do text = replace(text, change[1], change[2]) end
  return text
end

-- The number of the first line with the text.
local function line_with(script, text)
  local number = 0
  for line in script:gmatch "(.-)\n" do
    number = number + 1
    if line:find(text, 1, true) then return number end
  end
  error("no line has: " .. text)
end

local function check(folder, script, arguments)
  child.write(folder .. "/model.lua", script)
  local words = { "check", "model.lua" }
  table.move(arguments or {}, 1, #(arguments or {}), 3, words)
  return child.run(words, { dir = folder })
end

-- The findings of a report: {line =, text =, check =, remedy =}.
local function findings_of(report)
  local list = {}
  for line in report:gmatch "[^\n]+" do
    local where, text, name = line:match "^model%.lua:(.-) ?(%a+: .*) %[([%w_]+)%]$"
    if where then
      list[#list + 1] = { line = tonumber((where:match "^%d+")), text = text, check = name }
    elseif line:find "^  remedy: " and #list > 0 then
      list[#list].text = list[#list].text .. "; " .. line:sub(3)
    end
  end
  return list
end

describe("ltrain check", function()
  local folder

  before_each(function() folder = child.folder() end)
  after_each(function() child.remove(folder) end)

  local function names(row)
    it("names " .. row[1], function()
      local script = script_of(row)
      local status, out, err = check(folder, script)
      assert.equal(1, status, out .. err)
      local found
      for _, finding in ipairs(findings_of(out)) do
        if finding.check == row[2] and finding.text:find(row[3], 1, true) then
          found = found or finding
        end
      end
      assert(found, ("[%s] %s\nis not in:\n%s%s"):format(row[2], row[3], out, err))
      local wanted = row.line == nil and row[4] or row.line
      if wanted then assert.equal(line_with(script, wanted), found.line, out) end
      local is_of_script = row[2] == "fit" or row[2] == "load" -- its message says what to do
      if not is_of_script then assert.matches("remedy: ", found.text) end
      local others = #findings_of(out) - 1
      assert.is_true(others <= (row.more or 0), out)
    end)
  end

  -- Of each check one at least.
  local function some(rows) return sample(rows, 6, function(row) return row[2] end) end
  for _, row in ipairs(some(bugs.rows)) do names(row) end
  for _, row in ipairs(some(bugs_in_use.rows)) do names(row) end
end)
