--- stdlib/core/cuda.lua: lt.cuda: available GPUs, their memory, synchronization.
--
-- A GPU is given by its number (from 0) or its name ("cuda:1"); the default is the current GPU,
-- which "cuda" without a number denotes. This is the first one, unless `set_device` or a Trainer's
-- rank has selected another.
local c = require "ltrain.c"
local CudaGraph = require "ltrain.core.cuda_graph"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local memory_snapshot = require "ltrain.core.memory_snapshot"
local nvtx = require "ltrain.core.nvtx"
local streams = require "ltrain.core.cuda_streams"
local strict_arity = require "ltrain.core.strict_arity"
local tree = require "ltrain.core.tree"

local runtime <const> = c.runtime
local cuda = {}

-- "cuda:1" of what a function was called with.
local function name_of(device, fn)
  if device == nil then return ("cuda:%d"):format(runtime.current_device "cuda") end
  if math.type(device) == "integer" then return ("cuda:%d"):format(device) end
  if type(device) == "string" and (device:find "^cuda" or device:find "^gpu") then return device end
  errors.blame("cuda.%s: device must be a number from 0 or text like 'cuda:1': got %s", fn,
    errors.show(device))
end

--- Whether a GPU can be used. Does not initialize CUDA: ranks can still be forked.
function cuda.is_available() return cuda.device_count() > 0 end

--- The number of GPUs visible under CUDA_VISIBLE_DEVICES; 0 in a build without CUDA. Does not
--- initialize CUDA.
function cuda.device_count() return (runtime.devices "cuda") or 0 end

--- The name of a GPU, such as "NVIDIA H100 80GB HBM3".
function cuda.get_device_name(device)
  return runtime.device_name(name_of(device, "get_device_name"))
end

--- The free and the total memory of a GPU in bytes; memory of other processes is not free.
function cuda.mem_get_info(device)
  return runtime.device_memory(name_of(device, "mem_get_info"))
end

local function stats(device, fn) return runtime.memory(name_of(device, fn)) end

--- Bytes of this process's tensors on a GPU.
function cuda.memory_allocated(device) return stats(device, "memory_allocated").live_bytes end

--- The maximum of memory_allocated since the start or reset_peak_memory_stats.
function cuda.max_memory_allocated(device)
  return stats(device, "max_memory_allocated").peak_bytes
end

--- Bytes that this process has reserved on a GPU: those of tensors, and the cache.
function cuda.memory_reserved(device)
  local m = stats(device, "memory_reserved")
  return m.live_bytes + m.cached_bytes
end

--- The number of the current GPU.
function cuda.current_device() return runtime.current_device "cuda" end

--- Sets the current GPU.
function cuda.set_device(device) runtime.current_device("cuda", name_of(device, "set_device")) end

-- Until it is closed, or within fn, whose results are returned.
local function scope(restore, fn)
  local held = setmetatable({}, { __close = restore })
  if fn == nil then return held end
  local _ <close> = held
  return fn()
end

--- Makes the GPU the current one during fn(), whose results it returns; without fn, until the
--- returned value is closed: `local _ <close> = lt.cuda.device(1)`.
function cuda.device(device, fn)
  local name, before = name_of(device, "device"), runtime.current_device "cuda"
  runtime.current_device("cuda", name)
  return scope(function() runtime.current_device("cuda", ("cuda:%d"):format(before)) end, fn)
end

--- A stream of a GPU, of class Stream; a few streams per GPU are assigned in turn.
function cuda.Stream(device) return streams.new(name_of(device, "Stream")) end

--- A new event, of class Event; options: enable_timing.
function cuda.Event(options) return streams.Event(options) end

--- The stream on which operations are issued.
function cuda.current_stream(device) return streams.current(name_of(device, "current_stream")) end

--- Issues operations on the stream's GPU to it during fn(), whose results it returns; without fn,
--- until the returned value is closed.
function cuda.stream(stream, fn)
  local before = streams.set(stream, "cuda.stream")
  return scope(function() streams.set(before) end, fn)
end

--- Returns a function like `fn` whose work on the GPU is captured at the third call, as a CUDA
--- graph, and launched as a whole by later ones, which do not call `fn`. Arguments: tensors of the
--- GPU, in tables too, and other values; a call with other shapes or values captures another graph
--- (8 at most; else `fn` is called). Results are copies, without history. Random numbers, and the
--- learning rates and step counts of optimizers that step in `fn`, are those of the call. Fields of
--- the result: `captured`, `launched`, and `called` (how often `fn` ran as it is).
function cuda.graph(fn, device)
  if not class.is_callable(fn) then
    errors.blame("cuda.graph: needs a function: got %s", errors.show(fn))
  end
  return CudaGraph(fn, name_of(device, "graph"))
