-- spec/clusters/mpirun_spec.lua: the command line of mpirun, and what is wrong before it starts.
local c = require "ltrain.c"
local child = require "spec.cli.child"
local mpirun = require "ltrain.clusters.mpirun"

local process = c.runtime.process

-- "a:2 b:3" of a list of hosts, or the message.
local function hosts_of(text, slots)
  local hosts, message = mpirun.read_hosts(text, slots)
  if not hosts then return message end
  local list = {}
  for i, host in ipairs(hosts) do list[i] = host.name .. ":" .. tostring(host.slots) end
  return table.concat(list, " ")
end

describe("--hosts", function()
  it("names machines, with their ranks or without", function()
    assert.equal("a:2 b:2", hosts_of("a,b", 2))
    assert.equal("a:4 b.example.org:2", hosts_of("a:4, b.example.org", 2))
    assert.equal("gpu1:8 gpu2:8", hosts_of("gpu[1-2]:8"))
    assert.equal("a:nil", hosts_of("a"))
  end)

  it("takes nothing else", function()
    assert.equal("not a list of hosts: 'a:0'", hosts_of "a:0")
    assert.equal("not a list of hosts: 'a;b'", hosts_of "a;b")
    assert.equal("not a list of nodes: 'a['", hosts_of "a[")
    assert.equal("host a is given twice", hosts_of "a,b,a")
    assert.equal("no hosts", hosts_of "")
  end)
end)

describe("--launcher_args", function()
  it("are cut as a shell cuts them", function()
    assert.same({ "--mca", "plm_rsh_agent", "my agent", "x'y", "" },
      mpirun.cut [[ --mca plm_rsh_agent "my agent"  x"'"y '']])
    local words, message = mpirun.cut "a 'b"
    assert.is_nil(words)
    assert.equal("a ' is not closed", message)
  end)
end)

describe("ltrain without the backend of mpi, under mpirun", function()
  it("says what is missing and how to get it", function()
    local folder <const> = child.folder()
    local binary <const> = os.getenv("LTRAIN") or "ltrain"
    assert(os.execute(("cp '%s' '%s/ltrain'"):format(binary, folder)))
    local built
    for _, part in ipairs(c.runtime.parts()) do
      if part.name == "mpi" then built = not part.text:find "built without" end
    end
    local pipe <close> = assert(io.popen(("cd '%s' && echo >s.lua && env -u LTRAIN_BACKENDS "
      .. "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 timeout 20 ./ltrain run s.lua 2>&1; "
      .. "echo $?"):format(folder)))
    local text <const> = pipe:read "a"
    child.remove(folder)
    assert.matches(built
      and "^ltrain: MPI: mpi: ltrain_mpi.so, which was built with this ltrain, is neither in "
        .. folder:gsub("%p", "%%%0") .. "/backends nor in [^:]*/ltrain: put it there, or set "
        .. "LTRAIN_BACKENDS to its folder\n2\n$"
      or "^ltrain: MPI: mpi: this ltrain was built without MPI: install Open MPI's headers "
        .. "%(Debian: apt%-get install libopenmpi%-dev%) and build it with %-DLT_MPI=ON\n2\n$",
      text)
  end)
end)

describe("the command of mpirun", function()
  local function line(...) return table.concat(mpirun.command(...), " ") end

  it("gives ranks time to end, and cores that are not bound", function()
    assert.equal("mpirun -q -n 1 --bind-to none --mca odls_base_sigkill_timeout 40 -H localhost:1 "
      .. "ltrain run m.lua", line(1, { "ltrain", "run", "m.lua" }))
  end)

  it("says where the ranks run", function()
    assert.matches(" %-n 4 .* %-H a:1,b:3 %-%-map%-by slot .*x y$",
      line(4, { "x", "y" }, { hosts = { { name = "a", slots = 1 }, { name = "b", slots = 3 } } }))
    assert.matches(" %-%-oversubscribe x$", line(process.cores() + 1, { "x" }))
    assert.matches("40 x$", line(2, { "x" }, { hosts = {} }))
    assert.matches("40 %-H localhost:1 %-%-mca a b x$",
      line(1, { "x" }, { more = { "--mca", "a", "b" } }))
    assert.matches("sigkill_timeout 1 ", line(1, { "x" }, { hasty = true }))
  end)

  it("lets root run, where it is root", function()
    local _, environment = mpirun.command(1, { "x" })
    assert.equal(process.is_root(), environment[1] == "OMPI_ALLOW_RUN_AS_ROOT=1")
  end)
end)

