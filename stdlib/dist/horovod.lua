--- stdlib/dist/horovod.lua: lt.horovod: Horovod's names for what lt.dist has, so that a script that
--- uses `hvd` needs few changes.
--
--   local lt = require "ltrain"
--   local hvd = lt.horovod
--   hvd.init()
--   local mean = hvd.allreduce(lt.tensor{1.0, 2.0}, {name = "loss"})
--   print(hvd.rank(), hvd.size(), mean)          -- prints: 0	1	tensor([1., 2.])
--
-- Ranks are started by `mpirun -n 4 ltrain run train.lua`, or by lt.dist.launch; `init` has nothing
-- to do.
local Adasum = require "ltrain.dist.Adasum"
local c = require "ltrain.c"
local collectives = require "ltrain.dist.collectives"
local config = require "ltrain.core.config"
local dist = require "ltrain.dist"
local errors = require "ltrain.core.errors"
local strict_arity = require "ltrain.core.strict_arity"
local strict_table = require "ltrain.core.strict_table"

local hvd = {
  Average = "average", Sum = "sum", Adasum = "adasum", Min = "min", Max = "max",
  Product = "product",
  Compression = strict_table({ none = "none", fp16 = "fp16", bf16 = "bf16" },
    "horovod.Compression"),
  DistributedOptimizer = dist.DistributedOptimizer,
}

local OPS <const> = { average = "mean", sum = "sum", min = "min", max = "max", product = "prod" }
local WIRES <const> = { fp16 = "f16", bf16 = "bf16" }

local ALLREDUCE <const> = {
  name = { type = "string", doc = "no effect: ranks are compared by the order of calls" },
  average = { type = "boolean", doc = "older option: false is op = 'sum'" },
  op = { type = "string", choices = { "average", "sum", "adasum", "min", "max", "product" },
    doc = "the reduction; by default 'average'" },
  compression = { type = "string", default = "none", choices = { "none", "fp16", "bf16" },
    doc = "the dtype that it is sent in" },
  prescale_factor = { type = "number", default = 1.0, doc = "multiplied with before" },
  postscale_factor = { type = "number", default = 1.0, doc = "multiplied with after" },
}
local NAME <const> = { name = ALLREDUCE.name }

-- The operation that the options say.
local function op_of(o)
  if o.op then return o.op end
  return o.average == false and "sum" or "average"
end

local function scaled(x, factor) return factor == 1 and x or x * factor end

-- A handle for what is there already.
local function handle_of(result)
  return { wait = function() return result end, test = function() return true end }
end

local function allreduce_begin(x, options)
  local o = config.check(options, ALLREDUCE, "horovod.allreduce")
  if not c.is_tensor(x) then
    errors.blame("horovod.allreduce: needs a tensor: got %s", errors.show(x))
  end
  local op, dtype = op_of(o), x.dtype
  local sent = scaled(x, o.prescale_factor)
  if WIRES[o.compression] then sent = sent:to(WIRES[o.compression]) end
  local work
  if op == "adasum" then
    local row = Adasum("horovod.allreduce"):combine(sent:reshape { -1 }, { sent:numel() })
    work = handle_of(row:reshape(x.shape))
  else
    work = collectives.all_reduce(sent, { op = OPS[op], async = true })
  end
  return {
    wait = function() return scaled(work:wait():to(dtype), o.postscale_factor) end,
    test = function() return work:test() end,
  }
end

--- Nothing: ranks are joined when the script begins.
function hvd.init() end

--- Nothing: ranks are left when the script ends.
function hvd.shutdown() end

--- Returns true.
function hvd.is_initialized() return true end

--- Returns the rank of this process, from 0.
function hvd.rank() return c.dist.rank() end

--- Returns the number of ranks.
function hvd.size() return c.dist.size() end

--- Returns the number of this process among those of its machine, from 0.
function hvd.local_rank() return c.dist.world().local_rank end

--- Returns the number of ranks of its machine.
function hvd.local_size() return c.dist.world().local_ranks end

--- Returns the number of its machine, from 0.
function hvd.cross_rank() return c.dist.world().node_rank end

