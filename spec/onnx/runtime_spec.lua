-- spec/onnx/runtime_spec.lua: onnxruntime computes from exported files what ltrain does: all that
-- spec/parity/onnx.lua exports, every model of lt.models among it, with inputs of several sizes.
--
-- onnxruntime comes by pip: LT_EXHAUSTIVE=1 installs it into the build folder, as ./dev parity
-- does.
-- tags: slow
local BUILD <const> = os.getenv "LT_BUILD"
local PACKAGES <const> = "onnxruntime numpy safetensors"

-- Whether a command has status 0; its output.
local function run(command, ...)
  local pipe <close> = assert(io.popen(command:format(...) .. " 2>&1; echo \"status $?\""))
  local out <const>, status = pipe:read("a"):match("^(.-)status (%d+)\n$")
  return status == "0", out
end

-- A Python that has the packages; nil where there is none.
local function python_with_onnxruntime()
  if os.getenv "LT_EXHAUSTIVE" == "1" then run("bash spec/bench/torch_venv.sh %s", PACKAGES) end
  local venv <const> = os.getenv "LT_TORCH_VENV" or (BUILD or "build") .. "/venv-torch"
  for _, path in ipairs { venv .. "/bin/python", "python3" } do
    if run("%s -c 'import %s'", path, PACKAGES:gsub(" ", ", ")) then return path end
  end
end

describe("a file of lt.onnx.export", function()
  it("gives the same in onnxruntime, for every model and several sizes", function()
    local python <const> = python_with_onnxruntime()
    if not python then
      pending("no Python with " .. PACKAGES .. ": LT_EXHAUSTIVE=1 or ./dev parity installs them")
    end
    local _, folder = run("mktemp -d")
    folder = folder:gsub("\n", "")
    local written <const>, text = run("LUA_PATH_5_4='./?.lua;;' %s spec/parity/onnx.lua %s",
      os.getenv "LTRAIN" or arg[-1], folder)
    local same, out = written, text
    if written then
      same, out = run("PYTHONDONTWRITEBYTECODE=1 LD_PRELOAD= %s spec/parity/onnx.py %s", python,
        folder)
    end
    run("rm -r %s", folder)
    assert(same, out)
    assert.matches("onnx: %d+ runs in onnxruntime, 0 differ", out)
  end)
end)