end

--- Resets the peak statistics of all devices.
function cuda.reset_peak_memory_stats() runtime.reset_peak_memory() end

--- Releases cached memory to the devices.
function cuda.empty_cache() runtime.empty_cache() end

--- Waits until all work issued to a GPU, or without argument to all devices, is complete; its
--- errors are raised here, with the line that issued it.
function cuda.synchronize(device)
  runtime.synchronize(device ~= nil and name_of(device, "synchronize") or nil)
end

local function mib(bytes) return ("%.1f MiB"):format(bytes / 2 ^ 20) end

--- A summary of a GPU's memory as a string, with the largest tensors and the lines of the script
--- that created them.
function cuda.memory_summary(device)
  local name = name_of(device, "memory_summary")
  local m, free, total = runtime.memory(name), runtime.device_memory(name)
  return table.concat({
    ("%s (%s)"):format(name, runtime.device_name(name)),
    ("  tensors      %12s, at most %s"):format(mib(m.live_bytes), mib(m.peak_bytes)),
    ("  kept         %12s for the next ones"):format(mib(m.cached_bytes)),
    ("  of the GPU   %12s free of %s"):format(mib(free), mib(total)),
    ("  allocations  %12d requested from the GPU"):format(m.system_calls),
  }, "\n") .. runtime.largest_tensors(name)
end

--- The segments that this process has of a GPU's memory, with the fields of
--- torch.cuda.memory_snapshot: a list of { device =, address =, total_size =, allocated_size =,
--- active_size =, segment_type = "small" or "large", blocks = }, in bytes and by address. `blocks`
--- is the list of { address =, size =, state =, stream =, requested_size =, op =, line =, shape =,
--- dtype = }; `state`: "active_allocated", "inactive" (free), or "active_pending_free": freed, and
--- still in use on another stream; `stream`: the number of the stream of its last work. The last
--- five are those of tensors over 1 MiB, and after `record_memory_history` of all.
function cuda.memory_snapshot(device)
  return memory_snapshot.take(name_of(device, "memory_snapshot"))
end

--- From now on each tensor records the operation and the script line that create it, for
--- memory_snapshot and messages about memory; `false`: only those over 1 MiB. PyTorch's
--- torch.cuda.memory._record_memory_history.
function cuda.record_memory_history(enabled)
  if enabled ~= nil and type(enabled) ~= "boolean" then
    errors.blame("cuda.record_memory_history: enabled must be true or false: got %s",
      errors.show(enabled))
  end
  runtime.note_allocations(enabled ~= false)
end

--- Writes memory_snapshot as an HTML page, which needs nothing but a browser: a bar for each
--- segment, and the operations and lines with most memory.
function cuda.save_memory_snapshot(path, device)
  if type(path) ~= "string" then
    errors.blame("cuda.save_memory_snapshot: path must be text: got %s", errors.show(path))
  end
  local name <const> = name_of(device, "save_memory_snapshot")
  local memory_page <const> = require "ltrain.core.memory_page"
  local page <const> = memory_page.html(name, memory_snapshot.take(name))
  local done, message = c.io.write_file(path, page, "cuda.save_memory_snapshot")
  if not done then errors.blame("%s", message) end
end

local fractions <const> = {} -- of each GPU that has a limit

--- Limits what this process reserves of a GPU, tensors and cache, to a fraction of its memory, from
--- 0 to 1. What needs more is an out-of-memory error. Without a number of bytes to compare with, as
--- on a GPU that cannot be used, it is an error.
function cuda.set_per_process_memory_fraction(fraction, device)
  if type(fraction) ~= "number" or not (fraction > 0 and fraction <= 1) then
    errors.blame("cuda.set_per_process_memory_fraction: fraction must be above 0 and at most 1: "
      .. "got %s", errors.show(fraction))
  end
  local name <const> = name_of(device, "set_per_process_memory_fraction")
  local _, total = runtime.device_memory(name)
  if total == 0 then
    errors.blame("cuda.set_per_process_memory_fraction: %s does not report its memory", name)
  end
  runtime.limit_device(name, math.max(1, math.floor(fraction * total)))
  fractions[name] = fraction
end

--- The fraction that was set; 1 without a limit.
function cuda.get_per_process_memory_fraction(device)
  return fractions[name_of(device, "get_per_process_memory_fraction")] or 1.0
end

local function unknown(_, name)
  errors.blame("cuda: there is no '%s'%s", tostring(name),
    errors.in_place_of(name, "cuda", tree.keys(cuda)))
end

cuda = strict_arity.all(cuda)
cuda.nvtx = nvtx

return setmetatable(cuda, { __index = unknown })
