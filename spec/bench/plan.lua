-- spec/bench/plan.lua: the time of a step that `ltrain plan` predicts beside that of fits here.
--
--   ./dev bench plan [ROUNDS] [MODEL] [RANKS]   5 rounds; mlp, text, images, gpt, cnn;
--                                               1, 2 and 3 ranks
--
-- Plans and fits take turns; each column is the shortest step of all rounds, for these machines are
-- busy. `by rates` is what a plan says that has measured FLOPs and bytes a second in place of
-- steps. On several ranks a plan has the links that it has measured.
local ROUNDS <const> = math.tointeger(tonumber(arg[1] or 5))
local MODELS <const> = arg[2] and { arg[2] }
  or { "mlp", "text", "images", "gpt", "cnn" }
local RANKS <const> = arg[3] and { math.tointeger(tonumber(arg[3])) } or { 1, 2, 3 }
local here <const> = arg[0]:match("^(.*)/[^/]*$") or "."
local lt = require "ltrain"
local ltrain <const> = os.getenv "LTRAIN" or arg[-1]

local function output_of(...)
  local pipe <close> = assert(io.popen(("'%s' %s 2>/dev/null"):format(ltrain, (...):format(
    select(2, ...)))))
  return pipe:read "a"
end

-- Adds the seconds of each strategy of a plan to its list.
local function plan(model, ranks, options, lists)
  local text = output_of("plan '%s/plan_fit.lua' --devices %d --json %s -- %s", here, ranks,
    options, model)
  for _, row in ipairs(lt.json.decode(text).strategies) do
    lists[row.name] = lists[row.name] or {}
    table.insert(lists[row.name], row.seconds)
  end
end

local function fit(model, name, ranks)
  return assert(tonumber(output_of("run '%s/plan_fit.lua' -- %s %s %d", here, model, name, ranks)))
end

-- This machine's rates, as --flops and --bandwidth take them.
local function measured_rates()
  local rates = require "ltrain.apps.plan.rates"
  require "ltrain.c".runtime.set_threads(1)
  local found = rates.measure()
  return ("--time --flops %.0f --bandwidth %.0f"):format(found.flops, found.bandwidth)
end

local rates <const> = measured_rates()
for _, model in ipairs(MODELS) do
  for _, ranks in ipairs(RANKS) do
    local planned, by_rates, measured = {}, {}, {}
    for _ = 1, ROUNDS do
      plan(model, ranks, "--time", planned)
      plan(model, ranks, rates, by_rates)
      for name in pairs(planned) do
        measured[name] = measured[name] or {}
        table.insert(measured[name], fit(model, name, ranks))
      end
    end
    print(("%s, %d rank%s: ms of a step"):format(model, ranks, ranks == 1 and "" or "s"))
    print(("  %-18s %9s %9s %6s %9s %6s"):format("", "measured", "planned", "ratio", "by rates",
      "ratio"))
    for _, name in ipairs { "single_device", "ddp", "zero1", "deepspeed_stage_2", "fsdp" } do
      if planned[name] then
        local real, one, other = math.min(table.unpack(measured[name])),
          math.min(table.unpack(planned[name])), math.min(table.unpack(by_rates[name]))
        print(("  %-18s %9.2f %9.2f %6.2f %9.2f %6.2f"):format(name, real * 1e3, one * 1e3,
          one / real, other * 1e3, other / real))
      end
    end
  end
end
