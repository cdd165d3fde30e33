-- spec/gpu/report.lua: what a GPU has to prove, in sections that do not depend on each other.
--
--   ./dev gpu [--tiny] [--again] [--out FILE] [SECTION...]       gpu.json
--
-- Prints a row a figure, then a row a section: passed, failed or skipped, each with its reason.
-- Each section takes at most 8 minutes, and appends one line of JSON to the file when it ends, so
-- that what was found stays where the next one hangs the machine. Without names, sections that this
-- build has passed already, by the file, are not run again (--again: they are). One that fails
-- stops no other. Exit status 1: one failed. --tiny: small sizes, for the emulated GPU
-- (LTRAIN_BACKENDS=BUILD/spec/cuda/backends). PyTorch is that of LT_TORCH_PYTHON, LT_TORCH_VENV, or
-- BUILD/venv-torch.
package.path = "./?.lua;" .. package.path
local section = require "spec.gpu.section"

for _, part in ipairs { "kernels", "training", "speed", "failures", "links", "specs" } do
  require("spec.gpu.sections." .. part)
end

local LIMIT <const> = 480 -- seconds of a section
local out, again, wanted = "gpu.json", false, {}

-- JSON.

local function encode(value)
  if type(value) == "number" then
    return value == value and math.abs(value) ~= math.huge and ("%.10g"):format(value) or "null"
  elseif type(value) == "string" then
    return '"' .. value:gsub('[%c"\\]', function(c)
      return ("\\u%04x"):format(c:byte())
    end) .. '"'
  end
  return tostring(value)
end

local function json(one, build)
  local values = {}
  for k, v in ipairs(one.values) do
    values[k] = ('{"name": %s, "value": %s, "unit": %s}'):format(encode(v.name), encode(v.value),
      encode(v.unit))
  end
  return ('{"section": %s, "status": %s, "build": %s, "date": %s, "reason": %s, "seconds": %s, '
    .. '"text": %s, "values": [%s]}'):format(encode(one.name), encode(one.status), encode(build),
    encode(os.date "!%Y-%m-%dT%H:%M:%SZ"), encode(one.reason or ""), encode(one.seconds),
    encode(one.text or ""), table.concat(values, ", "))
end

-- Names the program and its kernels: what an earlier build has passed proves nothing of this one.
local function build_id()
  return (section.line_of(("cat %s %s/ltrain_cuda.so 2>/dev/null | cksum"):format(
    section.quote(section.LTRAIN), section.quote(section.BACKENDS))):gsub(" ", "-"))
end

-- Sections that passed with this build, by the lines of the file.
local function passed_before(build)
  local passed = {}
  for line in section.read_all(out):gmatch "[^\n]+" do
    local name, status, of = line:match '^{"section": "(.-)", "status": "(.-)", "build": "(.-)"'
    if of == build then passed[name] = status == "passed" or nil end
  end
  return passed
end

local function append(line)
  local file <close> = assert(io.open(out, "a"))
  file:write(line, "\n")
end

local function names()
  local list = {}
  for k, one in ipairs(section.list) do list[k] = one.name end
  return table.concat(list, ", ")
end

local function arguments()
  local known, k = {}, 1
  for _, one in ipairs(section.list) do known[one.name] = true end
  while arg[k] do
    if arg[k] == "--tiny" then
      section.tiny = true
    elseif arg[k] == "--again" then
      again = true
    elseif arg[k] == "--out" and arg[k + 1] then
      k = k + 1
      out = arg[k]
    elseif known[arg[k]] then
      wanted[arg[k]] = true
    else
      io.stderr:write(("gpu: no section '%s': there are %s\n"):format(arg[k], names()))
      os.exit(2)
    end
    k = k + 1
  end
end

local function verdict(one)
  return ("%-11s %-8s %7.1f s  %s"):format(one.name, one.status, one.seconds, one.reason or "")
end

-- Runs a section; what it raises is its result.
local function judge(one, build)
  section.current = one
  local began = section.clock()
  section.deadline = began + LIMIT
  print(("== %s: %s"):format(one.name, one.about))
  local ok, why = pcall(one.fn)
  one.seconds = section.clock() - began
  if ok then
    one.status = "passed"
  elseif type(why) == "table" then
    one.status = why.skipped and "skipped" or "failed"
    one.reason = why.skipped or why.failed
  else
    one.status, one.reason = "failed", tostring(why)
  end
  print(verdict(one))
  append(json(one, build))
end

arguments()
io.stdout:setvbuf "line"
section.dir = section.line_of "mktemp -d"
section.lua = arg[-1] or "lua5.4"
local build <const> = build_id()
local passed = again and {} or passed_before(build)
local bad = false
for _, one in ipairs(section.list) do
  if wanted[one.name] or not (next(wanted) or passed[one.name]) then judge(one, build) end
end
print ""
for _, one in ipairs(section.list) do
  if one.status then
    bad = bad or one.status == "failed"
    print(verdict(one))
  elseif passed[one.name] and not next(wanted) then
    print(("%-11s passed before, by %s"):format(one.name, out))
  end
end
print("written: " .. out)
os.execute("rm -rf " .. section.quote(section.dir))
os.exit(bad and 1 or 0)
