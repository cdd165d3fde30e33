-- spec/build/cuda_kernels_spec.lua: tools/cuda_kernels.lua, which reads what nvcc says of kernels.
-- tags: unsanitized

local function sh(command)
  local pipe <close> = assert(io.popen(command .. " 2>&1; echo \"status $?\""))
  local text = pipe:read "a"
  return text, tonumber(text:match "status (%d+)\n$")
end

local ROOT <const> = os.getenv "LT_ROOT" or "."

-- A folder with the log of one file of kernels, as ptxas writes it. A later GPU takes more.
local function build_of(registers, spilled, shared)
  local dir = sh "mktemp -d":match "^[^\n]+"
  sh(("mkdir -p '%s/runtime/cuda' '%s/tools'"):format(dir, dir))
  local log <close> = assert(io.open(dir .. "/runtime/cuda/rows.log", "w"))
  for _, arch in ipairs { "sm_80", "sm_90", "sm_120" } do
    log:write(([[
ptxas info    : Compiling entry function '_Z4rowsIfEv3job' for '%s'
ptxas info    : Function properties for _Z4rowsIfEv3job
    0 bytes stack frame, %d bytes spill stores, 0 bytes spill loads
ptxas info    : Used %d registers, used 1 barriers, %d bytes smem, 1200 bytes cmem[0]
]]):format(arch, arch ~= "sm_80" and spilled or 0,
      registers + (arch == "sm_120" and 24 or 0), shared))
  end
  return dir
end

local function judge(dir, option)
  return sh(("cd '%s' && lua5.4 '%s/tools/cuda_kernels.lua' . %s"):format(dir, ROOT, option or ""))
end

-- What it says of a build whose bounds were written from one with 37 registers and 256 bytes.
local function compare(registers, spilled, shared, bounds)
  local before, now = build_of(37, 0, 256), build_of(registers, spilled, shared)
  judge(before, "--write")
  sh(("cp '%s/tools/cuda_kernels.def' '%s/tools'"):format(before, now))
  if bounds then sh(("cd '%s' && %s"):format(now, bounds)) end
  local text, status = judge(now)
  sh(("rm -rf '%s' '%s'"):format(before, now))
  return text, status
end

if sh "command -v c++filt":match "^status" then
  pending "tools/cuda_kernels.lua (no c++filt)"
  return
end

describe("tools/cuda_kernels.lua", function()
  it("prints a kernel's registers on each architecture, and its shared memory", function()
    local text, status = compare(40, 0, 256)
    assert.equal(0, status, text)
    assert.matches("file +kernel +sm_80 sm_90 sm_120 +shared", text)
    assert.matches("rows +rows<float> +40 +40 +64 +256", text)
    assert.matches("1 kernels, 0 faults", text)
  end)

  it("fails for registers and shared memory beyond the bounds, and for spills", function()
    local text, status = compare(41, 16, 257)
    assert.equal(1, status)
    assert.matches("not ok: rows rows<float> spills 16 bytes on sm_90", text)
    assert.matches("not ok: rows rows<float> spills 16 bytes on sm_120", text)
    assert.matches("not ok: rows rows<float> takes 48 registers: at most 40", text)
    assert.matches("3 faults", text)
    assert.matches("takes 257 bytes of shared memory: at most 256", (compare(8, 0, 257)))
  end)

  it("fails for kernels without bounds, and bounds without a kernel", function()
    local text, status = compare(37, 0, 256, "sed -i s/float/long/ tools/*.def")
    assert.equal(1, status)
    assert.matches("not ok: rows rows<float> is not in tools/cuda_kernels.def", text)
    assert.matches("not ok: rows rows<long> is in tools/cuda_kernels.def, but no kernel", text)
  end)
end)
