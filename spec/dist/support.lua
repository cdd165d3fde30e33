-- spec/dist/support.lua: runs scripts on several processes, each with a hard limit of its own: a
-- rank that hangs must not hang the suite.
local child = require "spec.cli.child"
local hosts = require "spec.dist.two_hosts.hosts"

local ltrain <const> = os.getenv("LTRAIN") or "ltrain"
local SANITIZED <const> = (os.getenv("LT_SANITIZE") or "") ~= ""
local LIMIT <const> = SANITIZED and 60 or 20 -- seconds
local MPI_LIMIT <const> = SANITIZED and 120 or 60
-- MPI unloads its parts at its end, so that leaks of theirs cannot be distinguished from ours any
-- more.
local MPI <const> = "OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
  .. (SANITIZED and "ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 " or "") .. "timeout -k 1 %d %s"
-- The first rank that ends with a failure ends when all are done: mpirun need not give the others
-- a second more.
local MPIRUN <const> = "mpirun -q --oversubscribe --mca odls_base_sigkill_timeout 0 -n %d '%s' %s"

-- Starts ranks with torchrun's variables, from any folder.
local RANKS <const> = hosts.absolute "spec/dist/ranks.sh"

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

--- A part of a script, for three ranks: every dtype is reduced by every operation.
support.every_reduction = [[
  -- rank r gives r + 1: 1, 2, 3
  local wanted = {{"sum", 6}, {"mean", 2}, {"min", 1}, {"max", 3}, {"prod", 6}}
  for _, dtype in ipairs(lt.dtypes()) do
    for _, case in ipairs(wanted) do
      local op, value = case[1], case[2]
      if dtype.category == "floating" or dtype.category == "integer" and op ~= "mean" then
        local x = lt.full({2, 3}, rank + 1, {dtype = dtype.name})
        same(lt.full({2, 3}, value, {dtype = dtype.name}), dist.all_reduce(x, {op = op}))
      end
    end
  end
  local bool = lt.tensor({rank == 1, true, false})
  same(lt.tensor{true, true, false}, dist.all_reduce(bool, {op = "max"}))
  same(lt.tensor{false, true, false}, dist.all_reduce(bool, {op = "min"}))
]]

-- Runs the command on "script.lua" in a folder of its own; returns its exit status, what it printed
-- on both streams, and the folder. Line 1 of `code` is line 1 of the script.
local function run(command, code)
  local folder = child.folder()
  child.write(folder .. "/script.lua", support.prelude .. code)
  local pipe <close> = assert(io.popen(("cd '%s' && %s script.lua 2>&1; echo \"exit $?\""):format(
    folder, command)))
  local text = pipe:read("a")
  local output, status = text:match("^(.*)exit (%d+)\n$")
  return tonumber(status), output, folder
end

--- Runs a script on one process.
function support.run(code)
  return run(("timeout -k 1 %d '%s'"):format(LIMIT, ltrain), code)
end

--- Runs it on n ranks of mpirun; `word` is one of the command line ("run"), nil: `ltrain FILE`.
function support.mpirun(n, code, word)
  return run(MPI:format(MPI_LIMIT, MPIRUN:format(n, ltrain, word or "")), code)
end

--- Runs it on n ranks with torchrun's variables, without an MPI.
function support.ucx(n, code)
  return run(("timeout -k 1 %d '%s' %d '%s' run"):format(MPI_LIMIT, RANKS, n, ltrain), code)
end

--- Runs it over shm, where it starts n ranks itself, or on n ranks of mpirun, here ("mpi") or half
--- of them on each of two hosts, or on n ranks without it ("ucx").
function support.over(way, n, code)
  if way == "shm" then return support.run(code) end
  if way == "ucx" then return support.ucx(n, code) end
  if way == "mpi" then return support.mpirun(n, code, "run") end
  local two <close> = hosts.up()
  return run(MPI:format(MPI_LIMIT, two:mpirun(n // 2)), code)
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
