-- spec/dist/own_comm_spec.lua: a backend of somebody else's (files_backend.c) carries the ranks of
-- somebody else's launcher: two processes that a shell starts.
local child = require "spec.cli.child"
local support = require "spec.dist.support"

local BUILD <const> = os.getenv("LT_BUILD")
local ltrain <const> = os.getenv("LTRAIN") or "ltrain"
local LIMIT <const> = (os.getenv("LT_SANITIZE") or "") ~= "" and 60 or 20 -- seconds

local ENVIRONMENT <const> = [[
lt.clusters.register("folder", {
  comm = "files",
  detect = function(self) return self:variable "FOLDER_RANK" and "FOLDER_RANK" end,
  world_size = function(self) return self:integer "FOLDER_SIZE" end,
  global_rank = function(self) return self:integer "FOLDER_RANK" end,
  local_rank = function(self) return self:integer "FOLDER_RANK" end,
  main_address = function(self) return self:variable "FOLDER" end,
  main_port = function() return nil end,
})
]]

-- Runs a script as n ranks; returns what rank 0 ended with and what all printed.
local function launch(n, code, env)
  local folder = child.folder()
  local flat = (support.prelude .. ENVIRONMENT):gsub("%s*\n%s*", " ")
  child.write(folder .. "/script.lua", flat .. code)
  local command = ([[
cd '%s' && mkdir wire && export FOLDER_SIZE=%d FOLDER=$PWD/wire %s && p=
for r in $(seq 1 %d); do FOLDER_RANK=$r timeout -k 1 %d '%s' script.lua 2>&1 & p="$p $!"; done
FOLDER_RANK=0 timeout -k 1 %d '%s' script.lua 2>&1; echo "exit $?"
wait $p
]]):format(folder, n, env, n - 1, LIMIT, ltrain, LIMIT, ltrain)
  local pipe <close> = assert(io.popen(command))
  local output, status, rest = pipe:read("a"):match("^(.*)exit (%d+)\n(.*)$")
  return tonumber(status), output .. rest
end

describe("a comm backend of one's own", function()
  local function library()
    if not BUILD then pending("LT_BUILD names no build folder") end
    return BUILD .. "/spec/c/backends/ltrain_files.so"
  end

  local BODY <const> = [[
    assert(lt.clusters.join())
    local rank = dist.rank()
    same({"files", 2}, {dist.world().backend, dist.world_size()})
    same(lt.tensor{3.0, 3}, dist.all_reduce(lt.full({2}, rank + 1.0)))
    same({{0}, {1}}, dist.all_gather{rank})
    local group = dist.split(0, {key = -rank})
    same({1, 0}, group:all_gather(rank))
    io.write("rank " .. rank .. " is done\n")
  ]]

  it("is registered by its path", function()
    local path = library()
    local status, output = launch(2, ("dist.register_comm('files', '%s')"):format(path) .. BODY, "")
    assert.equal(0, status, output)
    assert.matches("rank 0 is done\n", output)
    assert.matches("rank 1 is done\n", output)
  end)

  it("is found by its name in a folder", function()
    local folder = library():match "^(.*)/"
    local status, output = launch(2, BODY, ("LTRAIN_BACKENDS='%s'"):format(folder))
    assert.equal(0, status, output)
    assert.matches("rank 1 is done\n", output)
  end)

  it("carries a Trainer whose strategy names its environment", function()
    local folder = library():match "^(.*)/"
    local status, output = launch(2, [[
      local environment = {comm = "files"}
      function environment:world_size() return self:integer "FOLDER_SIZE" end
      function environment:global_rank() return self:integer "FOLDER_RANK" end
      environment.local_rank = environment.global_rank
      function environment:main_address() return self:variable "FOLDER" end
      function environment:main_port() return nil end
      lt.clusters.register("folder", {detect = function() return nil end}) -- not found by itself
      lt.seed(1)
      local net = lt.nn.Linear(1, 1)
      function net:training_step(x) return self(x):mean() end
      function net:configure_optimizers() return lt.optim.SGD(self:parameters(), {lr = 1.0}) end
      local before = net.weight:item()
      local trainer = lt.Trainer {
        strategy = lt.strategies.DDP {cluster_environment = environment}, max_epochs = 1,
        logger = false, enable_checkpointing = false, enable_progress_bar = false,
        enable_model_summary = false,
      }
      same({dist.rank(), 2}, {trainer.global_rank, trainer.world_size})
      trainer:fit(net, {lt.full({1, 1}, dist.rank() == 0 and 1.0 or 3.0)})
      io.write(("rank %d of %d: %g\n"):format(trainer.global_rank, trainer.world_size,
        before - net.weight:item()))
    ]], ("LTRAIN_BACKENDS='%s'"):format(folder))
    assert.equal(0, status, output)
    assert.matches("rank 0 of 2: 2\n", output)
    assert.matches("rank 1 of 2: 2\n", output)
  end)

  it("reports how ranks disagree", function()
    local folder = library():match "^(.*)/"
    local status, output = launch(2, [[
      assert(lt.clusters.join())
      dist.all_reduce(lt.zeros(dist.rank() == 0 and 8 or 16))
    ]], ("LTRAIN_BACKENDS='%s'"):format(folder))
    assert.equal(1, status, output)
    assert.matches("rank 0: all_reduce sum %[8%] f32[^;]*; rank 1: all_reduce sum %[16%] f32",
      output)
  end)

  it("is reported when it cannot be opened", function()
    library()
    local status, output = launch(1, [[
      io.write(tostring(select(2, lt.clusters.join())), "\n")
    ]], "FOLDER_SIZE=2 LTRAIN_BACKENDS=/nowhere")
    assert.equal(0, status, output)
    assert.matches("files: no ltrain_files.so in /nowhere (LTRAIN_BACKENDS)\n", output, 1, true)
  end)
end)
