-- spec/gpu/work.lua: one piece of ./dev gpu, in a process of its own.
--
--   ltrain spec/gpu/work.lua NAME full|tiny [MODEL]        prints lines `NAME VALUE UNIT`
local c = require "ltrain.c"
local counts = require "spec.cuda.counts"
local models = require "spec.gpu.models"
local lt = require "ltrain"

local NAME <const>, TINY <const> = arg[1], arg[2] == "tiny"

local function report(name, value, unit)
  print(("%s %.6g %s"):format(name, value, unit))
  io.stdout:flush()
end

-- Seconds a call: {issue = until it was issued, whole = until it had run}, the least of 5 windows.
local function seconds(fn, longest)
  local best = { issue = math.huge, whole = math.huge }
  local function window(n)
    lt.cuda.synchronize()
    local start = c.runtime.clock()
    for _ = 1, n do fn() end
    local issued = c.runtime.clock()
    lt.cuda.synchronize()
    return (issued - start) / n, (c.runtime.clock() - start) / n
  end
  local _, once = window(3)
  local n = TINY and 1 or math.max(3, math.ceil((longest or 0.3) / once))
  for _ = 1, TINY and 1 or 5 do
    local issue, whole = window(n)
    best.issue, best.whole = math.min(best.issue, issue), math.min(best.whole, whole)
  end
  return best
end

-- TFLOP/s of a large product in bf16: what this GPU can do.
local function peak()
  local n = TINY and 16 or 8192
  local a = lt.randn(n, n, { device = "cuda" }):to "bf16"
  return 2 * n ^ 3 / seconds(function() return a:matmul(a) end).whole
end

local work = {}

function work.model(name)
  local case = models.case(name, TINY)
  local first = case.step():item()
  local time = seconds(case.step)
  report(name .. "_step", time.whole * 1e3, "ms")
  if case.flops then
    local most = peak()
    report(name .. "_rate", case.flops / time.whole / 1e12, "TFLOP/s")
    report(name .. "_of_peak", 100 * case.flops / time.whole / most, "%")
    report("matmul_peak", most / 1e12, "TFLOP/s")
  end
  local last = case.step():item()
  report(name .. "_loss", last, "nats")
  assert(last < first, ("the loss rose from %g to %g"):format(first, last))
end

-- Causal attention in bf16: 2 products forward, 5 backward, each of half the scores.
function work.attention()
  local b, h, t, d = 16, 12, 1024, 64
  if TINY then b, h, t, d = 1, 2, 16, 16 end
  local product, inputs = b * h * t * t * d, {}
  for k = 1, 4 do inputs[k] = lt.randn({ b, h, t, d }, { device = "cuda" }):to "bf16" end
  local q, k, v, g = table.unpack(inputs)
  local function attend() return lt.scaled_dot_product_attention(q, k, v, { causal = true }) end
  report("attention_forward", 2 * product / seconds(attend).whole / 1e12, "TFLOP/s")
  q.requires_grad, k.requires_grad, v.requires_grad = true, true, true
  local time = seconds(function()
    q.grad, k.grad, v.grad = nil, nil, nil
    attend():backward(g)
  end)
  report("attention_both", 7 * product / time.whole / 1e12, "TFLOP/s")
end

-- Operations on rows: {name, bytes an element that must be read and written once, function}.
local function rows_cases()
  local rows, columns = TINY and 4 or 65536, TINY and 64 or 1024
  local x, y = lt.randn({ rows, columns }, { device = "cuda" }), lt.randn({ rows, columns },
    { device = "cuda" })
  local h, g, row = x:to "bf16", y:to "bf16", y[1]:clone()
  local weight = lt.ones({ columns }, { device = "cuda" })
  return {
    { "copy", 8, function() return x:clone() end },
    { "add", 12, function() return x + y end },
    { "add_row", 8, function() return x + row end },
    { "gelu", 8, function() return x:gelu() end },
    { "tanh", 8, function() return x:tanh() end },
    { "cast_bf16", 6, function() return x:to "bf16" end },
    { "add_bf16", 6, function() return h + g end },
    { "gelu_bf16", 4, function() return h:gelu() end },
    { "transpose", 8, function() return x:t():clone { contiguous = true } end },
    { "sum", 4, function() return x:sum() end },
    { "sum_rows", 4, function() return x:sum(2) end },
    { "sum_columns", 4, function() return x:sum(1) end },
    { "softmax", 8, function() return x:softmax(2) end },
    { "layer_norm", 8, function()
      return lt.layer_norm(x, { columns }, { weight = weight, bias = weight })
    end },
    { "dropout", 8, function() return lt.dropout(x, 0.1) end },
  }, rows * columns
end

-- Against a copy; ./dev bench gpu has PyTorch's.
function work.bandwidth()
  local _ <close> = lt.no_grad()
  local cases, n = rows_cases()
  local copy
  for _, case in ipairs(cases) do
    local name, bytes, fn = table.unpack(case)
    local rate = bytes * n / seconds(fn, 0.03).whole / 1e9
    copy = copy or rate
    report(name, rate, "GB/s")
    report(name .. "_of_copy", 100 * rate / copy, "%")
  end