--- Returns the number of machines.
function hvd.cross_size() return c.dist.world().nodes end

--- Returns the mean of x over all ranks; options: op, average, compression, prescale_factor,
--- postscale_factor, name.
function hvd.allreduce(x, options) return allreduce_begin(x, options).wait() end

--- The same in place.
function hvd.allreduce_(x, options) return x:copy_(hvd.allreduce(x, options)) end

--- The same of a list of tensors.
function hvd.grouped_allreduce(list, options)
  local results = {}
  for i, x in ipairs(list) do results[i] = allreduce_begin(x, options) end
  for i, handle in ipairs(results) do results[i] = handle.wait() end
  return results
end

--- Begins allreduce; returns a handle for `synchronize` and `poll`.
function hvd.allreduce_async(x, options) return allreduce_begin(x, options) end

--- Begins allreduce_, whose result `synchronize` writes into x.
function hvd.allreduce_async_(x, options)
  local handle = allreduce_begin(x, options)
  local wait = handle.wait
  handle.wait = function() return x:copy_(wait()) end
  return handle
end

--- Returns the tensors of all ranks, concatenated along dim 1; sizes of dim 1 may differ.
function hvd.allgather(x, options)
  config.check(options, NAME, "horovod.allgather")
  return collectives.all_gather(x, { cat = true })
end

--- Begins allgather.
function hvd.allgather_async(x, options)
  config.check(options, NAME, "horovod.allgather_async")
  return collectives.all_gather(x, { cat = true, async = true })
end

--- Returns rank `root_rank`'s x.
function hvd.broadcast(x, root_rank, options)
  config.check(options, NAME, "horovod.broadcast")
  return collectives.broadcast(x, { from = root_rank or 0 })
end

--- The same in place.
function hvd.broadcast_(x, root_rank, options)
  return x:copy_(hvd.broadcast(x, root_rank, options))
end

--- Begins broadcast.
function hvd.broadcast_async(x, root_rank, options)
  config.check(options, NAME, "horovod.broadcast_async")
  return collectives.broadcast(x, { from = root_rank or 0, async = true })
end

--- Returns what all ranks send to this one: parts of their x, of `splits` rows each.
function hvd.alltoall(x, splits)
  return collectives.all_to_all(x, { splits = splits })
end

--- Returns this rank's part of the mean (op = "sum": the sum) of all ranks' x.
function hvd.reducescatter(x, options)
  local o = config.check(options, { name = NAME.name, op = ALLREDUCE.op }, "horovod.reducescatter")
  return collectives.reduce_scatter(x, { op = OPS[o.op or "average"] })
end

--- Waits for what an asynchronous call began; returns its result.
function hvd.synchronize(handle) return handle:wait() end

--- Returns whether it is complete.
function hvd.poll(handle) return handle:test() end

--- Returns when all ranks have called it.
function hvd.barrier() collectives.barrier() end

--- Refused: ranks without data are waited for by a Trainer, and by lt.dist.ddp.
function hvd.join()
  errors.blame("horovod.join: ranks that have no data left take part with a weight of 0: a Trainer "
    .. "does it by itself, and `net:sync()` of lt.dist.ddp(net) in a loop of your own")
end

--- As lt.dist.broadcast_parameters, from rank `root_rank` (0).
function hvd.broadcast_parameters(x, root_rank)
  dist.broadcast_parameters(x, { from = root_rank or 0 })
end

--- As lt.dist.broadcast_optimizer_state, from rank `root_rank` (0).
function hvd.broadcast_optimizer_state(optimizer, root_rank)
  dist.broadcast_optimizer_state(optimizer, { from = root_rank or 0 })
end

--- Returns rank `root_rank`'s (0) value: numbers, texts, tensors, tables of them.
function hvd.broadcast_object(value, root_rank)
  return collectives.broadcast({ value }, { from = root_rank or 0 })[1]
end

--- Returns the list of all ranks' values.
function hvd.allgather_object(value)
  local list = {}
  for rank, one in ipairs(collectives.all_gather { value }) do list[rank] = one[1] end
  return list
end

return strict_table(strict_arity.all(hvd), "horovod")
