-- spec/bench/gpu.lua: operations and training steps on a GPU, beside PyTorch's on the same one.
--
--   ./dev bench gpu [ROUNDS]             3; LT_TORCH_VENV names PyTorch's virtual environment
--
-- Both sides run each case in turn, ROUNDS times, each run a process of its own; the figure is the
-- least of the windows of all of its runs. Operations: the bandwidth (GB/s) of what must be read
-- and written once, or TFLOP/s. Models: those of torch_models.lua, microseconds a step, with the
-- batch on the GPU. The last lines are one JSON object.
local HERE <const> = arg[0]:match("^(.*)/[^/]*$") or "."

local function lines_of(command)
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

local function python()
  local named = os.getenv "LT_TORCH_PYTHON"
  if named then return named end
  local venv = lines_of(("bash '%s/torch_venv.sh' torch numpy"):format(HERE))[1]
  return venv .. "/bin/python"
end

local SIDES <const> = {
  { name = "ltrain", command = ("'%s' '%s/gpu_side.lua'"):format(os.getenv "LTRAIN" or arg[-1],
    HERE) },
  { name = "PyTorch", command = ("'%s' '%s/gpu_side.py'"):format(python(), HERE) },
}

-- Lines of a side: NAME VALUE UNIT.
local found, order = {}, {}
for _ = 1, tonumber(arg[1] or 3) do
  for _, side in ipairs(SIDES) do
    for _, line in ipairs(lines_of(side.command .. " 2>&1")) do
      local name, value, unit = line:match "^(%S+) ([%d.e+-]+) (%S+)$"
      if not name then
        io.stderr:write(side.name, ": ", line, "\n")
      else
        if not found[name] then
          found[name] = { unit = unit }
          order[#order + 1] = name
        end
        local better = unit == "us" and math.min or math.max
        local one = found[name]
        one[side.name] = better(one[side.name] or tonumber(value), tonumber(value))
      end
    end
  end
end

local json = {}
print(("%-28s %12s %12s  %s"):format("", "ltrain", "PyTorch", "times PyTorch's"))
for _, name in ipairs(order) do
  local one = found[name]
  local ours, theirs = one.ltrain or 0 / 0, one.PyTorch or 0 / 0
  local ratio = one.unit == "us" and theirs / ours or ours / theirs
  print(("%-28s %12.1f %12.1f  %.2f  (%s)"):format(name, ours, theirs, ratio, one.unit))
  if one.ltrain and one.PyTorch then
    json[#json + 1] = ('"%s": [%.6g, %.6g, "%s"]'):format(name, ours, theirs, one.unit)
  end
end
print("{" .. table.concat(json, ", ") .. "}")
