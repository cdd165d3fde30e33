--- stdlib/dist/cpu_affinity.lua: binds a rank to the CPU cores near its device.
--
-- On a machine with several sockets a copy to a GPU of the other socket crosses between them. A
-- rank that mpirun or srun has bound to cores keeps to these; LTRAIN_BIND=0 leaves all ranks where
-- they are.
local c = require "ltrain.c"

local LISTS <const> = "/sys/bus/pci/devices/%s/local_cpulist"

local function cores_near(device, lists)
  local address = device ~= "cpu" and c.runtime.bus_address(device)
  return address and c.io.read_file(lists:format(address)) or nil
end

--- Keeps this process to the cores near `device` until the result is closed.
---@param lists string? where the kernel lists them, %s being the device's address
return function(device, lists)
  local list = c.runtime.getenv "LTRAIN_BIND" ~= "0" and cores_near(device, lists or LISTS)
  local before = c.runtime.cores()
  local bound = list and c.runtime.keep_cores(list)
  return setmetatable({}, { __close = function()
    if bound then c.runtime.set_cores(before) end
  end })
end
