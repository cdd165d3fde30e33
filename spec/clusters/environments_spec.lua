-- spec/clusters/environments_spec.lua: who launched this process, by the variables it set.
local environments = require "ltrain.clusters.environments"
local error_of = require "spec.error_of"
local lt = require "ltrain"

local check <const> = environments.check

local function detect(variables) return lt.clusters.detect { variables = variables } end

-- Variables with others over them; "" unsets.
local function with(variables, more)
  local all = {}
  for name, value in pairs(variables) do all[name] = value end
  for name, value in pairs(more) do all[name] = value end
  return all
end

local function place(e)
  return { e:global_rank(), e:world_size(), e:local_rank(), e:node_rank(), e:num_nodes(),
    e:main_address(), e:main_port() }
end

-- As slurmd 22.05 sets them.
local ALLOCATION <const> = { SLURM_JOB_ID = "3", SLURM_JOB_NAME = "interactive",
  SLURM_NTASKS = "2", SLURM_NNODES = "2", SLURM_JOB_NODELIST = "lta,ltb" }
local BATCH <const> = with(ALLOCATION, { SLURM_JOB_NAME = "job.sh", SLURM_PROCID = "0",
  SLURM_LOCALID = "0", SLURM_NODEID = "0", ENVIRONMENT = "BATCH" })
local STEP <const> = with(BATCH, { SLURM_STEP_ID = "0", SLURM_STEP_NUM_TASKS = "2",
  SLURM_STEP_NUM_NODES = "2", SLURM_STEP_NODELIST = "lta,ltb", SLURM_PROCID = "1",
  SLURM_NODEID = "1", PMIX_RANK = "1", PMIX_NAMESPACE = "slurm.pmix.3.0" })
local OMPI <const> = { OMPI_COMM_WORLD_SIZE = "4", OMPI_COMM_WORLD_RANK = "3",
  OMPI_COMM_WORLD_LOCAL_RANK = "1", OMPI_COMM_WORLD_LOCAL_SIZE = "2" }
local TORCH <const> = { TORCHELASTIC_RUN_ID = "none", WORLD_SIZE = "4", RANK = "3",
  LOCAL_RANK = "1", LOCAL_WORLD_SIZE = "2", GROUP_RANK = "1", MASTER_ADDR = "head",
  MASTER_PORT = "29500" }
local LAUNCH <const> = { LTRAIN_LAUNCH = "job", WORLD_SIZE = "5", RANK = "3", LOCAL_RANK = "1",
  LOCAL_WORLD_SIZE = "2", GROUP_RANK = "1", GROUP_WORLD_SIZE = "2", MASTER_ADDR = "head",
  MASTER_PORT = "20000", LTRAIN_TOKEN = "job 2", LTRAIN_INCARNATION = "2",
  LTRAIN_REASON = "host b has gone" }
local JSM <const> = { LSB_JOBID = "1234", JSM_NAMESPACE_SIZE = "4", JSM_NAMESPACE_RANK = "3",
  JSM_NAMESPACE_LOCAL_RANK = "1" }
local KUBE <const> = { KUBERNETES_SERVICE_HOST = "10.0.0.1", MASTER_ADDR = "job-master-0",
  MASTER_PORT = "23456", WORLD_SIZE = "3", RANK = "2" }
local HVD <const> = { HOROVOD_RANK = "3", HOROVOD_SIZE = "4", HOROVOD_LOCAL_RANK = "1" }
local ENV <const> = { RANK = "3", WORLD_SIZE = "4", LOCAL_RANK = "1", MASTER_ADDR = "head",
  MASTER_PORT = "29500" }
local FLUX <const> = { FLUX_TASK_RANK = "3", FLUX_JOB_SIZE = "4", FLUX_TASK_LOCAL_ID = "1" }
local PALS <const> = { PALS_RANKID = "3", PALS_LOCAL_RANKID = "1", PMI_SIZE = "4", PMI_RANK = "3" }

