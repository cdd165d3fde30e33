-- spec/gpu/report.lua: what a GPU has to prove, in sections that do not depend on each other.
--
--   ./dev gpu [--tiny] [--out FILE] [SECTION...]        all sections; gpu.json
--
-- Prints a row a figure, then a row a section: passed, failed or skipped, each with its reason, and
-- writes the same as JSON. A section that fails or does not end stops no other. Exit status 1: one
-- failed. --tiny: small sizes, for the emulated GPU (LTRAIN_BACKENDS=BUILD/spec/cuda/backends).
-- PyTorch is that of LT_TORCH_PYTHON, LT_TORCH_VENV, or BUILD/venv-torch.
--
-- Stock Lua runs this: a crash of ltrain is a failed section.

local BUILD <const> = os.getenv "LT_BUILD" or "build"
local LTRAIN <const> = os.getenv "LTRAIN" or BUILD .. "/ltrain"
local EMULATED <const> = (os.getenv "LTRAIN_BACKENDS" or ""):find("spec/cuda/backends", 1, true)
local GOAL <const> = 40 -- % of the peak of a product, for GPT-2
local TOOLS <const> = { "memcheck", "racecheck", "synccheck" }

local tiny, out, wanted = false, "gpu.json", {}
local dir -- of this run: logs

local function quote(s) return "'" .. s:gsub("'", "'\\''") .. "'" end

local function read_all(path)
  local file = io.open(path)
  if not file then return "" end
  local text = file:read "a"
  file:close()
  return text
end

local function clock() return tonumber(read_all "/proc/uptime":match "^%S+") or os.time() end

local function line_of(command)
  local pipe <close> = assert(io.popen(command))
  return pipe:read() or ""
end

local function is_there(command) return os.execute(command .. " >/dev/null 2>&1") == true end

-- Runs a command: its exit status (124: out of time), what it printed, what it said on stderr.
local function run(limit, command)
  local log = dir .. "/log"
  local _, how, code = os.execute(("timeout -k 5 %d env %s >%s 2>%s.err </dev/null"):format(limit,
    command, quote(log), quote(log)))
  return how == "exit" and code or 128 + code, read_all(log), read_all(log .. ".err")
end

local current -- the section that runs: {values, order, reason}

