--- stdlib/clusters/environments.lua: the cluster environments in the order of detection, and the
--- one of this process.
local ClusterEnvironment = require "ltrain.core.ClusterEnvironment"
local config = require "ltrain.core.config"

local environments = {}

-- In the order in which they are asked, after those of scripts: `ltrain launch` and torchrun before
-- srun, which may have started them; PALS, which sets the names of another MPI, before mpirun;
-- mpirun before srun, whose variables it hands on; what may be left over in a shell last. The last
-- one always says yes.
-- Behind each name are variables without all of which it sees nothing: then it is not loaded.
local BUILT_IN <const> = {
  { "Launch", "LTRAIN_LAUNCH" },
  { "TorchElastic", "TORCHELASTIC_RUN_ID" }, { "PALS", "PALS_RANKID" },
  { "MPI", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE" }, { "SLURM", "SLURM_PROCID", "SLURM_JOB_ID" },
  { "LSF", "LSB_JOBID" }, { "Flux", "FLUX_TASK_RANK" }, { "Kubeflow", "KUBERNETES_SERVICE_HOST" },
  { "PMIx", "PMIX_RANK" }, { "Horovod", "HOROVOD_SIZE" }, { "Torch", "WORLD_SIZE" }, { "Local" },
}

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

--- The classes that may be it, in the order in which they are asked: { name =, class = };
--- `variables` (optional) are in place of those of the process.
function environments.list(variables)
  local process = ClusterEnvironment { variables = variables }
  local all = table.move(registered, 1, #registered, 1, {})
  for _, row in ipairs(BUILT_IN) do
    local may_be = #row == 1
    for k = 2, #row do may_be = may_be or process:variable(row[k]) ~= nil end
    if may_be then
      all[#all + 1] = { name = row[1], class = require("ltrain.clusters." .. row[1]) }
    end
  end
  return all
end

--- Returns the detected environment, the variable by which it was detected, and a list of {name =,
--- text =} of variables that do not indicate a launch: lt.clusters.detect{variables = {...}}.
function environments.detect(options)
  local variables = config.check(options, DETECT, "clusters.detect").variables
  local seen = {}
  for _, entry in ipairs(environments.list(variables)) do
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