describe("clusters.detect", function()
  it("finds nothing where nothing was launched", function()
    local e, evidence, seen = detect {}
    assert.equal("Local", e.name)
    assert.equal("no variables of a launcher", evidence)
    assert.same({}, seen)
    assert.same({ 0, 1, 0, 0, 1, "127.0.0.1" }, place(e))
    assert.is_nil(check(e, 8, 1))
    assert.is_nil(check(e, "auto", 1))
  end)

  it("does not take variables of a user for a launch", function()
    for _, variables in ipairs { { WORLD_SIZE = "4", RANK = "1", MASTER_ADDR = "x" },
      with(ENV, { WORLD_SIZE = "1", RANK = "0" }), { FLUX_TASK_RANK = "0", FLUX_JOB_SIZE = "1" },
      with(BATCH, { PMIX_RANK = "0" }),
      { OMPI_MCA_btl = "tcp", SLURM_CONF = "/etc/slurm.conf" }, { OMPI_COMM_WORLD_SIZE = "" } } do
      local e = detect(variables)
      assert.equal("Local", e.name)
    end
  end)

  it("knows the launcher's own addresses", function()
    local function network(variables) return (detect(variables):network()) end
    assert.is_nil(network {})
    assert.is_nil(network(OMPI))
    assert.equal("10.0.0.1,10.1.0.1,fd00::2", network(with(OMPI, { OMPI_MCA_orte_hnp_uri =
      "105906176.0;tcp://10.0.0.1,10.1.0.1:41611;tcp6://[fd00::2]:45017" })))
    assert.equal("10.0.0.1", network(with(STEP, { SLURM_LAUNCH_NODE_IPADDR = "10.0.0.1" })))
  end)

  it("knows ranks of mpirun", function()
    local e, evidence = detect(OMPI)
    assert.equal("MPI", e.name)
    assert.equal("mpi", e.comm)
    assert.equal("OMPI_COMM_WORLD_SIZE=4, OMPI_COMM_WORLD_RANK=3", evidence)
    assert.same({ 3, 4, 1 }, place(e))
    assert.is_nil(check(e, 2, 2))
    assert.is_nil(check(e, "auto", 1))
    assert.same({ 3, 4, 1, 0, 1, "127.0.0.1" },
      place(detect(with(OMPI, { OMPI_COMM_WORLD_LOCAL_SIZE = "4" }))))
  end)

  it("knows tasks of srun", function()
    local e, evidence = detect(STEP)
    assert.equal("SLURM", e.name)
    assert.equal("SLURM_PROCID=1 of 2 tasks, job 3", evidence)
    assert.same({ 1, 2, 0, 1, 2, "lta", 15003 }, place(e))
    assert.is_nil(check(e, 1, 2))
  end)

  it("takes no shell of SLURM for a launch", function()
    local shells = {
      ["a shell in the allocation of job 3"] = ALLOCATION,
      ["the batch script of job 3, outside of srun"] = BATCH,
      ["an interactive shell of job 3"] = with(STEP, { SLURM_STEP_NUM_TASKS = "1",
        SLURM_PTY_PORT = "34565", SLURM_JOB_NAME = "bash" }),
      ["the interactive step of job 3"] = with(STEP, { SLURM_STEP_ID = "4294967290" }),
    }
    for text, variables in pairs(shells) do
      local e, _, seen = detect(variables)
      assert.equal("Local", e.name)
      assert.same({ { name = "SLURM", text = text } }, seen)
    end
    -- `srun -n 2 bash -c "ltrain ..."` names its job bash, and is a launch.
    assert.equal("SLURM", detect(with(STEP, { SLURM_JOB_NAME = "bash" })).name)
  end)

  it("knows what started last where one launcher started another", function()
    assert.equal("MPI", detect(with(BATCH, OMPI)).name)
    assert.equal("MPI", detect(with(STEP, OMPI)).name)
    assert.equal("TorchElastic", detect(with(STEP, TORCH)).name)
    assert.equal("Launch", detect(with(with(STEP, TORCH), LAUNCH)).name)
  end)

  it("knows ltrain launch, of one rank too", function()
    local e = detect(LAUNCH)
    assert.same({ 3, 5, 1, 1, 2, "head" }, { table.unpack(place(e), 1, 6) })
    assert.same({ 20000, 20015 }, { e:main_port() })
    assert.equal("job 2", e:token())
    assert.equal("Launch", detect(with(LAUNCH, { WORLD_SIZE = "1", RANK = "0" })).name)
    assert.is_nil(check(e))
    assert.matches("ltrain launch --nproc_per_node 4", check(e, 4, 1), 1, true)
  end)

  it("knows how often ranks were started again, and why", function()
    local function of(variables)
      local e = detect(variables)
      return { e:incarnation(), e:reason() }
    end
    assert.same({ 0, "" }, of {})
    assert.same({ 2, "host b has gone" }, of(LAUNCH))
    assert.same({ 0, "" }, of(TORCH))
    assert.same({ 3, "restarted by torchrun" },
      of(with(TORCH, { TORCHELASTIC_RESTART_COUNT = "3" })))
  end)

  it("knows torchrun, jsrun and PyTorchJobs", function()
    assert.same({ 3, 4, 1, 1, 2, "head", 29500 }, place((detect(TORCH))))
    assert.same({ 3, 4, 1 }, { table.unpack(place((detect(JSM))), 1, 3) })
    assert.same({ 2, 3, 0, 2, 3, "job-master-0", 23456 }, place((detect(KUBE))))
    assert.equal("Kubeflow", detect(KUBE).name)
    for name, variables in pairs { Torch = ENV, Flux = FLUX, PALS = PALS, Horovod = HVD } do
      local e = detect(variables)
      assert.equal(name, e.name)
      assert.same({ 3, 4, 1 }, { table.unpack(place(e), 1, 3) })
    end
    assert.equal("PMIx", detect { PMIX_RANK = "3" }.name)
    assert.equal("MPI", detect(with(OMPI, { PMIX_RANK = "3" })).name)
    assert.equal("LSF", detect(JSM).name)
    local _, _, seen = detect { LSB_JOBID = "1234" }
    assert.equal("a shell in job 1234 of LSF, outside of jsrun", seen[1].text)
  end)
end)