local function note(name, value, unit)
  current.values[#current.values + 1] = { name = name, value = value, unit = unit }
  print(("%-10s %-28s %12.5g %s"):format(current.name, name, value, unit))
end

local function skip(reason) error({ skipped = reason }, 0) end
local function fail(...) error({ failed = string.format(...) }, 0) end

-- Lines NAME VALUE UNIT become figures.
local function note_lines(text)
  for name, value, unit in text:gmatch "([%w_]+) ([%d.e+-]+) ([^\n]+)" do
    if tonumber(value) then note(name, tonumber(value), unit) end
  end
end

-- The end of what was said, on one line.
local function last_words(text)
  local lines = {}
  for line in text:gmatch "[^\n]+" do
    if not line:find "^%s" and not line:find "^stack traceback" then lines[#lines + 1] = line end
  end
  return (table.concat(lines, "; ", math.max(1, #lines - 2)):sub(-300))
end

local function work(limit, ...)
  local name = ...
  local status, text, said = run(limit, ("LUA_PATH_5_4='./?.lua;;' %s spec/gpu/work.lua %s %s %s")
    :format(quote(LTRAIN), name, tiny and "tiny" or "full", select(2, ...) or ""))
  note_lines(text)
  if status ~= 0 then fail("%s: status %d: %s", name, status, last_words(said)) end
end

-- A Python with PyTorch that sees a GPU; nil and why not.
local function python()
  local tried = { os.getenv "LT_TORCH_PYTHON", (os.getenv "LT_TORCH_VENV" or BUILD .. "/venv-torch")
    .. "/bin/python", "python3" }
  for k = os.getenv "LT_TORCH_PYTHON" and 1 or 2, 3 do
    local ask <const> = " -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'"
    if is_there(quote(tried[k]) .. ask) then return tried[k] end
  end
  return nil, "no PyTorch that sees a GPU (LT_TORCH_PYTHON, LT_TORCH_VENV)"
end

local function gpus()
  local status, text = run(60, quote(LTRAIN) .. " -e 'print(lt.cuda.device_count())'")
  return status == 0 and tonumber(text) or 0
end

local sections, order = {}, {}

local function section(name, about, fn)
  order[#order + 1] = name
  sections[name] = { name = name, about = about, fn = fn, values = {} }
end

section("info", "what there is", function()
  local status, text, said = run(60, quote(LTRAIN) .. " info")
  if status ~= 0 then fail("%s", last_words(said)) end
  current.text = text
  io.write(text)
  if not text:find "\ncuda +yes" then fail("%s", text:match "\n(cuda[^\n]*)" or "no cuda") end
  note("gpus", gpus(), "GPUs")
end)

section("specs", "each kernel against the CPU's; the specs with tensors there", function()
  local plugin = EMULATED and BUILD .. "/spec/cuda/backends/ltrain_cuda.so"
    or BUILD .. "/backends/ltrain_cuda.so"
  if not tiny then
    local status, _, said = run(900, ("%s/spec/c/device_conformance cuda %s"):format(quote(BUILD),
      quote(plugin)))
    if status ~= 0 then fail("device_conformance: %s", last_words(said)) end
  end
  local status, text, said = run(3600, ("%s lua5.4 tools/run_specs.lua %s %s"):format(
    EMULATED and "" or "LT_TEST_DEVICES=cuda", quote(BUILD),
    tiny and "spec/cuda/face_spec.lua" or "spec/cuda spec/ops spec/nn spec/optim spec/autograd "
      .. "spec/metrics spec/trainer spec/dist spec/strategies"))
  local passed, failed = text:match "(%d+) passed, (%d+) failed\n$"
  if not passed then fail("status %d: %s", status, last_words(said)) end
  note("passed", tonumber(passed), "cases")
  note("failed", tonumber(failed), "cases")
  if status ~= 0 then fail("%s", last_words(text)) end
end)

-- Toolkits keep it in a folder that is seldom in PATH.
local function compute_sanitizer()
  local tried = { "compute-sanitizer" }
  for _, home in ipairs { os.getenv "CUDA_HOME" or "/usr/local/cuda", "/usr/local/cuda",
    "/opt/cuda" } do
    tried[#tried + 1] = home .. "/bin/compute-sanitizer"
    tried[#tried + 1] = home .. "/compute-sanitizer/compute-sanitizer"
  end
  for _, path in ipairs(tried) do
    if is_there("command -v " .. quote(path)) then return path end
  end
  skip("compute-sanitizer is neither in PATH nor in " .. table.concat(tried, ", ", 2))
end

section("sanitizer", "compute-sanitizer over every kernel", function()
  local program = compute_sanitizer()
  for _, tool in ipairs(TOOLS) do
    local status, text, said = run(1200, ("%s --tool %s --error-exitcode 9 "
      .. "%s/spec/c/device_conformance cuda %s/backends/ltrain_cuda.so"):format(quote(program),
      tool, quote(BUILD), quote(BUILD)))
    note(tool, status, "status")
    if status ~= 0 then fail("%s: %s", tool, last_words(text .. said)) end
  end
end)

-- Column train_loss of the log of an example's first steps.
local function losses(example, accelerator, steps)
  local root = dir .. "/" .. accelerator
  os.execute("rm -rf " .. quote(root))
  local options <const> = "--devices 1 --seed 1 --log_every_n_steps 1 --limit_val_batches 0"
  local status, _, said = run(600, ("%s run examples/%s.lua --accelerator %s %s --max_steps %d "
    .. "--default_root_dir %s"):format(quote(LTRAIN), example, accelerator, options, steps,
    quote(root)))
  if status ~= 0 then fail("%s on %s: %s", example, accelerator, last_words(said)) end
  local text = read_all(line_of(("find %s -name metrics.csv | head -1"):format(quote(root))))
  local column, list = 0, {}
  for name in (text:match "^[^\n]*" .. ","):gmatch "([^,]*)," do
    column = column + 1
    if name == "train_loss" then break end
  end
  for line in text:gmatch "\n([^\n]+)" do
    local k = 0
    for cell in (line .. ","):gmatch "([^,]*)," do
      k = k + 1
      if k == column and tonumber(cell) then list[#list + 1] = tonumber(cell) end
    end
  end
  if #list < steps then fail("%s on %s: %d losses of %d", example, accelerator, #list, steps) end
  return list
end

section("curves", "losses of the examples against the CPU's", function()
  for _, example in ipairs(tiny and { "mlp" } or { "mlp", "digits", "char_gpt" }) do
    local steps = tiny and 2 or 50
    local here, there = losses(example, "cpu", steps), losses(example, "cuda", steps)
    local most = 0
    for k, loss in ipairs(here) do
      most = math.max(most, math.abs(loss - there[k]) / math.max(math.abs(loss), 1e-3))
    end
    note(example, most, "largest relative difference of a loss")
    if most ~= most or most > 0.02 then fail("%s: losses differ by %g", example, most) end
  end
end)

section("bandwidth", "rows, sums and norms against a copy", function() work(600, "bandwidth") end)

section("bench", "GPT-2 124M bf16, ResNet-50 f16, an MLP, attention, beside PyTorch's", function()
  local torch, why = python()
  for round = 1, tiny and 1 or 2 do
    for _, model in ipairs { "gpt2", "resnet50", "mlp", "attention" } do
      work(600, "model", model)
      if torch and not tiny then
        local status, text, said = run(900, ("%s spec/gpu/side.py %s"):format(quote(torch), model))
        note_lines(text)
        if status ~= 0 then fail("PyTorch, %s: %s", model, last_words(said)) end
      end
    end
    note("round", round, "of interleaved runs")
  end
  local reasons = { torch and "" or "without PyTorch: " .. why }
  for _, v in ipairs(tiny and {} or current.values) do
    if v.name == "gpt2_of_peak" and v.value < GOAL then
      reasons[#reasons + 1] = ("gpt2 at %.1f %% of the peak: the goal is %d"):format(v.value, GOAL)
    end
  end
  current.reason = table.concat(reasons, "; ")
end)

section("gaps", "what of a step is the host's; that it waits for nothing", function()
  work(300, "gaps")
end)

section("nccl", "all_reduce against copies between GPUs", function()
  if gpus() < 2 then skip "one GPU" end
  work(300, "allreduce")
end)

section("kill", "a rank is killed: the job ends and says so", function()
  if gpus() < 2 then skip "one GPU" end
  local began = clock()
  local status, _, said = run(60, ("LUA_PATH_5_4='./?.lua;;' %s spec/gpu/work.lua kill %s %s")
    :format(quote(LTRAIN), tiny and "tiny" or "full", quote(dir .. "/failure")))
  note("until_the_end", clock() - began, "s")
  if status == 0 or status == 124 then fail("status %d", status) end
  if not said:find "ended by SIGKILL" then fail("it said: %s", last_words(said)) end
end)

-- JSON.

local function encode(value)
  if type(value) == "number" then
    return value == value and math.abs(value) ~= math.huge and ("%.10g"):format(value) or "null"
  elseif type(value) == "string" then
    return '"' .. value:gsub('[%c"\\]', function(c)
      return ("\\u%04x"):format(c:byte())
    end) .. '"'
  end
  return tostring(value)
end

local function json(one)
  local values = {}
  for k, v in ipairs(one.values) do
    values[k] = ('      {"name": %s, "value": %s, "unit": %s}'):format(encode(v.name),
      encode(v.value), encode(v.unit))
  end
  return ('  {"section": %s, "status": %s, "reason": %s, "seconds": %s, "text": %s,\n'
    .. '    "values": [\n%s\n    ]}'):format(encode(one.name), encode(one.status),
    encode(one.reason or ""), encode(one.seconds), encode(one.text or ""),
    table.concat(values, ",\n"))
end

local function write_json()
  local list = {}
  for _, name in ipairs(order) do
    if sections[name].status then list[#list + 1] = json(sections[name]) end
  end
  local file <close> = assert(io.open(out, "w"))
  file:write("[\n", table.concat(list, ",\n"), "\n]\n")
end

local function arguments()
  local k = 1
  while arg[k] do
    if arg[k] == "--tiny" then
      tiny = true
    elseif arg[k] == "--out" and arg[k + 1] then
      k = k + 1
      out = arg[k]
    elseif sections[arg[k]] then
      wanted[arg[k]] = true
    else
      io.stderr:write(("gpu: no section '%s': there are %s\n"):format(arg[k],
        table.concat(order, ", ")))
      os.exit(2)
    end
    k = k + 1
  end
end

-- Runs a section; what it raises is its result.
local function judge(one)
  current = one
  local began = clock()
  print(("== %s: %s"):format(one.name, one.about))
  local ok, why = pcall(one.fn)
  one.seconds = clock() - began
  if ok then
    one.status = "passed"
  elseif type(why) == "table" then
    one.status = why.skipped and "skipped" or "failed"
    one.reason = why.skipped or why.failed
  else
    one.status, one.reason = "failed", tostring(why)
  end
  write_json() -- after each: what was found stays where the next one hangs the machine
end

arguments()
io.stdout:setvbuf "line"
dir = line_of "mktemp -d"
local bad = false
for _, name in ipairs(order) do
  if not next(wanted) or wanted[name] then judge(sections[name]) end
end
print ""
for _, name in ipairs(order) do
  local one = sections[name]
  if one.status then
    bad = bad or one.status == "failed"
    print(("%-10s %-8s %7.1f s  %s"):format(name, one.status, one.seconds, one.reason or ""))
  end
end
print("written: " .. out)
os.execute("rm -rf " .. quote(dir))
os.exit(bad and 1 or 0)
