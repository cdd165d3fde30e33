-- spec/bench/dist.lua: samples a second of training on 1 and on 2 ranks, 1 thread each: lt.Trainer,
-- and beside it PyTorch's DistributedDataParallel with gloo and Lightning.
--
--   ./dev bench dist [ROUNDS] [WINDOWS] [MODEL...]      3 rounds of 5 windows; mlp cnn gpt
--
-- The models are those of torch_models.lua; each system cycles through batches that are ready. All
-- runs of a model take turns, ROUNDS times; a value is the median over the windows of all rounds,
-- after 50 steps of each run that do not count. Two runs of one rank at once show what the machine
-- has for two, however little they had to say to each other. Wanted of ltrain: 1.85 times from 1 to
-- 2 ranks, 1.5 for mlp; and less than 1 % of a step for what ranks exchange with it and for
-- the checks of replicas. PyTorch and Lightning come into a virtual environment of the build folder
-- (LT_TORCH_VENV names another).
local lt = require "ltrain"

local TITLES <const> = { mlp = "mlp-64, Adam", cnn = "cnn, batch 32, SGD",
  gpt = "gpt128-64, 12 x 64 tokens, AdamW" }
local STEPS <const> = { mlp = 400, cnn = 30, gpt = 30 } -- of a window
local LIMIT <const> = 300 -- seconds of a run

local function check_arguments()
  local rounds, windows = tonumber(arg[1] or 3), tonumber(arg[2] or 5)
  local models = { table.unpack(arg, 3) }
  if #models == 0 then models = { "mlp", "cnn", "gpt" } end
  for _, model in ipairs(models) do
    assert(TITLES[model], "bench dist: no such model: " .. model)
  end
  return assert(math.tointeger(rounds), "bench dist: ROUNDS is a number"),
    assert(math.tointeger(windows), "bench dist: WINDOWS is a number"), models
end

local here <const> = arg[0]:match("^(.*)/[^/]*$") or "."

local function lines_of(command)
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  return list, pipe:close()
end

local function systems()
  local venv = lines_of(("bash '%s/torch_venv.sh' torch numpy lightning"):format(here))[1]
  local python = ("env PYTHONDONTWRITEBYTECODE=1 '%s/bin/python' '%s/dist_fit.py'"):format(
    assert(venv, "bench dist: no virtual environment"), here)
  return {
    { name = "ltrain", command = ("'%s' '%s/dist_fit.lua'"):format(os.getenv "LTRAIN" or arg[-1],
      here) },
    { name = "PyTorch DDP", command = python .. " torch" },
    { name = "Lightning", command = python .. " lightning" },
  }
end

local function command_of(system, model, ranks, windows)
  return ("OMP_NUM_THREADS=1 timeout -k 1 %d %s %s %d %d %d 2>&1"):format(LIMIT, system.command,
    model, ranks, windows, STEPS[model])
end

-- One run; its rates, and its shares where it has reported them, are added to `found`.
local function measure(system, model, ranks, windows, found)
  local command = command_of(system, model, ranks, windows)
  local lines, well = lines_of(command)
  local before = #found.rates
  for _, line in ipairs(lines) do
    local rate = tonumber(line:match("^window (%S+)"))
    if rate then table.insert(found.rates, rate) end
    local header, checks = line:match("^shares (%S+) (%S+)")
    if header then
      table.insert(found.headers, tonumber(header))
      table.insert(found.checks, tonumber(checks))
    end
  end
  if not well or #found.rates - before ~= windows then
    error(("bench dist: %s\n%s"):format(command, table.concat(lines, "\n")), 0)
  end
end

-- Two runs of one rank at once, which have the cores and the memory to share and nothing to say:
-- the sum of both in each window.
local function measure_apart(system, model, windows, rates)
  local command = command_of(system, model, 1, windows)
  local lines = lines_of(("{ %s; } & { %s; } & wait"):format(
    command .. " | sed 's/^/a /'", command .. " | sed 's/^/b /'"))
  local of = { a = {}, b = {} }
  for _, line in ipairs(lines) do
    local which, rate = line:match "^([ab]) window (%S+)"
    if which then table.insert(of[which], tonumber(rate)) end
  end
  for i = 1, windows do
    if not (of.a[i] and of.b[i]) then
      error(("bench dist: two of %s\n%s"):format(command, table.concat(lines, "\n")), 0)
    end
    rates[#rates + 1] = of.a[i] + of.b[i]
  end
end

local function median(list)
  table.sort(list)
  local n = #list
  return (list[(n + 1) // 2] + list[n // 2 + 1]) / 2
end

-- How far the middle half of the windows spreads, in percent of their median.
local function spread(list)
  table.sort(list)
  local n = #list
  return (list[math.ceil(n * 3 / 4)] - list[math.ceil(n / 4)]) / median(list) * 100
end

local function measure_model(list, model, rounds, windows)
  local found = { apart = {} }
  for i in ipairs(list) do
    found[i] = {}
    for ranks = 1, 2 do found[i][ranks] = { rates = {}, headers = {}, checks = {} } end
  end
  for _ = 1, rounds do
    for ranks = 1, 2 do
      for i, system in ipairs(list) do measure(system, model, ranks, windows, found[i][ranks]) end
    end
    measure_apart(list[1], model, windows, found.apart)
  end
  return found
end

local function show(list, model, found)
  print(("%-34s %16s %16s %7s"):format(TITLES[model], "1 rank", "2 ranks", "ratio"))
  for i, system in ipairs(list) do
    local one, two = found[i][1].rates, found[i][2].rates
    print(("  %-32s %8.0f +- %2.0f %% %8.0f +- %2.0f %% %7.2f"):format(system.name, median(one),
      spread(one) / 2, median(two), spread(two) / 2, median(two) / median(one)))
  end
  print(("  %-32s %17s %8.0f +- %2.0f %% %7.2f"):format("ltrain, 2 runs that do not talk", "",
    median(found.apart), spread(found.apart) / 2, median(found.apart) / median(found[1][1].rates)))
  local ours = found[1][2]
  print(("  of ltrain's steps: headers %.2f %%, checks of replicas %.2f %%"):format(
    median(ours.headers), median(ours.checks)))
end

local rounds, windows, models = check_arguments()
local list = systems()
print(("samples a second on %d cores, 1 thread a rank; median of %d windows +- half of the middle "
  .. "half"):format(lt.dist.world().threads, rounds * windows))
for _, model in ipairs(models) do show(list, model, measure_model(list, model, rounds, windows)) end