describe("before ranks are joined", function()
  it("SLURM without PMIx is an error with both numbers and the remedy", function()
    local forged = { SLURM_PROCID = "0", SLURM_NTASKS = "4" }
    assert.matches("^SLURM: SLURM started 4 tasks, but without PMIx each of them is a world of 1: "
      .. "start them with srun %-%-mpi=pmix", check((detect(forged))))
    assert.is_nil(check((detect(with(forged, { SLURM_NTASKS = "1" }))), 8, 1))
  end)

  it("devices that contradict the world are an error with both numbers and the remedy", function()
    assert.equal("MPI: devices x num_nodes = 3 x 1 = 3, but 4 ranks were started: mpirun -n 3 "
      .. "ltrain run, or devices = 'auto'", check((detect(OMPI)), 3, 1))
    assert.equal("SLURM: devices x num_nodes = 2 x 2 = 4, but 2 ranks were started: srun "
      .. "--mpi=pmix -n 4 ltrain run, or devices = 'auto'", check((detect(STEP)), "2", 2))
    assert.equal("MPI: devices x num_nodes = 2 x 1 = 2, but 1 rank was started: mpirun -n 2 ltrain "
      .. "run, or devices = 'auto'", check((detect { OMPI_COMM_WORLD_SIZE = "1" }), 2, 1))
  end)

  it("nodes that contradict the launch are an error", function()
    assert.equal("SLURM: num_nodes = 4, but the ranks were started on 2 machines",
      check((detect(STEP)), "auto", 4))
    assert.matches("^Local: num_nodes = 2, but no launcher started ranks on 2 machines: mpirun "
      .. "%-n 4 ltrain run, or srun", check((detect {}), 2, 2))
  end)

  it("ranks that nothing connects are refused with the word to use", function()
    for _, variables in ipairs { JSM, FLUX, PALS } do
      local e = detect(variables)
      assert.matches(("^%s: %d ranks were started, and nothing says how they are connected: start "
        .. "them with mpirun %%-n %d ltrain run"):format(e.name, e:world_size(),
        e:world_size()), check(e))
    end
    for _, variables in ipairs { { PMIX_RANK = "0" }, { PALS_RANKID = "0" } } do
      assert.matches("several ranks were started, .* mpirun %-n N ltrain run",
        check((detect(variables))))
    end
    assert.is_nil(check((detect(with(TORCH, { WORLD_SIZE = "1" })))))
    assert.is_nil(check((detect(with(JSM, { PMIX_RANK = "3" })))))
  end)

  it("ranks that know an address are connected over UCX", function()
    for _, variables in ipairs { TORCH, KUBE, ENV } do
      local e = detect(variables)
      assert.equal("ucx", e.comm)
      assert.is_nil(check(e))
    end
    local agent = with(TORCH, { TORCHELASTIC_USE_AGENT_STORE = "True" })
    assert.same({ 29501, 29516 }, { detect(agent):main_port() })
    local last = with(agent, { MASTER_PORT = "65535" })
    assert.same({ 65519, 65534 }, { detect(last):main_port() })
    assert.not_equal(detect(TORCH):token(),
      detect(with(TORCH, { TORCHELASTIC_RESTART_COUNT = "7" })):token())
    assert.equal("mine", detect(with(ENV, { LTRAIN_TOKEN = "mine" })):token())
    assert.is_nil(detect(ENV):token())
  end)

  it("ranks that know a file are too, without a port", function()
    local variables = with(ENV, { MASTER_ADDR = "file:///shared/job1", MASTER_PORT = "" })
    local e, evidence = detect(variables)
    assert.equal("Torch", e.name)
    assert.equal("WORLD_SIZE=4, RANK=3, MASTER_ADDR=file:///shared/job1", evidence)
    assert.equal("Local", detect(with(ENV, { MASTER_PORT = "" })).name)
  end)

  it("ranks of another MPI are refused", function()
    assert.matches("^MPI: 2 ranks were started by an mpirun that is not Open MPI's",
      check((detect { PMI_SIZE = "2", PMI_RANK = "0" })))
  end)
end)

