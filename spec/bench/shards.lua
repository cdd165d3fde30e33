-- spec/bench/shards.lua: a step of training and the memory of a rank under ddp and the three stages
-- of Sharded, beside PyTorch's DistributedDataParallel and fully_shard over gloo.
--
--   ./dev bench shards [ROUNDS] [MODEL] [RANKS]     3 rounds, gpt128_256 and gpt512, 2 and 4 ranks
--
-- All systems take turns; a time is the shortest of all rounds, for these machines are busy. Memory
-- is of tensors on rank 0, the most at once, beside what the formula says without activations.
local ROUNDS <const> = math.tointeger(tonumber(arg[1] or 3))
local MODELS <const> = arg[2] and { arg[2] } or { "gpt128_256", "gpt512" }
local RANKS <const> = arg[3] and { math.tointeger(tonumber(arg[3])) } or { 2, 4 }
local WINDOWS <const>, STEPS <const> = 3, { gpt128_256 = 10, gpt512 = 2 }
local here <const> = arg[0]:match("^(.*)/[^/]*$") or "."

local pipe <close> = assert(io.popen(("bash '%s/torch_venv.sh' torch numpy"):format(here)))
local venv = assert(pipe:read "l", "bench shards: no virtual environment")
local ours <const> = ("'%s' '%s/shards_fit.lua' "):format(os.getenv "LTRAIN" or arg[-1], here)
local theirs <const> = ("'%s/bin/python' '%s/shards.py' "):format(venv, here)

local SIDES <const> = { { "ddp", ours .. "ddp" }, { "stage 1", ours .. "1" },
  { "stage 2", ours .. "2" }, { "stage 3", ours .. "3" }, { "torch ddp", theirs .. "ddp" },
  { "torch fully_shard", theirs .. "fsdp" } }

-- Adds what a command prints to `result`: the least of its windows, and the rest.
local function run(command, result)
  local output <close> = assert(io.popen(command .. " 2>/dev/null"))
  for line in output:lines() do
    local key, value = line:match "^(%l+)%s+(%S+)$"
    if key == "window" then
      result.window = math.min(result.window or math.huge, tonumber(value))
    elseif key then
      result[key] = tonumber(value)
    end
  end
end

for _, model in ipairs(MODELS) do
  for _, ranks in ipairs(RANKS) do
    local results = {}
    for _ = 1, ROUNDS do
      for i, side in ipairs(SIDES) do
        results[i] = results[i] or {}
        local steps = STEPS[model] or 5
        run(("%s %s %d %d %d"):format(side[2], model, ranks, WINDOWS, steps), results[i])
      end
    end
    print(("%s, %d ranks: ms a step, over our ddp; MiB of tensors, by the formula"):format(model,
      ranks))
    for i, side in ipairs(SIDES) do
      local r = results[i]
      print(("  %-18s %9.2f %6.2f %9s %9s"):format(side[1], (r.window or 0 / 0) * 1e3,
        (r.window or 0 / 0) / results[1].window, r.tensors and ("%.1f"):format(r.tensors) or "",
        r.formula and ("%.1f"):format(r.formula) or ""))
    end
  end
end