end

-- One call, for a profiler of kernels: the last kernel of the process is the one that is meant.
function work.once(name)
  local _ <close> = lt.no_grad()
  if name == "attention" then
    local q = lt.randn(TINY and { 1, 2, 16, 16 } or { 16, 12, 1024, 64 }, { device = "cuda" })
    q = q:to "bf16"
    lt.scaled_dot_product_attention(q, q, q, { causal = true })
  else
    for _, case in ipairs(rows_cases()) do
      if case[1] == name then case[3]() end
    end
  end
  lt.cuda.synchronize()
end

-- Ones and threes around element 2^31: filled, added, summed, indexed, copied as they are in small
-- tensors. 5 GB at most.
function work.sizes()
  local _ <close> = lt.no_grad()
  local n = TINY and 1000 or (1 << 31) + 24
  local x = lt.zeros({ n }, { dtype = "u8", device = "cuda" })
  x:fill_(1)
  local tail = x:narrow(1, n - 9, 10)
  tail:fill_(3)
  assert(x:sum { dtype = "i64" }:item() == n + 20, "a sum over 2^31 elements is wrong")
  assert(x[n]:item() == 3 and x[n - 10]:item() == 1, "an element behind 2^31 is wrong")
  local y = x + x
  assert(y[n]:item() == 6 and y[1]:item() == 2, "an addition behind 2^31 is wrong")
  assert(x:eq(3):sum { dtype = "i64" }:item() == 10, "a comparison behind 2^31 is wrong")
  local copy = tail:clone():to "cpu"
  assert(copy:sum():item() == 30, "a copy from behind 2^31 is wrong")
  local columns = 8
  local matrix = y:narrow(1, 1, n // columns * columns):view(-1, columns)
  local rows = matrix:size(1)
  assert(matrix[rows][columns]:item() == y[rows * columns]:item(), "a row behind 2^31 is wrong")
  report("elements", n, "of u8")
end

-- Takes memory until there is no more: an error with its line, after which all of it can be taken
-- again.
function work.exhaust()
  local piece <const> = TINY and 1 << 22 or 1 << 31
  local function take()
    local kept = {}
    local ok, why = pcall(function()
      for k = 1, 4096 do kept[k] = lt.empty({ piece }, { dtype = "u8", device = "cuda" }) end
    end)
    assert(not ok, "memory does not end")
    assert(tostring(why):find "work.lua:%d+: .*out of memory", tostring(why))
    return #kept
  end
  local first = take()
  collectgarbage()
  local second = take()
  report("taken", first * piece / 1e9, "GB")
  assert(second >= first - 1, ("%d pieces at first, then %d"):format(first, second))
  collectgarbage()
  assert(lt.ones({ 4 }, { device = "cuda" }):sum():item() == 4)
end

-- What of a step the host needs to issue it: while that is less than the step, the GPU has no gaps
-- but between launches; a wait within the step makes both equal.
function work.gaps()
  for _, name in ipairs { "gpt2", "mlp" } do
    local case = models.case(name, TINY)
    case.step()
    local time = seconds(case.step, 0.1)
    report(name .. "_issue", 100 * time.issue / time.whole, "%")
    if counts then
      counts()
      case.step()
      local counted = counts()
      report(name .. "_waits", counted.waits, "waits")
      report(name .. "_launches", counted.launches, "launches")
      assert(counted.waits == 0, name .. ": the host waits within a step")
    elseif name == "gpt2" then
      assert(time.issue < 0.9 * time.whole, "gpt2: issuing a step takes as long as the step")
    end
  end
end

-- All-reduce of n floats among all GPUs against copies from one to another.
function work.allreduce()
  local ranks, n = lt.cuda.device_count(), TINY and 1 << 10 or 1 << 26
  lt.dist.launch(TINY and 2 or ranks, function(rank)
    local x = lt.ones(n, { device = "cuda:" .. rank })
    local world = lt.dist.world_size()
    local time = seconds(function() x = lt.dist.all_reduce(x, { op = "mean" }) end).whole
    assert(x[1]:item() == 1, "a mean of ones is " .. x[1]:item())
    if rank > 0 then return end
    report("all_reduce", 2 * (world - 1) / world * 4 * n / time / 1e9, "GB/s")
    local y = lt.ones(n, { device = "cuda:0" })
    report("copy_between", 4 * n / seconds(function() return y:to "cuda:1" end).whole / 1e9, "GB/s")
  end)
end

-- A rank that is killed in the middle of a fit: the parent must end, with a message.
function work.kill()
  lt.dist.launch(2, function(rank)
    require "ltrain.c".dist.set_folder(arg[3]) -- for what is written of the failure
    local x = lt.ones(1024, { device = "cuda:" .. rank })
    for k = 1, 1000 do
      x = lt.dist.all_reduce(x, { op = "mean" })
      if rank == 1 and k == 5 then os.execute "kill -9 $PPID" end
    end
  end)
end

if NAME == "model" then
  (work[arg[3]] or work.model)(arg[3])
else
  work[NAME](arg[3])
end
