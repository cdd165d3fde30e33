-- spec/host/python_spec.lua: libltrain in Python: arrays of NumPy and tensors of PyTorch share
-- their memory with a state.
-- tags: slow
local BUILD <const> = os.getenv("LT_BUILD")
local PRELOAD <const> = os.getenv("LT_PRELOAD") or ""

local function run(command, ...)
  local pipe <close> = assert(io.popen(command:format(...) .. " 2>&1; echo \"status $?\""))
  local text = pipe:read("a")
  local out, status = text:match("^(.-)status (%d+)\n$")
  return tonumber(status), out
end

-- The first Python that has a module; LT_TORCH_VENV as in spec/bench/torch_venv.sh.
local function python_with(module)
  local venv = os.getenv("LT_TORCH_VENV") or BUILD .. "/venv-torch"
  for _, path in ipairs { venv .. "/bin/python", "python3", "/usr/bin/python3" } do
    if run("%s -c 'import %s'", path, module) == 0 then return path end
  end
end

describe("libltrain in Python", function()
  local function check(module, with, settings)
    if not BUILD then pending("LT_BUILD names no build folder") end
    local python = python_with(with or module)
    if not python then pending("no Python with " .. (with or module)) end
    -- Python itself leaks on purpose.
    local status, out = run("%s LD_PRELOAD=%s ASAN_OPTIONS=detect_leaks=0 "
      .. "PYTHONDONTWRITEBYTECODE=1 timeout 120 %s spec/host/dlpack.py %s/libltrain.so %s",
      settings or "", PRELOAD, python, BUILD, module)
    assert.equal(0, status, out)
    assert.matches("^" .. module .. "[^\n]*: f32 f64 [^\n]+\n$", out)
  end

  it("shares memory with NumPy, both ways", function() check("numpy") end)

  it("shares memory with PyTorch, both ways", function() check("torch") end)

  it("shares memory of a GPU, both ways", function()
    local backends = (BUILD or "") .. "/spec/cuda/backends"
    local file <close> = io.open(backends .. "/ltrain_cuda.so") --[[@as file*]]
    if not file then pending("no emulated GPU in this build") end
    check("cuda", "numpy", "LTRAIN_BACKENDS=" .. backends)
  end)
end)
