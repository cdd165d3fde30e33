-- spec/dist/trained.lua: scripts that train on ranks, forked by the Trainer or started by mpirun,
-- and what they print, compared with one process.
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local luassert = require "luassert"

local trained = {}

-- n: the ranks that the spec asks for, nil where the script says it. trainer(o): a Trainer for an
-- epoch on them, or on those that are there, without files and bars unless `o` asks for them.
local PRELUDE <const> = [[
local lt = require "ltrain"
local n = arg and math.tointeger(tonumber(arg[1]))
local function trainer(o)
  local all = {max_epochs = 1, logger = false, num_sanity_val_steps = 0}
  if lt.dist.world_size() == 1 then all.devices = n end
  for _, name in ipairs {"checkpointing", "progress_bar", "model_summary"} do
    all["enable_" .. name] = false
  end
  for name, value in pairs(o or {}) do all[name] = value end
  return lt.Trainer(all)
end
]]

--- What a script begins with, in one line: line 1 of what follows stays its line 1.
trained.prelude = PRELUDE:gsub("%s*\n%s*", " ")

-- On another device (spec/devices.lua) rank k computes on device k; what scripts make is on the
-- CPU.
local device <const> = os.getenv "LT_TEST_DEVICE"
if device then
  trained.prelude = trained.prelude .. ([[
    do
      local count = require "ltrain.c".runtime.devices "NAME"
      local Accelerator = require "ltrain.core.Accelerator"
      function Accelerator:device(rank) return "NAME:" .. rank % count end
    end
  ]]):gsub("NAME", device):gsub("%s*\n%s*", " ")
end

-- Where every rank runs the whole script.
local OF_RANK_0 <const> = "local function print(...) if lt.dist.rank() == 0 then "
  .. "_G.print(...) end end "

--- Runs scripts that begin with `beginning` too.
function trained.with(beginning)
  local scripts = {}

  --- On n ranks that the Trainer forks (nil: the script says how many), perhaps in another
  --- environment; exit status, standard output and error.
  function scripts.run(n, script, env)
    local folder = child.folder()
    child.write(folder .. "/script.lua", trained.prelude .. beginning .. script)
    local status, out, err = child.run({ "script.lua", n and tostring(n) },
      { dir = folder, env = env, seconds = 180 })
    child.remove(folder)
    return status, out, err
  end

  --- What the script prints on n ranks; it must end well.
  function scripts.output(n, script, env)
    local status, out, err = scripts.run(n, script, env)
    luassert.equal(0, status, err)
    return out, err
  end

  --- The script prints the same on 1, 2 and 4 ranks; returns that.
  function scripts.same(script)
    local wanted = scripts.output(1, script)
    luassert.not_equal("", wanted)
    for _, n in ipairs { 2, 4 } do
      luassert.equal(wanted, (scripts.output(n, script)), n .. " ranks")
    end
    return wanted
  end

  --- A job of n ranks (spec/dist/job.lua), of which rank 0 prints.
  function scripts.start(way, n, script)
    return job.start(("arg = {[0] = 'script.lua', '%d'} "):format(n) .. trained.prelude .. OF_RANK_0
      .. beginning .. script, { ranks = n, over = way })
  end

  --- What rank 0 of n prints, forked ("shm") or started by mpirun ("mpi", "two hosts").
  function scripts.over(way, n, script)
    if way == "shm" then return scripts.output(n, script) end
    local one <close> = scripts.start(way, n, script)
    luassert.truthy(one:wait_for("status", 60), "it does not end")
    luassert.truthy(one:wait_gone(10), "processes are left")
    luassert.equal(0, one:status(), one:read "err")
    return one:read "out", one:read "err"
  end

  return scripts
end

return trained
