--- stdlib/strategies/pipeline/BlockChain.lua: the blocks of a Sequential or ModuleList, whose calls
--- a pipeline follows: some are skipped, one gets what another rank has sent, and one ends the run.
--
-- A step of the module calls the blocks in their order, by the Sequential's forward or in a loop of
-- the script: `for _, block in ipairs(self.blocks) do x = block(x, mask) end`. What a block returns
-- must be what the next one is called with: the calls are a chain that can be cut between two
-- blocks. Arguments that are not the result of the block before, as a mask, are computed on every
-- rank by the code before the first call.
--
-- A run of blocks first to last skips the calls before `first`: they return stand-ins, tensors the
-- use of which is an error. The call of `first` has what was received in the places of the results
-- of the block before; the call of last + 1 leaves the step, whose coroutine is closed there.
--
-- Draws of random numbers go by block: block i of a microbatch draws from number i * DRAWS of that
-- microbatch's stream, on whatever rank it is.
local c = require "ltrain.c"
local class = require "ltrain.core.class"
local errors = require "ltrain.core.errors"
local hook_lists = require "ltrain.nn.hook_lists"
local module_hooks = require "ltrain.nn.module_hooks"

local BlockChain = class.extend(nil, "BlockChain")

local DRAWS <const> = 1 << 16 -- operations that draw, of a block
local RESULTS <const> = 8 -- of a skipped block
local LEFT <const> = {} -- what a coroutine that leaves its step yields
local raised <const> = c.runtime.frames.raised

local function label(self, i) return ("%s[%d]"):format(self.name, i) end

-- A tensor in place of the results of blocks that other ranks have.
local function new_stand_in(self)
  local tensor = c.empty({ 1 })
  c.dist.empty(tensor, ("strategies.Pipeline: what a block of '%s' returns is used outside of the "
    .. "next block, on a rank that does not have it: compute it in the blocks, or after the last "
    .. "one from what that returns"):format(self.name))
  return tensor
end

--- BlockChain(container, name): from here on calls of its elements are followed, until release().
function BlockChain:init(container, name)
  self.name, self.blocks, self.forwards = name, {}, {}
  self.run = nil -- that goes on now
  self.received = nil -- what a run had received whose backward goes on now
  self.places = {} -- module -> its place
  for i = 1, #container do
    local block = container[i]
    if self.places[block] then
      errors.blame("strategies.Pipeline: %s and %s are one module: a pipeline needs a module for "
        .. "each place", label(self, self.places[block]), label(self, i))
    end
    self.blocks[i], self.places[block] = block, i
    self.forwards[i] = { own = rawget(block, "forward"), fn = block.forward }
    rawset(block, "forward", function(_, ...) return self:call(i, ...) end)
  end
  self.stand_in = new_stand_in(self)
end

--- How many parameters each block has, and one.
function BlockChain:numbers_of_parameters()
  local numbers = {}
  for i, block in ipairs(self.blocks) do numbers[i] = block:num_parameters() + 1 end
  return numbers
end

--- Calls of the blocks are not followed any more.
function BlockChain:release()
  for i, block in ipairs(self.blocks) do rawset(block, "forward", self.forwards[i].own) end
end

-- Calls.

local function check_order(self, run, i, first)
  if i ~= run.next then
    errors.blame("strategies.Pipeline: %s is called %s: a step must call each block of %s once, in "
      .. "order", label(self, i), run.next == 1 and "first"
      or ("after %s"):format(label(self, run.next - 1)), self.name)
  elseif i > 1 and not rawequal(first, run.results[1]) then
    errors.blame("strategies.Pipeline: the first argument of %s is not what %s has returned: got "
      .. "%s: compute what is between two blocks in one of them", label(self, i),
      label(self, i - 1), errors.show(first))
  elseif coroutine.running() ~= run.coroutine then
    errors.blame("strategies.Pipeline: %s is called in a coroutine that the step has made",
      label(self, i))
  end
end