describe("clusters.register", function()
  after_each(function() environments.reset() end)

  it("puts an environment before the others, with a comm of its own", function()
    lt.clusters.register("ours", {
      comm = "ring",
      detect = function(self)
        return self:variable "OURS_SIZE" and "OURS_SIZE=" .. self:variable "OURS_SIZE"
      end,
      world_size = function(self) return (self:integer "OURS_SIZE") end,
    })
    local e, evidence = detect(with(OMPI, { OURS_SIZE = "5" }))
    assert.same({ "ours", "ring", "OURS_SIZE=5" }, { e.name, e.comm, evidence })
    assert.same({ 0, 5 }, { table.unpack(place(e), 1, 2) })
    assert.is_nil(check(e, 5, 1))
    assert.equal("MPI", detect(OMPI).name)
  end)

  it("takes a class, and a name once", function()
    local Mine = lt.clusters.TorchElastic:extend "Mine"
    Mine.comm = "tcp"
    lt.clusters.register("mine", lt.clusters.TorchElastic)
    lt.clusters.register("mine", Mine)
    local count = 0
    for _, entry in ipairs(environments.list()) do
      if entry.name == "mine" then count = count + 1 end
    end
    assert.equal(1, count)
    assert.is_nil(check((detect(TORCH)), 4, 1))
  end)

  it("refuses what is not an environment, naming what it may have", function()
    assert.matches("clusters.register: x: an environment has no 'word_size'; did you mean "
      .. "'world_size'%?", error_of(lt.clusters.register, "x", { word_size = print }))
    assert.matches("clusters.register: x: must be a table of methods or a class below",
      error_of(lt.clusters.register, "x", lt.Module))
  end)
end)
