-- spec/cuda/fault_spec.lua: faults of a GPU, which the fake runtime is asked for: one message, with
-- what was issued last, and what is left.
-- tags: half, slow
local both = require "spec.cuda.both"
local child = require "spec.cli.child"
local counts = require "spec.cuda.counts"

local function case(name, fn)
  if counts then return both.it(name, fn) end
  pending(name .. " (only the fake runtime has faults when it is asked)")
end

-- Status and stderr of a script whose GPUs have `fault`.
local function run(script, fault, env)
  local folder = child.folder()
  child.write(folder .. "/script.lua", script)
  local all = { FAKERT_FAULT = fault, LTRAIN_BACKENDS = os.getenv "LTRAIN_BACKENDS" }
  for name, value in pairs(env or {}) do all[name] = value end
  local status, out, err = child.run({ "script.lua" }, { dir = folder, env = all })
  return status, err, out, folder
end

local STEPS <const> = [[
local lt = require "ltrain"
local w = lt.parameter(lt.ones({ 4, 4 }, { device = "cuda" }))
local y = w * 2
y = y:exp()
local z = y:sum()
print(z:item())
]]

describe("a fault of a GPU", function()
  case("is one message, with what was issued last and its lines", function()
    local status, err = run(STEPS, "cudaErrorIllegalAddress@3")
    assert.equal(1, status)
    assert.matches("script.lua:6: cuda:0 cannot be used any more in this process: an illegal "
      .. "memory access was encountered (cudaErrorIllegalAddress)\nwhat was issued to it last, the "
      .. "latest first (LTRAIN_CUDA_SYNC=1 finds the one that failed):\n", err, 1, true)
    assert.matches("\n  sum +script.lua:5\n  exp +script.lua:4\n  mul +script.lua:3\n", err)
    assert.equal(1, select(2, err:gsub("cudaErrorIllegalAddress", "")))
  end)

  case("names what came next where no line was kept", function()
    local script <const> = [[
local lt = require "ltrain"
local x = lt.ones(4, { device = "cuda" })
local y = x:exp()
local w = lt.parameter(y:detach())
local z = w * 2
print(z:tolist()[1])
]]
    local _, err = run(script, "cudaErrorIllegalAddress@2")
    assert.matches("\n  mul +script.lua:5\n  exp +before script.lua:5\n", err)
  end)

  -- As the comment before each in NVIDIA's header has it.
  case("is each error after which CUDA refuses a process all else", function()
    local build <const> = os.getenv "LT_BUILD" or "build"
    local cache <close> = assert(io.open(build .. "/CMakeCache.txt"))
    local include = cache:read "a":match "\nLT_CUDA_INCLUDE:PATH=([^\n]+)"
    local header <close> = assert(io.open(include .. "/driver_types.h"))
    local n = 0
    for comment, name in header:read "a":gmatch "/%*%*(.-)%*/%s*(cudaError%w+)%s*=" do
      local about = comment:gsub("[%s*]+", " ")
      if about:find "inconsistent state" or about:find "terminated and relaunched" then
        local _, err = run("print((require 'ltrain').ones(2, {device = 'cuda'}):tolist()[1])",
          name .. "@1")
        assert.is_truthy(err:find("cuda:0 cannot be used any more in this process: ", 1, true)
          or err:find("cuda:0 (Fake GPU 0) is lost: ", 1, true), name .. ": " .. err)
        n = n + 1
      end
    end
    assert.is_true(n >= 10, n .. " of them in " .. include)
  end)

  case("is told at its line with LTRAIN_CUDA_SYNC=1", function()
    local status, err = run(STEPS, "cudaErrorMisalignedAddress@3", { LTRAIN_CUDA_SYNC = "1" })
    assert.equal(1, status)
    assert.matches("script.lua:4: exp: cuda:0 cannot be used any more in this process: misaligned "
      .. "address (cudaErrorMisalignedAddress)\n", err, 1, true)
    assert.is_nil(err:find("issued to it last", 1, true))
  end)

  case("is remembered: what follows points to it", function()
    local _, _, out = run([[
local lt = require "ltrain"
local x = lt.ones(2, { device = "cuda" })
print(pcall(x.item, x[1]))
local ok, message = pcall(function() return (x + 1):tolist() end)
print(ok, message)
print(lt.ones(2, { device = "cuda:1" }):tolist()[1])
    ]], "cudaErrorAssert@1:0")
    assert.matches("device%-side assert triggered %(cudaErrorAssert%)", out)
    assert.matches("cuda:0 cannot be used any more in this process: device-side assert triggered "
      .. "(cudaErrorAssert) came before\n", out, 1, true)
    assert.matches("\nfalse\tscript.lua:4: ", out)
    assert.matches("\n1%.0\n$", out)
  end)

  case("of a GPU that the kernels were not compiled for says how to compile them", function()
    local status, err = run(STEPS, "cudaErrorNoKernelImageForDevice@1")
    assert.equal(1, status)
    assert.matches("cuda:0 (Fake GPU 0) has compute capability 9.0, for which this ltrain was not "
      .. "compiled: build it with -DLT_CUDA_ARCHS=90", err, 1, true)
  end)

  case("of a GPU whose driver cannot translate the kernels says so", function()
    local status, err = run(STEPS, "cudaErrorUnsupportedPtxVersion@1")
    assert.equal(1, status)
    assert.matches("cuda:0 %(Fake GPU 0%) has compute capability 9.0, for which the driver would "
      .. "have to translate the kernels of this ltrain, of CUDA %d+.%d, and cannot: the provided "
      .. "PTX was compiled with an unsupported toolchain. %(cudaErrorUnsupportedPtxVersion%): "
      .. "build it with %-DLT_CUDA_ARCHS=90, or install a driver of that version\n", err)
  end)

  case("is that of the GPU that had it, whichever is the current one", function()
    local _, _, out = run([[
local lt = require "ltrain"
local event
lt.cuda.device(1, function()
  event = lt.cuda.Event()
  local _ = lt.ones(2, { device = "cuda:1" }) + 1
  event:record()
end)
local y = lt.ones(2, { device = "cuda:0" }) + 1
print(pcall(function() event:synchronize() end))
print(y:tolist()[1])
    ]], "cudaErrorAssert@1:1")
    assert.matches("cuda:1 cannot be used any more in this process", out, 1, true)
    assert.matches("\n2%.0\n$", out)
  end)

  case("of a value is another thing: LTRAIN_CUDA_SYNC=1 has it at once", function()
    local script <const> = [[
local lt = require "ltrain"
local w = lt.ones({ 3, 2 }, { device = "cuda" })
local ids = lt.tensor({ 7 }, { dtype = "i64", device = "cuda" })
print(pcall(function() local _ = lt.embedding(w, ids) end))
print(pcall(function() return #(w + 1):tolist() end))
]]
    local refused <const> = "script.lua:4: embedding: index 7 is out of 0..2\n"
    local _, _, at_once = run(script, "", { LTRAIN_CUDA_SYNC = "1" })
    assert.equal("false\t" .. refused .. "true\t3\n", at_once)
    local _, _, later = run(script, "", { LTRAIN_CUDA_SYNC = "0" })
    assert.equal("true\nfalse\t" .. refused, later)
  end)
end)

local FIT <const> = [[
local lt = require "ltrain"
local Net = lt.Module:extend "Net"
function Net:init() self.layer = lt.nn.Linear(2, 1) end
function Net:training_step(batch) return (self.layer(batch) ^ 2):mean() end
function Net:configure_optimizers() return lt.optim.SGD(self:parameters(), { lr = 0.1 }) end
local data = {}
for k = 1, 40 do data[k] = lt.ones(2, 2) end
lt.Trainer {
  accelerator = "cuda", devices = RANKS, max_epochs = 2, logger = false,
  enable_progress_bar = false, enable_model_summary = false, default_root_dir = ".",
  callbacks = { lt.callbacks.ModelCheckpoint { dirpath = "files", every_n_train_steps = 10,
    save_on_exception = true } },
}:fit(Net(), data)
]]

describe("a lost GPU", function()
  local function lose(ranks, fault)
    local status, err, _, folder = run(FIT:gsub("RANKS", ranks), fault)
    local pipe <close> = io.popen(("ls '%s/files'"):format(folder))
    return status, err, pipe:read "a"
  end

  case("ends the job, is named, and leaves the last checkpoint", function()
    local status, err, files = lose(1, "cudaErrorECCUncorrectable@300")
    assert.equal(1, status)
    assert.matches("cuda:0 (Fake GPU 0) is lost: uncorrectable ECC error encountered "
      .. "(cudaErrorECCUncorrectable); nvidia-smi and the kernel's log (dmesg, Xid) say more\n",
      err, 1, true)
    local path = err:match "the last checkpoint is (files/epoch=%d+%-step=%d+%.ckpt): continue"
    assert.is_truthy(path, err)
    assert.equal(path:sub(7) .. "\n", files)
    assert.is_nil(err:find("on_exception", 1, true))
  end)

  case("of one rank ends the others", function()
    local began = os.time()
    local status, err, files = lose(2, "cudaErrorDevicesUnavailable@300:1")
    assert.equal(1, status)
    assert.is_true(os.time() - began < 30)
    assert.matches("cuda:1 %(Fake GPU 1%) is lost: ", err)
    assert.matches("%.ckpt\n", files)
  end)
end)
