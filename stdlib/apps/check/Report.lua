--- stdlib/apps/check/Report.lua: the findings of a check, with script lines, and the checks that
--- were skipped.
local class = require "ltrain.core.class"
local remedies = require "ltrain.core.lua_error_hints"
local script_source = require "ltrain.core.script_source"

local Report = class.extend(nil, "Report")

function Report:init(script)
  self.script, self._short = script, script_source.short(script)
  self.findings, self.skipped = {}, {}
  self.layers = {} -- rows of shapes: {name, class, inputs, outputs, parameters}
  self._seen = {}
end

-- "model.lua:3" and the text without it.
local function split(self, message)
  local file, line, rest = message:match "^([^\n:]+):(%d+): (.*)$"
  if file == self._short then file = self.script end
  return file, math.tointeger(tonumber(line)), rest or message
end

-- A place: a line of the script, "file:line", or "file:line: " as errors have it.
local function place_of(self, where)
  if math.type(where) == "integer" then return self.script, where end
  local file, line = tostring(where or ""):match "^([^\n:]+):(%d+)"
  return file or self.script, math.tointeger(tonumber(line)) or 0
end

local function add(self, level, check, where, text, remedy)
  local file, line = place_of(self, where)
  local key = ("%s:%d:%s"):format(file, line, text)
  if self._seen[key] then return end
  self._seen[key] = true
  self.findings[#self.findings + 1] = { level = level, check = check, file = file, line = line,
    text = text, remedy = remedy, number = #self.findings }
end

--- The script does not work so, or not as it says. `where`: a line, or "file:line"; 0 or nil: none.
function Report:error(check, where, text, remedy)
  add(self, "error", check, where, text, remedy)
end

--- It works, but most likely it is not meant so.
function Report:warn(check, where, text, remedy)
  add(self, "warning", check, where, text, remedy)
end

--- An error that the script has raised, with its place in front; it may name another one. Left out
--- where an error of the line is known.
function Report:raised(check, message, remedy)
  local file, line, text = split(self, (message:gsub("\nstack traceback:.*", "")))
  local named, number = text:match "%(at ([^\n:]+):(%d+)[;)]"
  if named then file, line = named, math.tointeger(tonumber(number)) end
  if file == self.script and self:has(line, "error") then return end
  if file and not remedy then -- with what was meant, where the script's text says that
    text = select(3, split(self, remedies(("%s:%d: %s"):format(file, line, text))))
  end
  add(self, "error", check, file and ("%s:%d"):format(file, line), text, remedy)
end

--- Takes back the errors of a line of the script whose texts have `part`: another says it better.
function Report:retract(line, part)
  for i = #self.findings, 1, -1 do
    local one = self.findings[i]
    if one.file == self.script and one.line == line and one.text:find(part, 1, true) then
      table.remove(self.findings, i)
    end
  end
end

--- What could not be examined, and why.
function Report:skip(text, where)
  local file, line = place_of(self, where)
  if line > 0 then text = ("%s:%d: %s"):format(file, line, text) end
  if self._seen[text] then return end
  self._seen[text] = true
  self.skipped[#self.skipped + 1] = text
end

--- Whether something was found at a line of the script; `level`: that is of this level.
function Report:has(line, level)
  for _, finding in ipairs(self.findings) do
    if finding.line == line and finding.file == self.script
      and (level == nil or finding.level == level) then
      return true
    end
  end
  return false
end

--- How many findings there are of a level.
function Report:count(level)
  local n = 0
  for _, finding in ipairs(self.findings) do n = n + (finding.level == level and 1 or 0) end
  return n
end

-- Errors first, each by its place in the source.
local function sorted(findings)
  local list = table.move(findings, 1, #findings, 1, {})
  table.sort(list, function(a, b)
    if a.level ~= b.level then return a.level == "error" end
    if a.file ~= b.file then return a.file < b.file end
    if a.line ~= b.line then return a.line < b.line end
    return a.number < b.number
  end)
  return list
end

local function counted(n, word)
  return ("%d %s%s"):format(n, word, n == 1 and "" or "s")
end

-- Columns as wide as what is in them.
local function table_lines(rows)
  local width, lines = {}, {}
  for _, row in ipairs(rows) do
    for k, cell in ipairs(row) do width[k] = math.max(width[k] or 0, utf8.len(cell) or #cell) end
  end
  for i, row in ipairs(rows) do
    local cells = {}
    for k, cell in ipairs(row) do
      cells[k] = cell .. (" "):rep(width[k] - (utf8.len(cell) or #cell))
    end
    lines[i] = "  " .. table.concat(cells, "  "):gsub("%s+$", "")
  end
  return lines
end

--- The report as text.
function Report:text()
  local lines = {}
  if #self.layers > 0 then
    lines[#lines + 1] = self.layers.title
    table.move(table_lines(self.layers), 1, #self.layers, #lines + 1, lines)
    lines[#lines + 1] = ""
  end
  for _, finding in ipairs(sorted(self.findings)) do
    lines[#lines + 1] = ("%s:%s %s: %s [%s]"):format(finding.file,
      finding.line > 0 and ("%d:"):format(finding.line) or "", finding.level, finding.text,
      finding.check)
    if finding.remedy then lines[#lines + 1] = "  remedy: " .. finding.remedy end
  end
  for _, text in ipairs(self.skipped) do lines[#lines + 1] = "not checked: " .. text end
  local problems, doubts = self:count "error", self:count "warning"
  lines[#lines + 1] = ("%s: %s, %s"):format(self.script, counted(problems, "error"),
    counted(doubts, "warning"))
  return table.concat(lines, "\n") .. "\n"
end

return Report
