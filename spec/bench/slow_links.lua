-- spec/bench/slow_links.lua: training on two hosts with a slow link between them.
--
--   ./dev bench slow_links [SECONDS] [MBIT] [MS] [NAME...]     30 s, 100 Mbit/s, 25 ms one way
--
-- The hosts are network namespaces (slow_links/hosts.sh), the link is slow_links/relay.c: needs
-- root, /dev/net/tun and mpirun. Each strategy and hook trains an MLP of 1.3 million parameters for
-- so many seconds, from the same weights with the same samples: samples a second of both ranks, and
-- the loss on others. So does PyTorch, over gloo, where LT_TORCH_VENV or build/venv-torch has it.
-- "mpi" and "ucx" are times of single collectives.
local c = require "ltrain.c"
local lt = require "ltrain"
local namespaces = require "spec.dist.namespaces"

local process = c.runtime.process

local SECONDS <const> = tonumber(arg[1] or 30)
local MBIT <const>, MS <const> = arg[2] or "100", arg[3] or "25"
local NAMES <const> = #arg > 3 and table.move(arg, 4, #arg, 1, {}) or { "mpi", "ucx", "ddp",
  "bf16", "powerSGD", "topk", "random_k", "int8", "sign", "local_sgd", "diloco",
  "diloco, overlap", "PyTorch ddp", "PyTorch powerSGD" }
local TOOL <const> = (os.getenv "LT_ROOT" or ".") .. "/spec/bench/slow_links/hosts.sh"
local SIDES <const> = TOOL:match "^(.*)/"
local VENV <const> = os.getenv "LT_TORCH_VENV" or os.getenv "LT_BUILD" .. "/venv-torch"
local LIMIT <const> = 4 -- times SECONDS, and a minute, for a run

local missing = namespaces.missing { "cc", "setsid" }
if missing then
  print("not measured: " .. missing)
  os.exit(1)
end

local function capture(words, limit)
  local status, text = process.capture(words, limit)
  assert(status == 0, text)
  return text
end

local folder <const> = capture({ "mktemp", "-d" }, 5):match "%S+"

-- Data and first weights: classes by a random net of one layer more than is linear.
local function make_data()
  lt.seed(1)
  local x = lt.randn(22000, 256)
  local teacher = lt.nn.Sequential(lt.nn.Linear(256, 64), lt.nn.Tanh(), lt.nn.Linear(64, 10))
  local _ <close> = lt.no_grad()
  lt.numpy.save(folder .. "/x.npy", x)
  lt.numpy.save(folder .. "/y.npy", teacher(x):argmax(2))
  for i, shape in ipairs { { 1024, 256 }, { 1024 }, { 1024, 1024 }, { 1024 }, { 10, 1024 },
    { 10 } } do
    local bound = (shape[2] or 1024) ^ -0.5
    lt.numpy.save(("%s/w%d.npy"):format(folder, i), (lt.rand(shape) * 2 - 1) * bound)
  end
end

local function by_mpirun(words)
  return ("%s on %s lta env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 mpirun -q "
    .. "--oversubscribe -n 2 -H lta:1,ltb:1 --mca plm_rsh_agent %s/agent --mca btl_tcp_if_include "
    .. "10.78.0.0/24 --mca oob_tcp_if_include 10.78.0.0/24 --mca btl self,tcp --mca pml ob1 "
    .. "%s run %s/%s"):format(TOOL, folder, folder, os.getenv "LTRAIN", SIDES, words)
end

-- The words of `format` on both hosts, with the number of each, and variables.
local function on_both(format)
  local function on(host, number) return ("%s on %s %s "):format(TOOL, folder, host)
      .. format:format(number)
  end
  return ("%s & %s; wait"):format(on("ltb", 1), on("lta", 0))
end

local function by_hand(words)
  return on_both(("env RANK=%%d WORLD_SIZE=2 MASTER_ADDR=10.78.0.1 MASTER_PORT=29512 "
    .. "UCX_NET_DEVICES=eth0 %s run %s/%s"):format(os.getenv "LTRAIN", SIDES, words))
end

local function of_ltrain(name)
  return by_mpirun(("fit.lua -- %s %g '%s'"):format(folder, SECONDS, name))
end

local function of_torch(name)
  return on_both(("env RANK=%%d MASTER_ADDR=10.78.0.1 MASTER_PORT=29511 GLOO_SOCKET_IFNAME=eth0 "
    .. "%s/bin/python %s/fit.py %s %g %s"):format(VENV, SIDES, folder, SECONDS, name))
end

local COLLECTIVES <const> = { mpi = by_mpirun, ucx = by_hand }

local function measure(name)
  local torch = name:match "^PyTorch (.*)"
  if torch and not c.io.kind(VENV .. "/bin/python") then
    return print(("%-18s not measured: there is no %s"):format(name, VENV))
  end
  local by = COLLECTIVES[name]
  local command = torch and of_torch(torch)
    or by and by(("../collectives.lua -- %g"):format(SECONDS))
    or of_ltrain(name)
  local _, text = process.capture({ "timeout", "-k", "1",
    tostring(math.ceil(LIMIT * SECONDS + 60)), "bash", "-c", command .. " 2>&1" },
    LIMIT * SECONDS + 70)
  if by then return print(("%s, mean, median, shortest:\n%s"):format(name, text)) end
  local rate, loss, steps = text:match "result (%S+) (%S+) (%S+)"
  if not rate then return print(("%-18s failed: %s"):format(name, text:sub(-600))) end
  print(("%-18s %8.1f samples/s, loss %.4f after %d steps"):format(name, rate, loss, steps))
end

make_data()
capture({ "env", "LIMIT=3600", TOOL, "up", folder, MBIT, MS }, 20)
local _ <close> = setmetatable({}, { __close = function()
  process.capture({ TOOL, "down", folder }, 20)
  process.capture({ "rm", "-r", folder }, 20)
end })
print(("two hosts, %s Mbit/s, %s ms one way, %g s each"):format(MBIT, MS, SECONDS))
for _, name in ipairs(NAMES) do measure(name) end