-- The places of arguments that are results of the block before.
local function chained(args, results)
  local places = {}
  for k = 1, math.min(args.n, results.n) do
    if args[k] ~= nil and rawequal(args[k], results[k]) then places[#places + 1] = k end
  end
  return places
end

-- The block's forward with its hooks, which see what it is called with.
local function forward(self, run, i, ...)
  local fn, hooks = self.forwards[i].fn, run.hooks[i]
  if not hooks or run.inside == i then return fn(self.blocks[i], ...) end
  run.inside = i
  return module_hooks.call(self.blocks[i], hooks, ...)
end

local function compute(self, run, i, ...)
  c.runtime.rng_set { ordinal = i * DRAWS }
  if not run.watch then return table.pack(forward(self, run, i, ...)) end
  return table.pack(run.watch(i, function(...) return forward(self, run, i, ...) end, ...))
end

-- The arguments of a call with what was received in its places.
local function with_received(args, received)
  for k, place in ipairs(received.places) do args[place] = received.values[k] end
  args.n = math.max(args.n, received.places[#received.places])
  return args
end

-- A call outside of runs; one that backward makes again, of a block that has received, too.
local function call_again(self, i, ...)
  local fn, block = self.forwards[i].fn, self.blocks[i]
  if not self.received or not rawequal((...), self.stand_in) then return fn(block, ...) end
  local args = with_received(table.pack(...), self.received)
  return fn(block, table.unpack(args, 1, args.n))
end

-- A call of block i.
function BlockChain:call(i, ...)
  local run = self.run
  if not run or run.inside == i then return call_again(self, i, ...) end
  check_order(self, run, i, (...))
  local args = table.pack(...)
  if i > run.last then
    run.ended = true
    coroutine.yield(LEFT, { places = chained(args, run.results), args = args })
  end
  run.next = i + 1
  if i < run.first then
    run.results = run.stand_ins
    return table.unpack(run.results, 1, RESULTS)
  end
  if i == run.first and run.received then with_received(args, run.received) end
  run.results = compute(self, run, i, table.unpack(args, 1, args.n))
  if i == #self.blocks then c.runtime.rng_set { ordinal = (i + 1) * DRAWS } end
  return table.unpack(run.results, 1, run.results.n)
end

-- Runs.

-- Hooks of blocks are called within `call`: the result, closed, gives them back.
local function set_hooks_aside(self, run)
  run.hooks = {}
  for i, block in ipairs(self.blocks) do
    run.hooks[i] = hook_lists[block] or false
    hook_lists[block] = nil
  end
  return setmetatable({}, { __close = function()
    for i, block in ipairs(self.blocks) do
      if run.hooks[i] and not hook_lists[block] then hook_lists[block] = run.hooks[i] end
    end
    self.run = nil
  end })
end

-- Goes on with the step until it has ended or left; what it yields itself is its caller's.
local function proceed(run, ...)
  local found = table.pack(coroutine.resume(run.coroutine, ...))
  while found[1] and coroutine.status(run.coroutine) == "suspended" and found[2] ~= LEFT do
    found = table.pack(coroutine.resume(run.coroutine,
      coroutine.yield(table.unpack(found, 2, found.n))))
  end
  return found
end

--- Runs a step, fn(...), with blocks `first` to `last`. `received`: { places =, values = }, what
--- block `first` gets, nil: what it is called with. `watch(i, forward, ...)` (optional) calls block
--- i. Returns true and the results of the step, or false and { places =, args = }: what the block
--- after `last` was called with, and the places of results of `last` in it.
function BlockChain:step(first, last, received, watch, fn, ...)
  local run = { first = first, last = last, received = received, watch = watch, next = 1,
    results = { n = 0 }, ended = false, stand_ins = { n = RESULTS } }
  for k = 1, RESULTS do run.stand_ins[k] = self.stand_in end
  run.coroutine = coroutine.create(function(...) return xpcall(fn, raised, ...) end)
  local _ <close> = set_hooks_aside(self, run)
  self.run = run
  local found = proceed(run, ...)
  if run.ended then
    coroutine.close(run.coroutine)
    return false, found[3]
  end
  if not found[2] then error(found[3], 0) end
  if run.next <= math.min(last, #self.blocks) then
    if found[3] == nil then return true end -- the batch is left out
    errors.blame("strategies.Pipeline: the step has ended without a call of %s",
      label(self, run.next))
  end
  return true, table.unpack(found, 3, found.n)
end

return BlockChain
