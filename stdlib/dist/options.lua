--- stdlib/dist/options.lua: options of the collectives of lt.dist.

local GROUP <const> = {
  type = "object", doc = "group of ranks, made by `split`; by default all",
  check = function(value)
    if value._handle == nil then return "must be a group that lt.dist.split made" end
  end,
}
local ASYNC <const> = {
  type = "boolean", default = false, doc = "return a handle with wait() and test() at once",
}
local SYNC_GRADS <const> = {
  type = "boolean", default = true, doc = "false: the result is detached",
}
local OUT <const> = {
  type = "tensor",
  doc = "the tensor that gets the result, of its shape and dtype; it may share memory with x",
}
local OP <const> = {
  type = "string", default = "sum", choices = { "sum", "mean", "min", "max", "prod" },
  doc = "the reduction",
}
local FROM <const> = { type = "integer", default = 0, min = 0, doc = "the source rank" }
local TO <const> = { type = "integer", default = 0, min = 0, doc = "the destination rank" }

return {
  all_reduce = { op = OP, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT },
  all_reduce_ = { op = OP, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS },
  broadcast = {
    from = FROM, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT,
  },
  all_gather = {
    group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT,
    cat = { type = "boolean", default = false, doc = "concatenate along dim 1; sizes may differ" },
  },
  reduce_scatter = { op = OP, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT },
  all_to_all = {
    group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT,
    splits = {
      type = "table",
      doc = "rows of dim 1 for each rank; by default equal parts. Ranks may pass different ones",
    },
  },
  reduce = { op = OP, to = TO, group = GROUP, async = ASYNC, out = OUT },
  gather = { to = TO, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS, out = OUT },
  scatter = {
    from = FROM, group = GROUP, async = ASYNC, sync_grads = SYNC_GRADS,
    out = {
      type = "tensor", doc = "this rank's part, on all ranks: x is a tensor then, and between GPUs "
        .. "its parts go straight from one to the other",
    },
  },
  send = { group = GROUP, async = ASYNC },
  recv = {
    from = FROM, group = GROUP, async = ASYNC,
    device = {
      type = "string|integer",
      doc = "where tensors are put that come, also those in tables; by default the CPU",
    },
  },
  barrier = { group = GROUP, async = ASYNC },
  batch = { group = GROUP, async = ASYNC },
  split = {
    group = GROUP,
    key = { type = "integer", default = 0, doc = "order in the new group, then by rank" },
  },
}
