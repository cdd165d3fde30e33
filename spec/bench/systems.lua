-- spec/bench/systems.lua: systems of several ranks that train the same models in turns, as
-- spec/bench/shards.lua and parallel.lua have them.
local STEPS <const> = { gpt128_256 = 10, gpt512 = 2 }
local WINDOWS <const> = 3
local here <const> = arg[0]:match("^(.*)/[^/]*$") or "."

-- What begins the commands of each side.
local function commands_of(bench)
  local pipe <close> = assert(io.popen(("bash '%s/torch_venv.sh' torch numpy"):format(here)))
  local venv = assert(pipe:read "l", ("bench %s: no virtual environment"):format(bench))
  return { ltrain = ("'%s' '%s/shards_fit.lua' "):format(os.getenv "LTRAIN" or arg[-1], here),
    torch = ("'%s/bin/python' '%s/shards.py' "):format(venv, here) }
end

-- Adds what a command prints to `result`: the least of its windows, and the rest.
local function run(command, result)
  local output <close> = assert(io.popen(command .. " 2>&1"))
  local last
  for line in output:lines() do
    local key, value = line:match "^(%l+)%s+(%S+)$"
    if key == "window" then
      result.window = math.min(result.window or math.huge, tonumber(value))
    elseif key then
      result[key] = tonumber(value)
    end
    last = line
  end
  if not result.window then error(("bench: %s: %s"):format(command, last), 0) end
end

local function show(model, ranks, sides, results)
  print(("%s, %d ranks: ms a step, over the first; MiB of tensors, by the formula"):format(model,
    ranks))
  local function mebibytes(value) return value and ("%.1f"):format(value) or "" end
  for i, side in ipairs(sides) do
    local r = results[i]
    print(("  %-22s %9.2f %6.2f %9s %9s"):format(side[1], r.window * 1e3,
      r.window / results[1].window, mebibytes(r.tensors), mebibytes(r.formula)))
  end
end

--- Runs the sides, { title, "ltrain" or "torch", argument }, for each model and number of ranks
--- that the command line names.
return function(bench, sides)
  local rounds = math.tointeger(tonumber(arg[1] or 3))
  local models = arg[2] and { arg[2] } or { "gpt128_256", "gpt512" }
  local begin = commands_of(bench)
  for _, model in ipairs(models) do
    for _, ranks in ipairs(arg[3] and { math.tointeger(tonumber(arg[3])) } or { 2, 4 }) do
      local results = {}
      for _ = 1, rounds do
        for i, side in ipairs(sides) do
          results[i] = results[i] or {}
          run(("%s%s %s %d %d %d"):format(begin[side[2]], side[3], model, ranks, WINDOWS,
            STEPS[model] or 5), results[i])
        end
      end
      show(model, ranks, sides, results)
    end
  end
end
