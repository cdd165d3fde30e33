--- stdlib/clusters/environments.lua: which environments are looked for, and which one this process
--- is in.
local config = require "ltrain.core.config"

local environments = {}

-- In the order in which they are asked, after those of scripts: torchrun before srun, which may
-- have started it; PALS, which sets the names of another MPI, before mpirun; mpirun before srun,
-- whose variables it hands on; what may be left over in a shell last. The last one always says yes.
local BUILT_IN <const> = { "TorchElastic", "PALS", "MPI", "SLURM", "LSF", "Flux", "Kubeflow",
  "PMIx", "Torch", "Local" }

local DETECT <const> = {
  variables = { type = "table", doc = "used instead of the environment variables of the process" },
}

local registered = {} -- by scripts, the newest first: { name =, class = }
local found -- { environment, evidence, seen } of this process, when it was asked for

--- Puts a class before all others; one that was registered under this name gives way.
function environments.put(name, class)
  for i, entry in ipairs(registered) do
    if entry.name == name then table.remove(registered, i) break end
  end
  table.insert(registered, 1, { name = name, class = class })
  found = nil
end

--- Forgets what scripts have registered.
function environments.reset()
  registered, found = {}, nil
end

--- All classes in the order in which they are asked: { name =, class = }.
function environments.list()
  local all = table.move(registered, 1, #registered, 1, {})
  for _, name in ipairs(BUILT_IN) do
    all[#all + 1] = { name = name, class = require("ltrain.clusters." .. name) }
  end
  return all
end

--- Returns the detected environment, the variable by which it was detected, and a list of {name =,
--- text =} of variables that do not indicate a launch: lt.clusters.detect{variables = {...}}.
function environments.detect(options)
  local variables = config.check(options, DETECT, "clusters.detect").variables
  local seen = {}
  for _, entry in ipairs(environments.list()) do
    local environment = entry.class { variables = variables }
    environment.name = entry.name
    local evidence, other = environment:detect()
    if evidence then return environment, evidence, seen end
    if other then seen[#seen + 1] = { name = entry.name, text = other } end
  end
end

--- Returns the results of the first call of detect() in this process.
function environments.current()
  found = found or table.pack(environments.detect())
  return table.unpack(found, 1, found.n)
end

--- What is wrong with joining the ranks of an environment, as a sentence that names it; or nil.
--- `devices` and `num_nodes` as far as they are known. MPI_Init prints its own text and aborts when
--- a launch is not what it looks like; so nothing of MPI is asked here, only variables.
function environments.check(environment, devices, num_nodes)
  local wrong = environment:refusal() or environment:validate(devices, num_nodes)
  return wrong and ("%s: %s"):format(environment.name or "cluster", wrong)
end

return environments
