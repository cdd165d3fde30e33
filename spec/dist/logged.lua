-- spec/dist/logged.lua: scripts that log on several ranks, for the specs of logging and metrics.
local child = require "spec.cli.child"
local job = require "spec.dist.job"
local luassert = require "luassert"

local logged = {}

-- What a script begins with: n, the number of ranks; a module with one weight; `loader(k, size)`
-- over the numbers 0 .. k - 1; `line(t)`, the figures of a table in one line; `equal(trainer)`,
-- whether all ranks have the same figures; `say`, print on rank 0 alone.
local PRELUDE <const> = [[
local lt = require "ltrain"
lt.seed(1)
local n = math.tointeger(tonumber(arg[1]))
local function rank() return lt.dist.rank() end
local function say(...) if rank() == 0 then print(...) end end
local Net = lt.Module:extend("Net")
function Net:init() self.w = lt.parameter(lt.tensor {1.0}) end
function Net:forward(x) return x:to("f32") * self.w end
function Net:loss(batch) return self(batch[1]):mean() end
function Net:training_step(batch) return self:loss(batch) end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 0.0}) end
local function loader(k, size)
  return lt.data.DataLoader(lt.data.TensorDataset(lt.arange(k)), {batch_size = size or 1})
end
local function trainer(o)
  o = o or {}
  if not os.getenv "LT_JOINED" then o.devices = o.devices or n end
  o.max_epochs = o.max_epochs or 1
  o.logger, o.num_sanity_val_steps = o.logger or false, 0
  o.enable_checkpointing = o.enable_checkpointing or false
  o.enable_progress_bar, o.enable_model_summary = false, false
  return lt.Trainer(o)
end
local function text(v)
  if v == nil then return "nil" end
  return v ~= v and "nan" or ("%.9g"):format(v)
end
-- The figures of a table, by name, in one line.
local function line(t)
  local names, parts = {}, {}
  for name in pairs(t) do names[#names + 1] = name end
  table.sort(names)
  for i, name in ipairs(names) do parts[i] = name .. "=" .. text(t[name]) end
  return table.concat(parts, " ")
end
-- Whether all ranks have the same tables of figures.
local function equal(t)
  local all = lt.dist.all_gather {line(t.callback_metrics), line(t.progress_bar_metrics),
    line(t.logged_metrics)}
  for _, one in ipairs(all) do
    for i = 1, 3 do if one[i] ~= all[1][i] then return all[1][i] .. " / " .. one[i] end end
  end
  return true
end
]]

--- Runs a script on n ranks that the Trainer forks; exit status, standard output and error.
function logged.run(n, script)
  local folder = child.folder()
  child.write(folder .. "/script.lua", PRELUDE .. script)
  local status, out, err = child.run({ "script.lua", tostring(n) }, { dir = folder })
  child.remove(folder)
  return status, out, err
end

--- What the script prints on n ranks; it must end well.
function logged.output(n, script)
  local status, out, err = logged.run(n, script)
  luassert.equal(0, status, err)
  return out, err
end

--- The script prints the same on 1, 2 and 4 ranks; returns that.
function logged.same(script)
  local wanted = logged.output(1, script)
  luassert.not_equal("", wanted)
  for _, n in ipairs { 2, 4 } do
    luassert.equal(wanted, (logged.output(n, script)), n .. " ranks")
  end
  return wanted
end

--- What the script prints under mpirun -n `ranks`, or nil and why that cannot be tried.
function logged.over_mpi(ranks, script)
  local can, why = job.can "mpi"
  if not can then return nil, why end
  local one <close> = job.start("arg = {[0] = 'script.lua', tostring(lt.dist.world_size())}\n"
    .. PRELUDE .. script, { ranks = ranks, over = "mpi", env = "LT_JOINED=1" })
  luassert.truthy(one:wait_for("status", 60), "it does not end")
  luassert.truthy(one:wait_gone(10), "processes are left")
  luassert.equal(0, one:status(), one:read "err")
  return one:read "out", one:read "err"
end

return logged
