-- tools/cuda_kernels.lua: registers, spills and shared memory of the CUDA kernels, out of what nvcc
-- said when they were compiled.
--
--   lua5.4 tools/cuda_kernels.lua BUILD       (after `ninja -C BUILD ltrain_cuda`)
--
-- Prints a line a file with the most of its kernels, and each that spills registers. Fails where
-- one takes more than 48 KiB of shared memory, or spills more than SPILLS bytes.

local SPILLS <const> = 64
local SHARED <const> = 48 * 1024

local build = assert(arg[1], "usage: cuda_kernels.lua BUILD")
local list <close> = assert(io.popen(("ls '%s'/runtime/cuda/*.log"):format(build)))
local failed, files = false, 0

-- { kernels =, registers =, shared = } of a log; spills are printed.
local function read(path)
  local most = { kernels = 0, registers = 0, shared = 0 }
  local kernel, arch = "?", "?"
  for line in io.lines(path) do
    local name, target = line:match "Compiling entry function '([^']+)' for '([^']+)'"
    if name then kernel, arch = name, target end
    local spilled = tonumber(line:match "(%d+) bytes spill stores") or 0
    if spilled > 0 then
      print(("  %s of %s spills %d bytes"):format(kernel, arch, spilled))
      failed = failed or spilled > SPILLS
    end
    local registers = tonumber((line:match "Used (%d+) registers"))
    if registers then
      most.kernels = most.kernels + 1
      most.registers = math.max(most.registers, registers)
      most.shared = math.max(most.shared, tonumber(line:match "(%d+) bytes smem") or 0)
    end
  end
  failed = failed or most.shared > SHARED
  return most
end

for path in list:lines() do
  local most = read(path)
  files = files + 1
  if most.kernels > 0 then
    print(("%-20s %3d kernels, at most %3d registers, %5d bytes shared"):format(
      path:match "([%w_]+)%.log$", most.kernels, most.registers, most.shared))
  end
end
if files == 0 then
  print(("no logs of nvcc in %s/runtime/cuda"):format(build))
  failed = true
end
os.exit(failed and 1 or 0)
