-- spec/bench/recording.lua: what recording an operation on an XLA device costs the host, beside
-- what dispatching it costs: the same operations on the meta device, which computes nothing.
--
--   ./dev bench recording [ROUNDS]
--
-- A round records the steps of an MLP and of a small GPT, forward and backward, with the update;
-- the graph's end is not in the times. The least of the rounds counts. Wanted: at most 1.5 us an
-- operation more than on meta.
local c = require "ltrain.c"
local lt = require "ltrain"

local nn <const> = lt.nn
local ROUNDS <const> = math.tointeger(tonumber(arg[1] or 30))

local function mlp()
  local net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(),
    nn.Linear(64, 10))
  return net, lt.randn(32, 64), lt.randint(0, 10, { 32 })
end

local function gpt()
  local model = lt.models.gpt2 { vocab_size = 64, n_positions = 16, n_embd = 32, n_layer = 4,
    n_head = 2 }
  return model, lt.randint(0, 64, { 2, 16 }), lt.randint(0, 64, { 32 })
end

-- Chains of elementwise operations, whose dispatch is cheapest.
local function chain()
  local net = nn.Module()
  net.weight = lt.parameter(lt.randn(8, 8))
  function net:forward(x)
    for _ = 1, 50 do x = (x * self.weight + 1):tanh() end
    return x
  end
  return net, lt.randn(8, 8), lt.randint(0, 8, { 8 })
end

-- Seconds of a step on a device, the least, and its operations, where the device counts them.
local function measure(make, device)
  lt.seed(1)
  local net, x, y = make()
  net:to(device)
  x, y = x:to(device), y:to(device)
  local optimizer = lt.optim.SGD(net:parameters(), { lr = 1e-3 })
  local best = math.huge
  for _ = 1, ROUNDS do
    local began = c.runtime.clock()
    optimizer:zero_grad()
    local logits = net(x)
    local loss = lt.cross_entropy(logits:reshape(y:numel(), -1), y)
    loss:backward()
    best = math.min(best, c.runtime.clock() - began)
    optimizer:step()
    collectgarbage()
  end
  return best
end

-- Operations of the program that ran most.
local function operations()
  local most = { runs = 0, operations = 0 }
  for _, p in ipairs(lt.xla.report().programs) do
    if p.runs >= most.runs then most = p end
  end
  return most.operations
end

if not lt.xla.is_available() then
  print "recording: there is no PJRT plugin here"
  os.exit(0)
end
print(("%-6s %10s %12s %12s %14s"):format("step", "operations", "meta us/op", "xla us/op",
  "recording us/op"))
for _, row in ipairs { { "mlp", mlp }, { "gpt", gpt }, { "chain", chain } } do
  local xla = measure(row[2], "xla")
  local meta, n = measure(row[2], "meta"), operations()
  print(("%-6s %10d %12.2f %12.2f %14.2f"):format(row[1], n, meta / n * 1e6, xla / n * 1e6,
    (xla - meta) / n * 1e6))
end