-- Wrong usage of the words: status 2, within a second, and the text.
describe("ltrain run", function()
  local folder

  setup(function()
    folder = child.folder()
    child.write(folder .. "/model.lua", "print('ran')")
  end)
  teardown(function() child.remove(folder) end)

  local function refused(options, env)
    local words = { "run", folder .. "/model.lua", table.unpack(options) }
    local began = c.runtime.clock()
    local status, out, err = child.run(words, { env = env })
    assert.equal(2, status, err)
    assert.equal("", out)
    assert(c.runtime.clock() - began < 10) -- wanted: 1 s
    return err
  end

  it("refuses forged variables of SLURM, with both numbers and the remedy", function()
    local err = refused({}, { SLURM_PROCID = "0", SLURM_NTASKS = "4" })
    assert.matches("^ltrain: SLURM: SLURM started 4 tasks, but without PMIx each of them is a "
      .. "world of 1: start them with srun %-%-mpi=pmix", err)
  end)

  it("refuses devices that contradict the world, and only rank 0 says so", function()
    local variables = { OMPI_COMM_WORLD_SIZE = "4", OMPI_COMM_WORLD_RANK = "0" }
    assert.equal("ltrain: MPI: devices x num_nodes = 3 x 1 = 3, but 4 ranks were started: mpirun "
      .. "-n 3 ltrain run, or devices = 'auto'\n", refused({ "--devices", "3" }, variables))
    variables.OMPI_COMM_WORLD_RANK = "1"
    assert.equal("", refused({ "--devices", "3" }, variables))
  end)

  it("refuses ranks that nothing connects", function()
    assert.matches("^ltrain: Flux: 2 ranks were started, and nothing says how", refused({},
      { FLUX_TASK_RANK = "0", FLUX_JOB_SIZE = "2" }))
  end)

  it("refuses other machines without a launcher, and options of a launcher without one", function()
    assert.matches("^ltrain: Local: num_nodes = 2, but no launcher", refused { "--num_nodes", "2" })
    assert.equal("ltrain: run: --hosts is for --launcher mpi\n", refused { "--hosts", "a" })
    assert.matches("^ltrain: run: %-%-launcher must be 'mpi': got 'x'",
      refused { "--launcher", "x" })
  end)

  it("refuses a plan that does not add up", function()
    local function plan(...) return refused { "--launcher", "mpi", ... } end
    assert.matches("the number of ranks is missing: give %-%-devices N\n$", plan())
    assert.matches("%-%-hosts: localhost has 3 ranks, %-%-devices is 2\n$",
      plan("--devices", "2", "--hosts", "localhost:3"))
    assert.matches("%-%-hosts names 2 machines, %-%-num_nodes is 3\n$",
      plan("--devices", "1", "--hosts", "a,b", "--num_nodes", "3"))
    assert.matches("%-%-hosts: the number of ranks on b is missing: give %-%-devices N, or b:N\n$",
      plan("--hosts", "a:1,b"))
  end)

  local missing = mpirun.missing()
  local with_mpi = missing and pending or it

  with_mpi("refuses hosts that nobody reaches" .. (missing and ": " .. missing or ""), function()
    local err = refused { "--launcher", "mpi", "--devices", "1", "--hosts",
      "localhost,no-such-host.invalid" }
    assert(err:find("1 of 2 hosts cannot be reached by ssh: no-such-host.invalid: no such host", 1,
      true) or err:find("ssh is not installed", 1, true), err)
  end)

  with_mpi("refuses more machines without their names", function()
    assert.matches("%-%-num_nodes is 2: the machines are missing: give %-%-hosts a,b\n$",
      refused { "--launcher", "mpi", "--devices", "1", "--num_nodes", "2" })
  end)

  with_mpi("refuses mpirun within a launch", function()
    assert.matches("this is already a rank of MPI %(OMPI_COMM_WORLD_SIZE=2", refused(
      { "--launcher", "mpi", "--devices", "2" },
      { OMPI_COMM_WORLD_SIZE = "2", OMPI_COMM_WORLD_RANK = "0" }))
  end)
end)
