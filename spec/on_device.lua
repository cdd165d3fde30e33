-- spec/on_device.lua: specs run again with their tensors on another device (tools/run_specs.lua).
--
-- A busted helper: what is made without a device is made on LT_TEST_DEVICE, and a Trainer computes
-- there. Which files run so, and which of their cases do not, is listed in spec/devices.lua.
local Accelerator = require "ltrain.core.Accelerator"

local device <const> = require("ltrain.c").runtime.default_device(os.getenv "LT_TEST_DEVICE")

function Accelerator:device() return device end
