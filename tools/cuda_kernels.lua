-- tools/cuda_kernels.lua: registers, spills and shared memory of the CUDA kernels, out of what nvcc
-- said when they were compiled.
--
--   lua5.4 tools/cuda_kernels.lua BUILD            (after `ninja -C BUILD ltrain_cuda`)
--   lua5.4 tools/cuda_kernels.lua BUILD --write    the bounds again, from this build
--
-- Prints a line a kernel: its registers on each architecture, its static shared memory. Fails where
-- one spills registers, takes more of either than tools/cuda_kernels.def allows, or is not in that
-- file; and where the file has one that is gone. Registers are bounded on the architectures that
-- are built by default: later ones take more, and must not spill either.

local BOUNDS <const> = "tools/cuda_kernels.def"
local BOUNDED <const> = { "sm_75", "sm_80", "sm_90" }
local ABOUT <const> = [[
# tools/cuda_kernels.def: what each CUDA kernel may take: FILE REGISTERS SHARED KERNEL. Registers
# are those of sm_75, sm_80 or sm_90, which takes most, in the multiples of 8 that a GPU gives out;
# shared is static shared memory in bytes. `lua5.4 tools/cuda_kernels.lua BUILD --write` writes it
# again.
]]

local build = assert(arg[1], "usage: cuda_kernels.lua BUILD [--write]")
local wrong = 0

local function complain(...)
  print("not ok: " .. string.format(...))
  wrong = wrong + 1
end

local function lines_of(command)
  local pipe <close> = assert(io.popen(command))
  local list = {}
  for line in pipe:lines() do list[#list + 1] = line end
  return list
end

-- `rows<float>`, of the symbol _Z4rowsIfEv3job: without its result and arguments.
local function demangle(symbols)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write(table.concat(symbols, "\n"), "\n")
  file:close()
  local names = lines_of("c++filt <" .. path)
  os.remove(path)
  for k, name in ipairs(names) do
    names[k] = name:gsub("^void ", ""):gsub("%b()$", ""):gsub("[%w_]*_INTERNAL_[%w_]*::", "")
  end
  return names
end

-- Adds the kernels of a log to `list`: {file, symbol, shared, registers = {sm_75 = n}, spills = the
-- same}.
local function read(path, list)
  local of_symbol, kernel, arch = {}, nil, nil
  for line in io.lines(path) do
    local symbol, target = line:match "Compiling entry function '([^']+)' for '([^']+)'"
    if symbol then
      kernel, arch = of_symbol[symbol], target
      if not kernel then
        kernel = { file = path:match "([%w_]+)%.log$", symbol = symbol, shared = 0, registers = {},
                   spills = {} }
        of_symbol[symbol], list[#list + 1] = kernel, kernel
      end
    end
    local spilled = line:match "(%d+) bytes spill stores"
    if spilled and kernel then kernel.spills[arch] = tonumber(spilled) end
    local registers = line:match "Used (%d+) registers"
    if registers then
      kernel.registers[arch] = tonumber(registers)
      kernel.shared = math.max(kernel.shared, tonumber(line:match "(%d+) bytes smem") or 0)
    end
  end
end

local function archs_of(kernels)
  local seen, list = {}, {}
  for _, kernel in ipairs(kernels) do
    for arch in pairs(kernel.registers) do
      if not seen[arch] then list[#list + 1] = arch end
      seen[arch] = true
    end
  end
  table.sort(list, function(a, b) return tonumber(a:match "%d+") < tonumber(b:match "%d+") end)
  return list
end

-- The most registers of a kernel, as a GPU gives them out; 0 where no architecture is bounded.
local function most(kernel)
  local n = 0
  for _, arch in ipairs(BOUNDED) do n = math.max(n, kernel.registers[arch] or 0) end
  return (n + 7) // 8 * 8
end

local function key(kernel) return kernel.file .. " " .. kernel.name end

local function show(kernels, archs)
  print(("%-16s %-44s %s %7s"):format("file", "kernel", table.concat(archs, " "), "shared"))
  for _, kernel in ipairs(kernels) do
    local row = {}
    for k, arch in ipairs(archs) do
      row[k] = ("%" .. #arch .. "s"):format(kernel.registers[arch] or "-")
      local spilled = kernel.spills[arch] or 0
      if spilled > 0 then complain("%s spills %d bytes on %s", key(kernel), spilled, arch) end
    end
    print(("%-16s %-44s %s %7d"):format(kernel.file, kernel.name, table.concat(row, " "),
      kernel.shared))
  end
end

local function compare(kernels)
  local bounds = {}
  for line in io.lines(BOUNDS) do
    local file, registers, shared, name = line:match "^(%w[%w_]*) (%d+) (%d+) (.+)$"
    if file then
      bounds[file .. " " .. name] = { registers = tonumber(registers), shared = tonumber(shared) }
    end
  end
  for _, kernel in ipairs(kernels) do
    local bound = bounds[key(kernel)]
    bounds[key(kernel)] = nil
    if not bound then
      complain("%s is not in %s", key(kernel), BOUNDS)
    elseif most(kernel) > bound.registers then
      complain("%s takes %d registers: at most %d", key(kernel), most(kernel), bound.registers)
    elseif kernel.shared > bound.shared then
      complain("%s takes %d bytes of shared memory: at most %d", key(kernel), kernel.shared,
        bound.shared)
    end
  end
  local gone = {}
  for name in pairs(bounds) do gone[#gone + 1] = name end
  table.sort(gone)
  for _, name in ipairs(gone) do complain("%s is in %s, but no kernel", name, BOUNDS) end
end

local function write(kernels)
  local file <close> = assert(io.open(BOUNDS, "w"))
  file:write(ABOUT)
  for _, kernel in ipairs(kernels) do
    file:write(("%s %d %d %s\n"):format(kernel.file, most(kernel), kernel.shared, kernel.name))
  end
end

local kernels, symbols = {}, {}
for _, path in ipairs(lines_of(("ls '%s'/runtime/cuda/*.log"):format(build))) do
  read(path, kernels)
end
if #kernels == 0 then
  print(("no logs of nvcc in %s/runtime/cuda"):format(build))
  os.exit(1)
end
for k, kernel in ipairs(kernels) do symbols[k] = kernel.symbol end
for k, name in ipairs(demangle(symbols)) do kernels[k].name = name end
table.sort(kernels, function(a, b) return key(a) < key(b) end)
show(kernels, archs_of(kernels))
if arg[2] == "--write" then
  write(kernels)
else
  compare(kernels)
end
print(("%d kernels, %d faults"):format(#kernels, wrong))
os.exit(wrong > 0 and 1 or 0)
