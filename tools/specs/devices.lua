-- tools/specs/devices.lua: which specs run again on which devices, and with what settings, from the
-- rows of spec/devices.lua (tools/run_specs.lua).
local rows = dofile "spec/devices.lua"
local system = dofile "tools/specs/system.lua"
local tags = dofile "tools/specs/tags.lua"

local EXHAUSTIVE <const> = os.getenv "LT_EXHAUSTIVE" == "1"
local SANITIZED <const> = (os.getenv "LT_SANITIZE" or "") ~= ""

-- How the emulated cuda runs besides in exhaustive runs: threads and blocks of a grid backwards;
-- streams as threads, with pauses.
local VARIANTS <const> = { backwards = "EMU_ORDER=-1", threads = "FAKERT=threads" }

local devices = {}

--- Path, device (or nil) and settings of a variant (or nil) of a file that is run: a path, `path on
--- device`, or `path on device, variant`.
function devices.split(file)
  local path, device, variant = file:match "^(.-) on (%w+),? ?(%w*)$"
  return path or file, device, VARIANTS[variant or ""]
end

-- Whether the environment names a device: it also says where its backend is, then.
local function is_named(device)
  return (" " .. (os.getenv "LT_TEST_DEVICES" or ""):gsub("%W+", " ") .. " ")
    :find(" " .. device .. " ", 1, true) ~= nil
end

-- The folder of backends that the build has emulated, nil: it has none.
local function emulated(build)
  local folder = build .. "/spec/cuda/backends"
  if not system.is_there(folder .. "/ltrain_cuda.so") then return nil end
  return folder:sub(1, 1) == "/" and folder or os.getenv("PWD") .. "/" .. folder
end

local function other_devices(build)
  local named = os.getenv "LT_TEST_DEVICES" or ""
  if named == "none" then return {} end
  local list = { "fake" }
  if is_named "cuda" or emulated(build) then list[2] = "cuda" end
  for name in named:gmatch "%w+" do
    if name ~= "fake" and name ~= "cuda" and name ~= "cpu" then list[#list + 1] = name end
  end
  return list
end

-- What of a file does not run on a device: the reason for all of it, or reasons by case.
local function left_out_of(path, device)
  local is_emulated = device == "cuda" and not is_named "cuda"
  local sources = { rows.skipped, rows.lacking[device] or {},
                    is_emulated and rows.lacking.emulated or {},
                    not EXHAUSTIVE and rows.slow[device] or {} }
  local list = {}
  for _, source in ipairs(sources) do
    if type(source[path]) == "string" then return source[path] end
    for name, why in pairs(source[path] or {}) do list[name] = why end
  end
  return list
end

-- Whether the specs of any device run there: on the emulated cuda they take a quarter of a
-- sanitized run, and its kernels have specs of their own.
local function is_for_all(device)
  return device ~= "cuda" or is_named "cuda" or EXHAUSTIVE or not SANITIZED
end

-- Whether a spec names its device itself.
local function is_alone(file)
  return file:match "^spec/(%w+)/.*_spec%.lua$" == rows.alone
end

-- Adds `file on device` and, where these are wanted, its variants.
local function add(list, file, device)
  list[#list + 1] = ("%s on %s"):format(file, device)
  if not EXHAUSTIVE or device ~= "cuda" or is_named "cuda" then return end
  for _, variant in ipairs { "backwards", "threads" } do
    list[#list + 1] = ("%s on %s, %s"):format(file, device, variant)
  end
end

--- The files, and after each that runs on other devices its runs there.
function devices.add_runs(build, files)
  local list, others = {}, other_devices(build)
  local has_alone = (" " .. table.concat(others, " ") .. " "):find(" " .. rows.alone .. " ", 1,
    true)
  for _, file in ipairs(files) do
    if not is_alone(file) then
      list[#list + 1] = file
    elseif has_alone then
      add(list, file, rows.alone)
    else
      print(("    skipped: %s (no device %s here)"):format(file, rows.alone))
    end
    for _, folder in ipairs(rows.folders) do
      for _, device in ipairs(file:sub(1, #folder) == folder and others or {}) do
        if is_for_all(device) and type(left_out_of(file, device)) == "table" then
          add(list, file, device)
        end
      end
    end
  end
  return list
end

--- Of a file's cases on a device every nth runs: n.
function devices.stride_of(path, device)
  if EXHAUSTIVE then return 1 end
  local set = tags.of(tags.source_of(path))
  local own = set.sixth and 6 or set.third and 3 or set.half and 2 or 1
  if not device or is_alone(path) or is_named(device) then return own end
  return math.max(own, rows.sampled[device] or 1)
end

--- The setting with which tools/busted_tap.lua chooses cases; other ones on each device, and under
--- sanitizers: both halves of a file run in CI.
function devices.sampling(path, device)
  local stride = devices.stride_of(path, device)
  if stride == 1 then return "" end
  local seed = math.tointeger(tonumber(os.getenv "LT_TEST_SEED")) or 1
  local phase = seed + #(device or "") + (SANITIZED and 1 or 0)
  return ("LT_TEST_SAMPLE=%d/%d "):format(phase % stride, stride)
end

--- Options of busted, settings before it, and cases that are left out with their reasons.
function devices.settings_for(build, path, device, variant)
  if not device then return "", "", {} end
  local settings = ("LT_TEST_DEVICE=%s %s "):format(system.quote(device), variant or "")
  if device == "cuda" and not is_named "cuda" then
    settings = settings .. "LTRAIN_BACKENDS=" .. system.quote(emulated(build)) .. " "
  end
  if is_alone(path) then return "", settings, {} end
  if not path:match "^spec/dist/" then
    settings = settings .. "CUDA_VISIBLE_DEVICES=0 " -- else a Trainer takes all GPUs there are
  end
  local options, left_out = " --helper spec/on_device.lua", left_out_of(path, device)
  for _, name in ipairs(rows.transports) do
    options = options .. " --filter-out " .. system.quote(name)
  end
  for name in pairs(left_out) do
    options = options .. " --filter-out " .. system.quote("^" .. name:gsub("%p", "%%%0") .. "$")
  end
  return options, settings, left_out
end

return devices
