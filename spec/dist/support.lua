-- spec/dist/support.lua: runs scripts on several processes, each with a hard limit of its own: a
-- rank that hangs must not hang the suite.
local ltrain <const> = os.getenv("LTRAIN") or "ltrain"
local LIMIT <const> = (os.getenv("LT_SANITIZE") or "") ~= "" and 60 or 20 -- seconds

local support = {}

-- What scripts may use besides ltrain: `same` compares tables and tensors, `error_of` what raises.
local PRELUDE <const> = [[
local lt = require "ltrain"
local dist = lt.dist
local function show(v)
  if type(v) ~= "table" then return lt.is_tensor(v) and v.dtype .. tostring(v) or tostring(v) end
  local keys, parts = {}, {}
  for key in pairs(v) do keys[#keys + 1] = key end
  table.sort(keys, function(a, b) return tostring(a) < tostring(b) end)
  for i, key in ipairs(keys) do parts[i] = tostring(key) .. "=" .. show(v[key]) end
  return "{" .. table.concat(parts, ", ") .. "}"
end
local function same(wanted, got)
  if show(wanted) ~= show(got) or math.type(wanted) ~= math.type(got) then
    error(("wanted %s, got %s"):format(show(wanted), show(got)), 2)
  end
end
local function error_of(fn, ...)
  local ok, message = pcall(fn, ...)
  if ok then error("no error", 2) end
  return message
end
]]

--- The same in one line: line 1 of a script stays its line 1.
support.prelude = PRELUDE:gsub("%s*\n%s*", " ")

-- A fresh folder.
function support.folder()
  local name = os.tmpname()
  os.remove(name)
  assert(os.execute("mkdir -p '" .. name .. "'"))
  return name
end

function support.write(path, text)
  local file <close> = assert(io.open(path, "wb"))
  file:write(text)
end

--- Runs a script in a folder of its own; returns its exit status, what it printed on both streams,
--- and the folder. Line 1 of `code` is line 1 of "script.lua".
function support.run(code, folder)
  folder = folder or support.folder()
  support.write(folder .. "/script.lua", support.prelude .. code)
  local command = ("cd '%s' && timeout -k 1 %d '%s' script.lua 2>&1; echo \"exit $?\"")
    :format(folder, LIMIT, ltrain)
  local pipe <close> = assert(io.popen(command))
  local text = pipe:read("a")
  local output, status = text:match("^(.*)exit (%d+)\n$")
  return tonumber(status), output, folder
end

local luassert = require "luassert"

--- The script must end well; returns what it printed.
function support.passes(code)
  local status, output = support.run(code)
  luassert.equal(0, status, output)
  return output
end

--- `body` runs on n ranks, as a function of `rank`.
function support.ranks(n, body)
  return support.passes(("dist.launch(%d, function(rank) %s end)"):format(n, body))
end

--- The script must fail; returns what it printed.
function support.fails(code)
  local status, output = support.run(code)
  luassert.equal(1, status, output)
  return output
end

return support
